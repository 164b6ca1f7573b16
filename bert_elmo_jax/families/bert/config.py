"""BERT's configuration, and its conversion from and to Google's and Hugging Face's JSON files."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.families.family import check_choices
from bert_elmo_jax.files import read_json
from bert_elmo_jax.nn import activation

PRESETS: dict[str, dict[str, int]] = {
    "tiny": {"num_layers": 2, "hidden_size": 128, "num_heads": 2, "feed_forward_size": 512},
    "mini": {"num_layers": 4, "hidden_size": 256, "num_heads": 4, "feed_forward_size": 1024},
    "small": {"num_layers": 4, "hidden_size": 512, "num_heads": 8, "feed_forward_size": 2048},
    "medium": {"num_layers": 8, "hidden_size": 512, "num_heads": 8, "feed_forward_size": 2048},
    "base": {"num_layers": 12, "hidden_size": 768, "num_heads": 12, "feed_forward_size": 3072},
    "large": {"num_layers": 24, "hidden_size": 1024, "num_heads": 16, "feed_forward_size": 4096},
}
PRESETS["multilingual"] = PRESETS["base"] | {"vocab_size": 119547}

# Our name -> the name in both JSON files; Google's BERT has the defaults of the last three.
NAMES = {
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

# Fields that change the model, with the only supported value (a missing field is fine too).
ONLY = {
    "model_type": "bert",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "is_encoder_decoder": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
    "tie_encoder_decoder": False,
    "pruned_heads": {},
    "quantization_config": {},
    "directionality": "bidi",
    "pooler_type": "first_token_transform",
}

# Fields that do not change the numbers: bookkeeping, tokenizer, task labels (read by the weight formats), memory and
# speed of another program, text generation.
HARMLESS = frozenset(
    """
    architectures _name_or_path name_or_path _commit_hash transformers_version torch_dtype dtype model_max_length
    tokenizer_class do_lower_case language finetuning_task problem_type num_labels id2label label2id
    task_specific_params return_dict use_return_dict output_attentions output_hidden_states output_past
    gradient_checkpointing use_cache chunk_size_feed_forward torchscript use_bfloat16 xla_device tf_legacy_loss
    attn_implementation _attn_implementation _attn_implementation_autoset _attn_implementation_internal auto_map
    bos_token_id eos_token_id sep_token_id cls_token_id mask_token_id unk_token_id decoder_start_token_id eos_token_ids
    pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head cross_attention_hidden_size
    do_sample early_stopping num_beams num_beam_groups diversity_penalty temperature top_k top_p typical_p
    repetition_penalty length_penalty no_repeat_ngram_size encoder_no_repeat_ngram_size bad_words_ids max_length
    min_length num_return_sequences output_scores return_dict_in_generate forced_bos_token_id forced_eos_token_id
    remove_invalid_values exponential_decay_length_penalty suppress_tokens begin_suppress_tokens prefix
    """.split()
)

# Other programs' names for the width of an attention head, which follows from two other fields.
HEAD_SIZES = ("head_dim", "head_size", "attention_head_size", "size_per_head")

ARCHITECTURES = {
    (): "BertModel",
    ("mlm",): "BertForMaskedLM",
    ("mlm", "nsp"): "BertForPreTraining",
    ("nsp",): "BertForNextSentencePrediction",
    ("classify",): "BertForSequenceClassification",
    ("choice",): "BertForMultipleChoice",
    ("tag",): "BertForTokenClassification",
    ("span",): "BertForQuestionAnswering",
}


@dataclass(frozen=True)
class BertConfig:
    """The sizes of a BERT and how to compute it; from `preset`, `from_json`, or by hand.

    The last four fields change neither the parameters nor (beyond rounding, for `dtype`) the numbers: `implementation`
    of attention ("reference", "fused", or on a TPU "splash"), `remat` (the backward pass computes the layers again),
    `scan` (one layer is compiled and looped over), `dtype` ("float32" or "bfloat16" for the layers; parameters,
    softmax, statistics and logits are always float32).
    """

    vocab_size: int = 30522
    hidden_size: int = 768
    num_layers: int = 12
    num_heads: int = 12
    feed_forward_size: int = 3072
    max_positions: int = 512
    type_vocab_size: int = 2
    activation: str = "gelu"
    norm_eps: float = 1e-12
    dropout: float = 0.1
    attention_dropout: float = 0.1
    classifier_dropout: float | None = None
    initializer_range: float = 0.02
    pad_id: int = 0
    attention: Literal["bidirectional", "causal"] = "bidirectional"
    implementation: Literal["reference", "fused", "splash"] = "reference"
    remat: bool = False
    scan: bool = False
    dtype: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        activation(self.activation)
        for field in dataclasses.fields(self):
            if field.type is int and field.name != "pad_id" and getattr(self, field.name) < 1:
                raise ValueError(f"{field.name} is {getattr(self, field.name)}; it must be at least 1")
        if self.hidden_size % self.num_heads:
            raise ValueError(
                f"hidden_size {self.hidden_size} cannot be split evenly among num_heads {self.num_heads}; "
                "a head of BERT has hidden_size / num_heads elements, so choose a divisor"
            )
        for name in ("dropout", "attention_dropout", "classifier_dropout"):
            rate = getattr(self, name)
            if rate is not None and not 0 <= rate < 1:
                raise ValueError(f"{name} is {rate}; a dropout rate is at least 0 and below 1")
        if not 0 <= self.pad_id < self.vocab_size:
            raise ValueError(f"pad_id is {self.pad_id}; the vocabulary has the ids 0 to {self.vocab_size - 1}")
        check_choices(self)

    @property
    def head_size(self) -> int:
        """The width of one attention head."""
        return self.hidden_size // self.num_heads

    @property
    def head_dropout(self) -> float:
        """The dropout before a task's dense layer: `classifier_dropout`, or else the encoder's."""
        return self.dropout if self.classifier_dropout is None else self.classifier_dropout

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "BertConfig":
        """Return the configuration of a released size, with the fields in `changes` replaced."""
        if name not in PRESETS:
            raise ValueError(
                f"There is no preset {name!r}; there are {', '.join(PRESETS)}{did_you_mean(name, PRESETS)}"
            )
        return cls(**(PRESETS[name] | changes))

    @classmethod
    def from_json(cls, source: Mapping[str, Any] | str | Path) -> "BertConfig":
        """Read a `bert_config.json` or `config.json`, by path or content; raise on fields of unknown meaning."""
        where, fields = ("The configuration", source) if isinstance(source, Mapping) else (source, read_json(source))
        values = {
            ours: _typed(ours, theirs, fields[theirs], where)
            for ours, theirs in NAMES.items()
            if fields.get(theirs) is not None
        }
        problems = _problems(fields, values.get("hidden_size", cls.hidden_size), values.get("num_heads", cls.num_heads))
        if problems:
            raise ValueError(f"{where} does not describe a BERT that can be honoured:\n- " + "\n- ".join(problems))
        try:
            return cls(**values)
        except ValueError as error:
            names = ", ".join(f"{ours} is its {theirs}" for ours, theirs in NAMES.items() if ours in str(error))
            raise ValueError(f"{where}: {error}" + (f" ({names})" if names else "")) from None

    def to_huggingface(self, heads: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the content of a `config.json` for a model with these heads (the keys of the parameter tree)."""
        if tuple(sorted(heads)) not in ARCHITECTURES:
            known = "; ".join(", ".join(h) or "none" for h in ARCHITECTURES)
            raise ValueError(f"transformers has no BERT with the heads {', '.join(sorted(heads))}; it has: {known}")
        if self.attention != "bidirectional":
            raise ValueError(
                f"Hugging Face's config.json for an encoder cannot say attention={self.attention!r}; only "
                "bidirectional models are written"
            )
        return {
            "architectures": [ARCHITECTURES[tuple(sorted(heads))]],
            "model_type": "bert",
            "position_embedding_type": "absolute",
            **{theirs: getattr(self, ours) for ours, theirs in NAMES.items()},
        }


def _typed(ours: str, theirs: str, value: Any, where: str | Path) -> Any:
    kind = next(field.type for field in dataclasses.fields(BertConfig) if field.name == ours)
    if kind is str and isinstance(value, str):
        return value
    whole = isinstance(value, int) and not isinstance(value, bool)
    if kind is int and whole:
        return value
    if kind not in (str, int) and (whole or isinstance(value, float)):
        return float(value)
    wanted = "a name" if kind is str else "a whole number" if kind is int else "a number"
    raise ValueError(f"{where}: {theirs} is {value!r}; it must be {wanted}")


def _problems(fields: Mapping[str, Any], hidden_size: Any, num_heads: Any) -> list[str]:
    """Return a message for each field with an unsupported value or an unknown meaning."""
    problems = [
        f"{name} is {fields[name]!r}; only {wanted!r} is supported"
        for name, wanted in ONLY.items()
        if fields.get(name) is not None and fields[name] != wanted
    ]
    if fields.get("embedding_size", hidden_size) != hidden_size:
        problems.append(
            f"embedding_size is {fields['embedding_size']!r} but hidden_size is {hidden_size}; BERT's are the same"
        )
    problems += [
        f"{name} is {fields[name]!r}; a head of BERT has hidden_size / num_attention_heads = "
        f"{hidden_size} / {num_heads} = {hidden_size / num_heads:g} elements"
        for name in HEAD_SIZES
        if fields.get(name) is not None and fields[name] * num_heads != hidden_size
    ]
    known = {*NAMES.values(), *ONLY, *HEAD_SIZES, "embedding_size"}
    for name in sorted(set(fields) - known - HARMLESS):
        hint = did_you_mean(name, sorted(known))
        problems.append(f"{name} is {fields[name]!r}, a field of unknown meaning{hint}")
    return problems
