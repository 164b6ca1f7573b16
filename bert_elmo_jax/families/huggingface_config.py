"""The `config.json` of transformers: read it, write it, and refuse fields that cannot be honoured, for any family."""

import contextlib
import dataclasses
import logging
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, get_args

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.files import read_json
from bert_elmo_jax.json_values import OBJECT, TEXT, Kind, any_of, check_fields, list_of, whole_number

# Fields that change the model, with the only supported value (a missing field is fine too).
ONLY = {
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "is_encoder_decoder": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
    "tie_encoder_decoder": False,
    "pruned_heads": {},
    "quantization_config": {},
    "feed_forward_type": "original",
    "alibi": False,
    "rope_scaling": None,
    "rotary_emb_base": None,
}
# True: fields of unknown meaning are refused. By default they are logged, because transformers ignores them.
STRICT: ContextVar[bool] = ContextVar("strict", default=False)

# Fields that do not change the numbers: bookkeeping, tokenizer, task labels (read by the weight formats), memory and
# speed of another program, text generation.
HARMLESS = frozenset(
    """
    architectures _name_or_path name_or_path _commit_hash transformers_version torch_dtype dtype model_max_length
    tokenizer_class do_lower_case language finetuning_task problem_type num_labels id2label label2id
    task_specific_params return_dict use_return_dict output_attentions output_hidden_states output_past
    gradient_checkpointing use_cache chunk_size_feed_forward torchscript use_bfloat16 xla_device tf_legacy_loss
    attn_implementation _attn_implementation _attn_implementation_autoset _attn_implementation_internal
    bos_token_id eos_token_id sep_token_id cls_token_id mask_token_id unk_token_id decoder_start_token_id eos_token_ids
    cross_attention_hidden_size
    do_sample early_stopping num_beams num_beam_groups diversity_penalty temperature top_k top_p typical_p
    repetition_penalty length_penalty no_repeat_ngram_size encoder_no_repeat_ngram_size bad_words_ids max_length
    min_length num_return_sequences output_scores return_dict_in_generate forced_bos_token_id forced_eos_token_id
    remove_invalid_values exponential_decay_length_penalty suppress_tokens begin_suppress_tokens prefix
    sentence_transformers sbert_ce_default_activation_function
    """.split()
)

# Our name -> the name in the file of a BERT and of its nearest relatives.
USUAL_FIELDS = {
    "vocab_size": "vocab_size",
    "hidden_size": "hidden_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "feed_forward_size": "intermediate_size",
    "max_positions": "max_position_embeddings",
    "type_vocab_size": "type_vocab_size",
    "activation": "hidden_act",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "initializer_range": "initializer_range",
    "norm_eps": "layer_norm_eps",
    "pad_id": "pad_token_id",
    "classifier_dropout": "classifier_dropout",
}
# Head -> the end of the name of its class in transformers.
CLASS_ENDINGS = {
    "mlm": "ForMaskedLM",
    "classify": "ForSequenceClassification",
    "choice": "ForMultipleChoice",
    "tag": "ForTokenClassification",
    "span": "ForQuestionAnswering",
}
TASK_ENDINGS = tuple(end for head, end in CLASS_ENDINGS.items() if head != "mlm")

MOST_LAYERS = 10_000  # more than any model has; a list of them is made
LARGEST = 10**8  # more than any size, and any number of pieces or positions, of a model
LARGEST_NUMBER = 1e12  # the largest are bases of rotary angles, up to 1e8
FINITE = Kind("a number up to 1e12", lambda value: type(value) in (int, float) and abs(value) <= LARGEST_NUMBER)
SIZE = whole_number(1, LARGEST)
PIECES = any_of(whole_number(-1, LARGEST), list_of(whole_number(-1, LARGEST), most=1000))  # -1: none, in old files
# Fields of all families that are read from the file, but are no fields of ours: their kinds.
READ_FIELDS: dict[str, Kind] = {
    "model_type": TEXT,
    "architectures": list_of(TEXT, most=100),
    "problem_type": TEXT,
    "num_labels": whole_number(1, LARGEST),
    "id2label": OBJECT,
    "label2id": OBJECT,
    **{f"{piece}_token_id": PIECES for piece in ("bos", "eos", "decoder_start")},
    **dict.fromkeys(("head_dim", "head_size", "attention_head_size", "size_per_head"), whole_number(1, LARGEST)),
}

# Other programs' names for the width of an attention head, which follows from two other fields.
HEAD_SIZES = ("head_dim", "head_size", "attention_head_size", "size_per_head")
KINDS: dict[Any, str] = {
    str: "a name",
    int: "a whole number",
    bool: "true or false",
}  # of fields; the others are numbers


class MoreFields(NamedTuple):
    """Fields that do not map one to one to ours: their names, and the functions that read and write them."""

    names: tuple[str, ...] = ()
    # From all fields of the file and the number of layers: fields of ours, and problems
    read: Callable[[Mapping[str, Any], int], tuple[dict[str, Any], list[str]]] = lambda fields, num_layers: ({}, [])
    write: Callable[[Any], dict[str, Any]] = lambda config: {}
    kinds: Mapping[str, Kind] = {}  # of fields that `read` uses without looking at their kind


@dataclass(frozen=True)
class ConfigFile:
    """One family's `config.json`."""

    called: str  # for messages: "a BERT"
    model_type: str
    names: Mapping[str, str]  # our field -> the name in the file; among them hidden_size and num_heads
    # The class of transformers for each set of heads, sorted by name; () is the encoder alone.
    architectures: Mapping[tuple[str, ...], str]
    # Further values of `model_type`, each with the beginning of its classes: "xlm-roberta" -> "XLMRoberta". A family
    # with such values keeps the one of a model in its configuration, as `model_type`.
    variants: Mapping[str, str] = field(default_factory=dict)
    only: Mapping[str, Any] = field(default_factory=dict)  # as `ONLY`, for this family
    harmless: frozenset[str] = frozenset()  # as `HARMLESS`, for this family
    written: Mapping[str, Any] = field(default_factory=dict)  # further fields of a file that we write
    defaults: Mapping[str, Any] = field(default_factory=dict)  # of fields that a file lacks, where ours differ
    more: MoreFields = field(default_factory=MoreFields)
    # For fields whose numbers differ from ours: our fields from those read, and the file's fields from those to write.
    to_ours: Callable[[dict[str, Any]], dict[str, Any]] = lambda values: values
    to_theirs: Callable[[dict[str, Any]], dict[str, Any]] = lambda fields: fields

    def read_folder(
        self, kind: Any, folder: str | Path, called: str, read_fields: Callable[[str | Path], Any] | None = None
    ) -> Any:
        """Return the configuration of a folder, from its `config.json`, or from the fields of several files."""
        path = Path(folder) / "config.json"
        if not path.is_file():
            raise FileNotFoundError(
                f"{folder} has no config.json, which holds the sizes of the {called}: copy it there, or give config="
            )
        if read_fields is None:
            return self.read(kind, path)
        try:
            return self.read(kind, read_fields(folder))
        except ValueError as error:
            raise ValueError(str(error).replace("The configuration", str(path), 1)) from None

    def read(self, config: type[Any], source: Mapping[str, Any] | str | Path) -> Any:
        """Return the configuration in a file, by path or content; raise on fields that cannot be honoured.

        A field of unknown meaning is logged, or refused inside `refuse_unknown_fields`.
        """
        where, fields = ("The configuration", source) if isinstance(source, Mapping) else (source, read_json(source))
        check_fields(fields, {**READ_FIELDS, **self.more.kinds}, where)
        fields = {**self.defaults, **fields}
        values = {
            ours: _typed(config, ours, theirs, fields[theirs], where)
            for ours, theirs in self.names.items()
            if fields.get(theirs) is not None
        }
        sizes = (values.get(name, getattr(config, name)) for name in ("hidden_size", "num_heads", "num_layers"))
        hidden_size, num_heads, num_layers = sizes
        if num_layers > MOST_LAYERS:
            raise ValueError(
                f"{where}: {self.names['num_layers']} is {num_layers:,}; at most {MOST_LAYERS:,} are possible"
            )
        if num_heads < 1 or hidden_size < 1:
            raise ValueError(
                f"{where}: {self.names['num_heads']} is {num_heads} and {self.names['hidden_size']} {hidden_size}; "
                "both are at least 1"
            )
        further, problems = self.more.read(fields, num_layers)
        values |= further
        problems += self._problems(fields, hidden_size, num_heads)
        unknown = self._unknown_fields(fields)
        problems += unknown if STRICT.get() else []
        if problems:
            raise ValueError(
                f"{where} does not describe {self.called} that can be honoured:\n- " + "\n- ".join(problems)
            )
        for message in unknown:
            logging.getLogger(__name__).warning("%s: %s; it is ignored, as transformers does", where, message)
        try:
            return config(**self.to_ours(values))
        except ValueError as error:
            names = ", ".join(f"{ours} is its {theirs}" for ours, theirs in self.names.items() if ours in str(error))
            raise ValueError(f"{where}: {error}" + (f" ({names})" if names else "")) from None

    def write(self, config: Any, heads: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the content of the file for a model with these heads (the keys of the parameter tree)."""
        heads = tuple(sorted(heads))
        if heads not in self.architectures:
            described = "; ".join(", ".join(names) or "none" for names in self.architectures)
            raise ValueError(
                f"transformers has no {self._title} with the heads {', '.join(heads)}; it has: {described}"
            )
        model_type = getattr(config, "model_type", self.model_type)
        return {
            "architectures": [self.class_of(heads, model_type)],
            "model_type": model_type,
            **self.written,
            **self.to_theirs({theirs: getattr(config, ours) for ours, theirs in self.names.items()}),
            **self.more.write(config),
        }

    def class_of(self, heads: tuple[str, ...], model_type: str | None = None) -> str | None:
        """Return the class of transformers for a set of heads, of one of the family's `model_type`s.

        >>> classes = {(): "RobertaModel", ("tag",): "RobertaForTokenClassification"}
        >>> file = ConfigFile("a RoBERTa", "roberta", {}, classes, variants={"xlm-roberta": "XLMRoberta"})
        >>> file.class_of(("tag",), "xlm-roberta")
        'XLMRobertaForTokenClassification'
        """
        name = self.architectures.get(heads)
        title = self.variants.get(model_type or "")
        if name is None or title is None:
            return name
        return title + name.removeprefix(self.architectures[()].removesuffix("Model"))

    @property
    def _title(self) -> str:
        return self.called.split(" ", 1)[1]

    def _problems(self, fields: Mapping[str, Any], hidden_size: Any, num_heads: Any) -> list[str]:
        """Return a message for each field with an unsupported value."""
        known_type = fields.get("model_type") if fields.get("model_type") in self.variants else self.model_type
        only = {"model_type": known_type, **ONLY, **self.only}
        harmless = {*self.names.values(), *self.more.names, *self.harmless}
        if not self._scores_words(fields):
            harmless.add("tie_word_embeddings")
        problems = [
            f"{name} is {fields[name]!r}; only {supported!r} is supported"
            for name, supported in only.items()
            if fields.get(name) is not None and fields[name] != supported and name not in harmless
        ]
        if "embedding_size" not in self.names.values() and fields.get("embedding_size", hidden_size) != hidden_size:
            problems.append(
                f"embedding_size is {fields['embedding_size']!r} but hidden_size is {hidden_size}; {self._title}'s "
                "are the same"
            )
        problems += [
            f"{name} is {fields[name]!r}; a head of {self._title} has {self.names['hidden_size']} / "
            f"{self.names['num_heads']} = {hidden_size} / {num_heads} = {hidden_size / num_heads:g} elements"
            for name in HEAD_SIZES
            if fields.get(name) is not None and fields[name] * num_heads != hidden_size
        ]
        return problems

    def _scores_words(self, fields: Mapping[str, Any]) -> bool:
        """Return False if all `architectures` of a file are classes without a decoder of words."""
        plain = [self.class_of((), fields.get("model_type"))] if ("mlm",) in self.architectures else []
        names = fields.get("architectures") or [""]
        return not all(name in plain or name.endswith(TASK_ENDINGS) for name in names)

    def _unknown_fields(self, fields: Mapping[str, Any]) -> list[str]:
        """Return a message for each field of unknown meaning."""
        names = {*self.names.values(), *self.more.names, *ONLY, *self.only, *HEAD_SIZES, "embedding_size", "model_type"}
        own_code = [describe_own_code(fields)] if fields.get("auto_map") else []
        return own_code + [
            f"{name} is {fields[name]!r:.60}, a field of unknown meaning{did_you_mean(name, sorted(names))}"
            for name in sorted(set(fields) - names - HARMLESS - self.harmless - {"auto_map"})
        ]


def read_spelled(values: Mapping[str, Any], kind: Kind, problems: list[str]) -> Any:
    """Return the value of a field with several spellings, None without one; append what is wrong to the problems.

    >>> problems = []
    >>> read_spelled({"rope_theta": 1e4, "rope_parameters.rope_theta": 5.0}, FINITE, problems), problems
    (None, ['rope_theta is 10000.0 but rope_parameters.rope_theta is 5.0: delete one of them'])
    """
    values = {name: value for name, value in values.items() if value is not None}
    wrong = [
        f"{name} is {value!r:.60}; it must be {kind.called}"
        for name, value in values.items()
        if not kind.accepts(value)
    ]
    if not wrong and len(set(values.values())) > 1:
        wrong = [" but ".join(f"{name} is {value!r}" for name, value in values.items()) + ": delete one of them"]
    problems += wrong
    return None if wrong else next(iter(values.values()), None)


def read_theta(group: Any, name: str, older: Mapping[str, Any], problems: list[str]) -> float | None:
    """Return the base of rotary angles from an object of that name, or from an older field; None without one."""
    group = {} if group is None else group
    if not isinstance(group, Mapping):
        problems.append(f"{name} is {group!r:.60}; it is an object with rope_theta")
        return None
    allowed: dict[str, Any] = {"rope_type": "default", "type": "default", "partial_rotary_factor": 1.0}
    problems += [
        f"{field} of {name} is {value!r:.60}; "
        + (f"only {allowed[field]!r} is supported" if field in allowed else "it has no known meaning")
        for field, value in group.items()
        if field != "rope_theta" and value is not None and value != allowed.get(field)
    ]
    theta = read_spelled({**older, f"{name}.rope_theta": group.get("rope_theta")}, FINITE, problems)
    return None if theta is None else float(theta)  # files have 250000


def describe_own_code(fields: Mapping[str, Any]) -> str:
    """Return the message about a model with code of its own, which `auto_map` names.

    >>> describe_own_code({"auto_map": {"AutoModel": "modeling_new.NewModel"}})
    'auto_map names code of the model (modeling_new.NewModel), which is never run'
    """
    auto_map = fields["auto_map"]
    named = ", ".join(map(str, auto_map.values())) if isinstance(auto_map, Mapping) else str(auto_map)
    return f"auto_map names code of the model ({named:.100}), which is never run"


@contextlib.contextmanager
def refuse_unknown_fields() -> Iterator[None]:
    """Refuse the fields of unknown meaning of every `config.json` that is read inside."""
    token = STRICT.set(True)
    try:
        yield
    finally:
        STRICT.reset(token)


def class_names(title: str, **endings: str) -> dict[tuple[str, ...], str]:
    """Return the classes of transformers for the encoder alone and for each head; `endings` are of further heads.

    >>> class_names("Electra", replaced="ForPreTraining")[("replaced",)]
    'ElectraForPreTraining'
    """
    heads: dict[tuple[str, ...], str] = {(head,): title + end for head, end in (CLASS_ENDINGS | endings).items()}
    return {(): f"{title}Model"} | heads


def _typed(config: type[Any], ours: str, theirs: str, value: Any, where: str | Path) -> Any:
    kind = next(part.type for part in dataclasses.fields(config) if part.name == ours)
    is_int = isinstance(value, int) and not isinstance(value, bool)
    if kind in (str, bool) and isinstance(value, kind):
        return value
    if is_int and int in (kind, *get_args(kind)):
        if abs(value) > LARGEST:
            raise ValueError(f"{where}: {theirs} is {value:,}; at most {LARGEST:,} is possible")
        return value
    if choices := [choice for choice in get_args(kind) if isinstance(choice, str)]:
        if value not in choices:
            raise ValueError(f"{where}: {theirs} is {value!r}; it is one of {', '.join(choices)}")
        return value
    if kind not in KINDS and (is_int or isinstance(value, float)) and abs(value) <= LARGEST_NUMBER:
        return float(value)
    raise ValueError(f"{where}: {theirs} is {value!r}; it must be {KINDS.get(kind, 'a number')}")
