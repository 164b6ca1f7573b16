"""Read the JSON files of tokenizers, and refuse those that the libraries would run without end, or crash on."""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from bert_elmo_jax.files import read_json
from bert_elmo_jax.json_values import (
    DEEPEST,
    LIST,
    NUMBER,
    OBJECT,
    TEXT,
    TRUTH,
    Fields,
    Kind,
    any_of,
    check_fields,
    list_of,
    one_of,
    whole_number,
)
from bert_elmo_jax.text.patterns import check_pattern

CONFIG = "tokenizer_config.json"
CHILDREN = ("normalizers", "pretokenizers", "processors", "decoders")  # of a part that is a sequence
PARTS = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
MOST_GROWTH = 1000  # times that all `Replace`s of a tokenizer may lengthen a text together; characters of a `Prepend`
MOST_STEPS = 1000  # of a normalizer, a pre-tokenizer, a post-processor or a decoder; published ones have up to about 60
MOST_ADDED, LONGEST_ADDED = 20_000, 1000  # added pieces, and characters of one; the library takes seconds for more
IDS = whole_number(0, 10**8)
STEPS = ("Sequence", "SpecialToken")  # of a template
PIECE = Kind("a text, or an object with its content", lambda value: isinstance(value, str) or _has_content(value))
PIECES = Kind(
    "pieces in a list or an object",
    lambda value: isinstance(value, list | dict) and all(map(PIECE.accepts, list_values(value))),
)
CONFIG_FIELDS: Fields = {
    **{f"{name}_token": PIECE for name in ("pad", "unk", "cls", "sep", "mask", "bos", "eos")},
    "added_tokens_decoder": Kind(
        "an object of pieces with their content",
        lambda value: isinstance(value, dict) and all(key.isdecimal() and _has_content(value[key]) for key in value),
    ),
    **dict.fromkeys(
        ("do_lower_case", "strip_accents", "tokenize_chinese_chars", "add_prefix_space", "trim_offsets",
         "separate_vocabs", "do_basic_tokenize", "keep_accents", "remove_space", "split_by_punct",
         "split_special_tokens"),
        TRUTH,
    ),
    **dict.fromkeys(("additional_special_tokens", "extra_special_tokens"), PIECES),
    "model_input_names": list_of(TEXT),
    "model_max_length": NUMBER,
    "tokenizer_class": TEXT,
    "truncation_side": one_of("left", "right"),
}  # fmt: skip
ADDED = Kind(
    "a list of pieces with an id each",
    lambda value: (
        isinstance(value, list) and all(_has_content(entry) and IDS.accepts(entry.get("id")) for entry in value)
    ),
)
NAMED = Kind("a piece and its id", lambda value: isinstance(value, list) and len(value) == 2 and IDS.accepts(value[1]))
SPEC_FIELDS: Fields = {"added_tokens": ADDED, "model": OBJECT, **dict.fromkeys(PARTS, OBJECT)}
MODEL_FIELDS: Fields = {
    "type": TEXT, "vocab": any_of(OBJECT, LIST), "merges": LIST, "unk_token": TEXT, "unk_id": IDS, "dropout": NUMBER,
    "continuing_subword_prefix": TEXT, "end_of_word_suffix": TEXT, "byte_fallback": TRUTH, "fuse_unk": TRUTH,
    "ignore_merges": TRUTH, "max_input_chars_per_word": whole_number(1),
}  # fmt: skip
RANDOM = "%s: dropout %r of its BPE would cut texts another way in every call; it belongs to training, and is off here"


# Special pieces, bytes, and the fillers of RoBERTa.
UNMERGED = re.compile(r"<.*>|\[.*\]|madeupword\d+", re.S)


def list_values(pieces: list[Any] | dict[str, Any] | None) -> list[Any]:
    """Return the pieces of a configuration, which lists them or gives each a name.

    >>> list_values(["<e>"]), list_values({"image_token": "<i>"}), list_values(None)
    (['<e>'], ['<i>'], [])
    """
    return list(pieces.values() if isinstance(pieces, dict) else pieces or [])


def leaves_out_types(config: Mapping[str, Any]) -> bool:
    """Return True if a configuration lists what the network reads, and no types are among it.

    >>> leaves_out_types({"model_input_names": ["input_ids", "attention_mask"]}), leaves_out_types({})
    (True, False)
    """
    names = config.get("model_input_names")
    return names is not None and "token_type_ids" not in names


def _has_content(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("content"), str)


def read_tokenizer_config(folder: Path) -> dict[str, Any]:
    """Return the `tokenizer_config.json` of a folder, {} without the file; raise on a field of another kind.

    >>> read_tokenizer_config(Path("tests/goldens/bert_tiny"))
    {}
    """
    config = read_json(folder / CONFIG, default={}, fields=CONFIG_FIELDS)
    if config.get("split_special_tokens"):
        raise ValueError(
            f"{folder / CONFIG}: split_special_tokens is true; only false is supported: encode reads a special piece "
            "in a text as that piece. Write false; encode_lines reads it as ordinary text."
        )
    return config


def names_class(folder: Path, classes: Sequence[str], model_types: Sequence[str]) -> bool:
    """Return True if a folder names one of these tokenizers, or else one of these models."""
    named = read_tokenizer_config(folder).get("tokenizer_class")
    if named is not None:
        return named in classes
    return read_json(folder / "config.json", default={}).get("model_type") in model_types


def read_added(folder: Path) -> dict[str, int]:
    """Return the pieces of an `added_tokens.json` with their ids, {} without the file."""
    file = folder / "added_tokens.json"
    names = read_json(file, default={})
    check_fields(names, dict.fromkeys(names, IDS), file)
    return names


def read_spec(file: Path) -> dict[str, Any]:
    """Return a `tokenizer.json`, {} without the file; raise if it cannot be one.

    >>> sorted(read_spec(Path("tests/goldens/gpt2_tiny/tokenizer.json")))[:3]
    ['added_tokens', 'decoder', 'model']
    """
    spec = read_json(file, default={})
    check_spec(spec, str(file))
    return spec


def check_spec(spec: Mapping[str, Any], source: str) -> None:
    """Raise if a part of a tokenizer has a wrong type, never ends, or would make a text a thousand times as long.

    >>> check_spec({"normalizer": {"type": "Replace", "pattern": {"String": ""}, "content": "a"}}, "tokenizer.json")
    Traceback (most recent call last):
    ValueError: tokenizer.json: a Replace of the normalizer replaces nothing at all ({'String': ''}): copy the file ...
    """
    check_fields(spec, SPEC_FIELDS, source)
    check_fields(spec.get("model") or {}, MODEL_FIELDS, f"{source}: model")
    added, growth = spec.get("added_tokens") or [], 1
    if len(added) > MOST_ADDED or any(len(entry["content"]) > LONGEST_ADDED for entry in added):
        raise ValueError(
            f"{source}: at most {MOST_ADDED:,} added pieces of {LONGEST_ADDED:,} characters are supported; it has "
            f"{len(added):,}, the longest of {max(len(entry['content']) for entry in added):,}"
        )
    for name in PARTS:
        for number, part in enumerate(_list_parts(spec.get(name), f"{source}: {name}"), start=1):
            if number > MOST_STEPS:
                raise ValueError(f"{source}: its {name} has more than {MOST_STEPS:,} steps: copy the file again")
            _check_regex(part, f"{source}: a {part['type']:.40} of the {name}")
            if part.get("type") == "TemplateProcessing":
                _check_template(part, f"{source}: {name}")
            if part.get("type") in ("RobertaProcessing", "BertProcessing"):
                check_fields(part, {"sep": NAMED, "cls": NAMED}, f"{source}: {name}")
            if part.get("type") == "Prepend" and len(str(part.get("prepend"))) > MOST_GROWTH:
                raise ValueError(
                    f"{source}: a Prepend of the {name} puts more than {MOST_GROWTH:,} characters before a text"
                )
            if part.get("type") != "Replace" or name == "decoder":
                continue
            pattern, content = part.get("pattern"), part.get("content")
            if not isinstance(pattern, dict) or not all(pattern.values()):
                raise ValueError(
                    f"{source}: a Replace of the {name} replaces nothing at all ({pattern!r:.60}): copy the file again"
                )
            growth *= max(1, len(content)) if isinstance(content, str) else 1
    if growth > MOST_GROWTH:
        raise ValueError(
            f"{source}: its Replaces make a text up to {growth:,} times as long, at most {MOST_GROWTH:,} is possible: "
            "copy the file again"
        )


def _list_parts(part: Any, where: str, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yield a part and all parts below it; raise on a part that is none."""
    if part is None:
        return
    if depth > DEEPEST:
        raise ValueError(f"{where} is nested too deeply")
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        raise ValueError(f"{where} has the part {part!r:.60}; expected an object with a type")
    yield part
    for key in CHILDREN:
        children = part.get(key)
        if children is not None and not isinstance(children, list):
            raise ValueError(f"{where}: {key} is {children!r:.60}; expected a list")
        for child in children or []:
            yield from _list_parts(child, where, depth + 1)


def _check_regex(part: Mapping[str, Any], where: str) -> None:
    pattern = part.get("pattern")
    if isinstance(pattern, dict) and isinstance(regex := pattern.get("Regex"), str):
        try:
            check_pattern(regex)
        except ValueError as error:
            raise ValueError(f"{where}: its pattern {error}; a text could be searched without end") from None


def _check_template(part: Mapping[str, Any], where: str) -> None:
    specials = part.get("special_tokens")
    try:
        names = {
            name for name, entry in dict(specials or {}).items() if entry["ids"] and all(map(IDS.accepts, entry["ids"]))
        }
        steps = [step for form in ("single", "pair") for step in part[form]]
        ends = [(kind, inner["id"], inner["type_id"]) for step in steps for kind, inner in step.items()]
        if len(ends) != len(steps) or not all(kind in STEPS and IDS.accepts(number) for kind, _, number in ends):
            raise ValueError("a step of another kind")
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ValueError(f"{where}: its template cannot be read; expected single, pair and special_tokens") from None
    if lacking := sorted({str(name) for kind, name, _ in ends if kind == "SpecialToken" and name not in names}):
        raise ValueError(f"{where}: its template has {', '.join(lacking)}, which its special_tokens do not list")
    if not part["single"] or not part["pair"]:
        raise ValueError(f"{where}: its template is empty; expected single and pair with the texts A and B")


def check_reached(vocabulary: Mapping[str, int], merges: Iterable[Sequence[str]], problem: str, place: str) -> None:
    """Raise if no merge gives many pieces of a vocabulary, because merges are missing; log it for a few.

    Special pieces have no merges.

    >>> check_reached({"a": 0, "b": 1, "ab": 2, "<s>": 3}, [("a", "b")], "merges.txt may be cut short", "vocab.json")
    """
    reached = {"".join(pair) for pair in merges}
    lost = [piece for piece in vocabulary if piece not in reached and len(piece.removesuffix("</w>")) > 1]
    lost = [piece for piece in lost if not UNMERGED.fullmatch(piece)]
    if not lost:
        return
    count = f"{len(lost):,} piece{'s' * (len(lost) > 1)} of {place}"
    message = f"{problem}: no merge gives {count}, such as {lost[-1]!r}; copy the files of one model again"
    if len(lost) > max(9, len(vocabulary) // 50):
        raise ValueError(message)
    logging.getLogger(__name__).warning("%s", message)


def check_merges(spec: Mapping[str, Any], source: str) -> None:
    """Raise if a BPE has a vocabulary and few merges, so that texts would be cut into single characters."""
    model = spec.get("model") or {}
    vocabulary, merges = model.get("vocab"), model.get("merges")
    if model.get("type") != "BPE" or model.get("ignore_merges") or not isinstance(vocabulary, dict):
        return
    added = {entry["content"] for entry in spec.get("added_tokens") or []}
    if isinstance(merges, list) and len(merges) < len(vocabulary) // 2:  # usual files have one for each longer piece
        pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in merges]
        if all(isinstance(pair, list | tuple) and all(isinstance(part, str) for part in pair) for pair in pairs):
            pieces = {piece: number for piece, number in vocabulary.items() if piece not in added}
            check_reached(pieces, pairs, f"{source}: its merges are not complete", "its vocabulary")


def without_dropout(spec: dict[str, Any], source: str) -> dict[str, Any]:
    """Return a tokenizer that cuts a text always the same way; log it if the file asks for another.

    >>> without_dropout({"model": {"type": "BPE", "dropout": 0.0}}, "tokenizer.json")
    {'model': {'type': 'BPE', 'dropout': None}}
    """
    model = spec.get("model") or {}
    if model.get("dropout") is None:
        return spec
    if model["dropout"] != 0:
        logging.getLogger(__name__).warning(RANDOM, source, model["dropout"])
    return spec | {"model": model | {"dropout": None}}


def raise_clearly(error: BaseException, source: str) -> NoReturn:
    """Raise a ValueError for a panic of the library `tokenizers`, which is no `Exception`; raise any other error.

    >>> raise_clearly(KeyError("a"), "tokenizer.json")
    Traceback (most recent call last):
    KeyError: 'a'
    """
    if type(error).__name__ != "PanicException":
        raise error
    reason = (str(error).splitlines() or ["no reason given"])[0][:120]
    raise ValueError(f"{source}: the library tokenizers crashes on it ({reason}): its rules are damaged") from None


def check_sentencepiece(model: bytes, source: str) -> None:
    """Raise if a SentencePiece model lacks one of the parts that are written last: it was cut between two fields."""
    from sentencepiece import sentencepiece_model_pb2

    try:
        proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    except Exception as error:  # protobuf's errors have no public class
        raise ValueError(f"{source} is not a SentencePiece model, or an incomplete one ({error})") from None
    lacking = [name for name in ("trainer_spec", "normalizer_spec") if not proto.HasField(name)]
    if lacking:
        raise ValueError(
            f"{source} is not a SentencePiece model, or an incomplete one: it has {len(proto.pieces):,} pieces and no "
            f"{' and no '.join(lacking)}; copy it again"
        )
