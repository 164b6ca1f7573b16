"""The contents of a `tokenizer.json`: compiling them, and finding their special pieces and their frame.

A *spec* is such a file as a dict. The library `tokenizers` runs it, so its rules of normalisation and splitting hold as
they are written.
"""

import json
import logging
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as LibraryTokenizer

from bert_elmo_jax.files import read_json
from bert_elmo_jax.text.encoding import Frame
from bert_elmo_jax.text.tokenizer import CLS, MASK, PAD, PROJECT_KEY, SEP, UNK
from bert_elmo_jax.text.tokenizer_checks import CHILDREN, CONFIG_FIELDS, list_values, read_tokenizer_config

Spec = dict[str, Any]
PARTS = ("normalizer", "pre_tokenizer", "post_processor", "decoder", "model")
KINDS = ("pad", "unk", "cls", "sep", "mask")
USUAL_NAMES = {
    "pad": (PAD, "<pad>"),
    "unk": (UNK, "<unk>"),
    "cls": (CLS, "<s>", "<cls>"),
    "sep": (SEP, "</s>", "<sep>"),
    "mask": (MASK, "<mask>"),
}
END = "<|endoftext|>"  # the only special piece of generative models
SUFFIX = "</w>"  # ends a word in the pieces of GPT-1
TEXT_FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}  # of an added piece
FRAMES = ("RobertaProcessing", "BertProcessing", "TemplateProcessing")  # parts that add special pieces to a text
UNFRAMED_CLASSES = ("GPT2Tokenizer", "GPT2TokenizerFast")  # no piece is added to a text, with any vocabulary
SPEC_CLASSES = ("PreTrainedTokenizerFast", "TokenizersBackend")  # classes that read only tokenizer.json
EMPTY: Spec = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": []} | dict.fromkeys(PARTS)
TINY = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}


def compile_spec(spec: Spec, source: str) -> LibraryTokenizer:
    """Return the library's tokenizer; raise with the part that the library does not know.

    Truncation and padding are dropped: they belong to batches, not to texts.
    """
    try:
        return LibraryTokenizer.from_str(json.dumps(EMPTY | spec | {"truncation": None, "padding": None}))
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        raise ValueError(f"{source}: {_find_culprit(spec, error)}") from None


def index_pieces(spec: Spec, source: str) -> dict[str, int]:
    """Return the id of each piece, as the library numbers them: the model's, then added ones that it lacks.

    >>> index_pieces({"model": {"vocab": {"a": 0}}, "added_tokens": [{"content": "a"}, {"content": "<s>"}]}, "x")
    {'a': 0, '<s>': 1}
    """
    try:
        vocabulary = spec["model"]["vocab"]
        listed = not isinstance(vocabulary, dict)
        index = {piece: number for number, (piece, _) in enumerate(vocabulary)} if listed else dict(vocabulary)
        for entry in spec.get("added_tokens") or []:
            index.setdefault(entry["content"], len(index))
    except (KeyError, TypeError, ValueError):
        return compile_spec(spec, source).get_vocab(with_added_tokens=True)  # raises, and says what is wrong
    return index


def _find_culprit(spec: Spec, error: BaseException) -> str:
    wrong = []
    for name in PARTS:
        part = spec.get(name)
        if isinstance(part, dict) and not _compiles({name: part}):
            children = [child for key in CHILDREN for child in part.get(key) or []]
            unknown = next((child for child in children if not _compiles({name: child})), part)
            wrong.append(f"{name} is {(unknown.get('type') if isinstance(unknown, dict) else unknown)!r}")
    if not wrong:
        return f"the library tokenizers cannot read it ({error}); copy the file again"
    return (
        f"{', '.join(wrong)}, which the library tokenizers cannot run in this form ({error}); correct it, or "
        "install the version of tokenizers that wrote the file"
    )


def _compiles(parts: Spec) -> bool:
    try:
        LibraryTokenizer.from_str(json.dumps(EMPTY | {"model": TINY} | parts))
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return False
    return True


def cleaning_spec(*, split_chinese: bool, strip_accents: bool | None, lowercase: bool) -> Spec:
    """Return the part of a spec that cleans whitespace and control characters as BERT does."""
    options = {"handle_chinese_chars": split_chinese, "strip_accents": strip_accents, "lowercase": lowercase}
    return {"type": "BertNormalizer", "clean_text": True, **options}


def make_template(single: str, pair: str, ids: Mapping[str, int]) -> Spec:
    """Return the part of a spec that frames texts; `A` and `B` are the texts, `:1` for the second type.

    >>> make_template("[CLS] A", "[CLS] A B:1", {"[CLS]": 2})["pair"][1:]
    [{'Sequence': {'id': 'A', 'type_id': 0}}, {'Sequence': {'id': 'B', 'type_id': 1}}]
    """

    def steps(template: str) -> list[Spec]:
        parts = [step.partition(":") for step in template.split()]
        return [
            {"Sequence" if name in "AB" else "SpecialToken": {"id": name, "type_id": int(text_type or 0)}}
            for name, _, text_type in parts
        ]

    specials = {piece: {"id": piece, "ids": [number], "tokens": [piece]} for piece, number in ids.items()}
    return {
        "type": "TemplateProcessing", "single": steps(single), "pair": steps(pair), "special_tokens": specials,
    }  # fmt: skip


def find_parts(part: Any, kind: str) -> list[dict[str, Any]]:
    """Return the parts of a type in a part of a spec, which may be a sequence of parts.

    >>> find_parts({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]}, "NFC")
    [{'type': 'NFC'}]
    """
    if not isinstance(part, dict):
        return []
    children = [child for key in CHILDREN for child in part.get(key) or []]
    inner = [match for child in children for match in find_parts(child, kind)]
    return [part, *inner] if part.get("type") == kind else inner


def read_settings(folder: Path) -> dict[str, Any]:
    """Return `tokenizer_config.json`, completed by the names of special pieces in `special_tokens_map.json`."""
    names = read_json(folder / "special_tokens_map.json", default={}, fields=CONFIG_FIELDS)
    return names | read_tokenizer_config(folder)


def find_special_ids(index: Mapping[str, int], settings: Mapping[str, Any], source: str) -> dict[str, int]:
    """Return the ids of the pad, unknown, cls, sep and mask pieces: those that the settings name, or usual names.

    A vocabulary without a first piece and a mask, as generative models have, gets the piece that ends a text for those
    that it lacks. GPT-2's tokenizer may have a first piece; its mask is then the unknown piece.

    >>> find_special_ids({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4}, {}, "x")
    {'pad': 1, 'unk': 3, 'cls': 0, 'sep': 2, 'mask': 4}
    >>> find_special_ids({"<|endoftext|>": 0}, {}, "x")["sep"]
    0
    """
    names = {kind: name_of(settings.get(f"{kind}_token")) for kind in (*KINDS, "bos", "eos")}
    absent = [f"{kind}_token {name!r}" for kind, name in names.items() if name is not None and name not in index]
    if absent:
        raise ValueError(f"{source} does not hold {', '.join(absent)} of its configuration files: one was replaced")
    candidates = {kind: [name for name in (names[kind], *USUAL_NAMES[kind]) if name] for kind in KINDS}
    ids = {kind: next((index[name] for name in candidates[kind] if name in index), None) for kind in KINDS}
    end = names["eos"] or END
    unframed = settings.get("tokenizer_class") in UNFRAMED_CLASSES
    if end in index and ids["mask"] is None and (ids["cls"] is None or unframed):
        ids |= {"sep": index[end], "mask": None if ids["cls"] is None else ids["unk"]}
        ids = {kind: index[end] if number is None else number for kind, number in ids.items()}
    if ids["mask"] is not None:  # encoders with the pieces of a generative model: its first and last ones are the frame
        framing = {"cls": index.get(names["bos"] or ""), "sep": index.get(names["eos"] or "")}
        framing["unk"] = ids["pad"]  # bytes need no unknown piece
        ids = {kind: framing.get(kind) if number is None else number for kind, number in ids.items()}
    missing = [f"{kind} ({' or '.join(USUAL_NAMES[kind][:2])})" for kind, number in ids.items() if number is None]
    if missing:
        raise ValueError(
            f"{source} has no piece for: {', '.join(missing)}. Encoders need all of them: use the tokenizer of the "
            "model, or name the pieces in tokenizer_config.json (mask_token and the like)."
        )
    return {kind: number for kind, number in ids.items() if number is not None}


def name_of(token: Any) -> str | None:
    """Return the name of a special piece in a configuration, a string or an object with its `content`.

    >>> name_of("<s>"), name_of({"content": "<s>"}), name_of(None)
    ('<s>', '<s>', None)
    """
    return token.get("content") if isinstance(token, dict) else token


def add_specials(
    spec: Spec, special_ids: Mapping[str, int], tokens: Mapping[int, str], settings: Mapping[str, Any]
) -> Spec:
    """Return the spec with its special pieces marked as such, so that literal ones differ from text."""
    stored = settings.get("added_tokens_decoder") or {}
    added = {entry["id"]: dict(entry) for entry in spec.get("added_tokens") or []}
    for kind, number in special_ids.items():
        setting = settings.get(f"{kind}_token")
        entry = stored.get(str(number)) or (setting if isinstance(setting, dict) else {})
        flags = TEXT_FLAGS | {name: entry[name] for name in TEXT_FLAGS if name in entry} | added.get(number, {})
        added[number] = flags | {"id": number, "content": tokens[number], "special": True}
    return spec | {"added_tokens": [added[number] for number in sorted(added)]}


def find_added(
    spec: Spec, settings: Mapping[str, Any], names: Mapping[str, int], index: Mapping[str, int]
) -> list[dict[str, Any]]:
    """Return the added pieces of a folder: each is one piece wherever it stands in a text, with its flags.

    They are those of `tokenizer.json`, and the pieces of the vocabulary that `tokenizer_config.json`, whose flags count
    more, or `added_tokens.json` (`names`) adds.

    >>> [piece] = find_added({}, {"additional_special_tokens": ["<e>", "<new>"]}, {}, {"a": 0, "<e>": 1})
    >>> piece["id"], piece["content"], piece["special"]
    (1, '<e>', True)
    """
    added = {entry["content"]: entry for entry in spec.get("added_tokens") or []}
    for number, entry in (settings.get("added_tokens_decoder") or {}).items():
        if index.get(piece := entry["content"]) == int(number):
            flags = {name: entry[name] for name in (*TEXT_FLAGS, "special") if name in entry}
            added[piece] = {"normalized": not entry.get("special", False)} | added.get(piece, {}) | flags
    specials = {name_of(settings.get(f"{kind}_token")) for kind in (*KINDS, "bos", "eos")}  # with flags of their own
    for kind in ("additional_special_tokens", "extra_special_tokens"):
        for entry in list_values(settings.get(kind)):
            flags = {name: entry[name] for name in TEXT_FLAGS if name in entry} if isinstance(entry, dict) else {}
            if type(index.get(piece := str(name_of(entry)))) is int and piece not in specials:
                added.setdefault(piece, flags | {"special": True})
    for piece, number in names.items():
        if index.get(piece) == number and piece not in specials:
            added.setdefault(piece, {"normalized": True})
    usual = TEXT_FLAGS | {"special": False}
    return [usual | {"id": index.get(piece), "content": piece} | entry for piece, entry in added.items()]


def hide_specials(spec: Spec, numbers: Sequence[int]) -> Spec:
    """Return the spec with special pieces under names that no text holds, so that a literal one is ordinary text."""
    secret = secrets.token_hex(8)  # a text could spell a name that is known
    names = {number: f"\uffff{number} {secret}\uffff" for number in numbers}
    model = spec["model"]
    if isinstance(model["vocab"], dict):
        vocabulary: Any = {names.get(number, piece): number for piece, number in model["vocab"].items()}
    else:
        vocabulary = [[names.get(number, piece), score] for number, (piece, score) in enumerate(model["vocab"])]
    added = [entry | {"content": names.get(entry["id"], entry["content"])} for entry in spec["added_tokens"]]
    return spec | {"added_tokens": added, "model": model | {"vocab": vocabulary}}


def has_frame(spec: Spec) -> bool:
    """Return True if the post-processor puts special pieces around texts."""
    return any(find_parts(spec.get("post_processor"), kind) for kind in FRAMES)


def warn_unframed(spec: Spec, settings: Mapping[str, Any], source: str) -> None:
    """Log it if transformers puts no special pieces around texts, which are put around them here."""
    if settings.get("tokenizer_class") in SPEC_CLASSES and PROJECT_KEY not in settings and not has_frame(spec):
        logging.getLogger(__name__).warning(
            "%s has no post_processor that puts special pieces around a text, so transformers puts none. Here a text "
            "gets the usual two: encoders need them. Use specials=False for none.",
            source,
        )


def find_frame(spec: Spec, special_ids: Mapping[str, int], source: str) -> Frame:
    """Return the special pieces that the post-processor puts around texts."""
    part = spec.get("post_processor")
    for processor in find_parts(part, "RobertaProcessing"):
        cls, sep = (processor[name][1] for name in ("cls", "sep"))
        return Frame((cls,), (sep, sep), (sep,), (0, 0))
    for processor in find_parts(part, "BertProcessing"):
        cls, sep = (processor[name][1] for name in ("cls", "sep"))
        return Frame((cls,), (sep,), (sep,))
    for processor in find_parts(part, "TemplateProcessing"):
        return _read_template(processor, source)
    cls, sep = special_ids["cls"], special_ids["sep"]
    return Frame() if cls == sep == special_ids["mask"] else Frame((cls,), (sep,), (sep,))


def _read_template(template: Mapping[str, Any], source: str) -> Frame:
    specials = {name: tuple(entry["ids"]) for name, entry in (template.get("special_tokens") or {}).items()}
    single, pair = ([_read_step(step, specials) for step in template[name]] for name in ("single", "pair"))
    try:
        [a] = [n for n, step in enumerate(pair) if step[0] == "A"]
        [b] = [n for n, step in enumerate(pair) if step[0] == "B"]
    except ValueError:
        a, b = 0, 0
    before, between, after = pair[:a], pair[a + 1 : b], pair[b + 1 :]
    types = (pair[a][1], pair[b][1])
    usual = (
        a < b
        and single == [*before, pair[a], *[(ids, types[0]) for ids, _ in after]]
        and all(kind == types[0] for _, kind in before + between)
        and all(kind == types[1] for _, kind in after)
    )
    if not usual:
        raise ValueError(
            f"{source}: the post_processor's template for pairs is not its template for one text, the pieces between "
            "two texts and the second text: such a frame is not supported"
        )
    ids = [tuple(number for step, _ in part for number in step) for part in (before, between, after)]
    return Frame(ids[0], ids[1], ids[2], types)


def _read_step(step: Mapping[str, Any], specials: Mapping[str, Sequence[int]]) -> tuple[Any, int]:
    if "Sequence" in step:
        return step["Sequence"]["id"], step["Sequence"]["type_id"]
    return specials[step["SpecialToken"]["id"]], step["SpecialToken"]["type_id"]
