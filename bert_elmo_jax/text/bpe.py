"""BPE: the files `vocab.json` and `merges.txt`, and byte-level vocabularies trained here.

GPT-1's BPE marks the ends of words by `</w>`, and lower-cases and splits text as BERT does; all others are byte-level.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bert_elmo_jax.files import read_json, read_text
from bert_elmo_jax.text.tokenizer import CLS, PROJECT_KEY, SEP, SPECIALS
from bert_elmo_jax.text.tokenizer_checks import check_reached
from bert_elmo_jax.text.tokenizer_file import CHARACTERS, TokenizerFile
from bert_elmo_jax.text.tokenizer_folder import find_bpe, is_unframed
from bert_elmo_jax.text.tokenizer_specs import (
    SUFFIX,
    Spec,
    cleaning_spec,
    compile_spec,
    find_special_ids,
    make_template,
    name_of,
)

UNKNOWN = "<unk>"  # of GPT-1

# Cleaning as in BERT, composition, and single spaces, for vocabularies trained here.
NORMALIZER = {
    "type": "Sequence",
    "normalizers": [
        cleaning_spec(split_chinese=False, strip_accents=False, lowercase=False),
        {"type": "NFC"},
        {"type": "Replace", "pattern": {"Regex": " +"}, "content": " "},
        {"type": "Strip", "strip_left": True, "strip_right": True},
    ],
}


def read_vocabulary_and_merges(folder: Path, settings: Mapping[str, Any]) -> Spec:
    """Return `vocab.json` and `merges.txt` of a folder, or OpenAI's files, as the contents of a `tokenizer.json`.

    With `<s>` and `</s>` the texts are framed as `<s> a </s></s> b </s>`, with BERT's pieces as `[CLS] a [SEP] b [SEP]`
    with two types, where `[MASK]` swallows a space before it; a vocabulary without them has no frame, nor has GPT-2's.
    """
    pair = find_bpe(folder)
    missing = [name for name in pair if not (folder / name).is_file()]
    if missing:
        raise FileNotFoundError(
            f"{folder} lacks {missing[0]}: a BPE is {' and '.join(pair)} together, or a "
            "tokenizer.json. Copy the file from the model's folder."
        )
    file = folder / pair[0]
    vocabulary = read_json(file)
    if not all(type(number) is int for number in vocabulary.values()):
        raise ValueError(f"{file} is not a BPE vocabulary: expected an object that maps pieces to whole numbers")
    merges = read_merges(folder / pair[1], vocabulary)
    if is_suffix_bpe(merges, settings):
        return suffix_bpe_spec(vocabulary, merges, name_of(settings.get("unk_token")) or UNKNOWN)
    ids = find_special_ids(vocabulary, settings, str(file))
    tokens = {number: piece for piece, number in vocabulary.items()}
    cls, sep = ids["cls"], ids["sep"]
    splitter = byte_level(prefix=bool(settings.get("add_prefix_space", False)))
    frame = None
    if (tokens[cls], tokens[sep]) == (CLS, SEP):  # DeBERTa's
        frame = make_template(f"{CLS} A {SEP}", f"{CLS} A {SEP} B:1 {SEP}:1", {CLS: cls, SEP: sep})
        mask = {"id": ids["mask"], "content": tokens[ids["mask"]], "lstrip": True}
        if isinstance(settings.get("mask_token"), Mapping):
            mask |= settings["mask_token"]
        return byte_bpe_spec(vocabulary, merges, splitter, frame) | {"added_tokens": [mask]}
    if cls != sep and not is_unframed(folder):
        frame = splitter | {"type": "RobertaProcessing", "cls": [tokens[cls], cls], "sep": [tokens[sep], sep]}
        del frame["use_regex"]
    return byte_bpe_spec(vocabulary, merges, splitter, frame)


def read_merges(file: Path, vocabulary: Mapping[str, int]) -> list[tuple[str, str]]:
    r"""Return the merges of a `merges.txt`; raise on lines that are no merges of this vocabulary.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "merges.txt").write_text("#version: 0.2\nt h\n")
    ...     read_merges(Path(folder, "merges.txt"), {"t": 0, "h": 1, "th": 2})
    [('t', 'h')]
    """
    merges = []
    for number, line in enumerate(read_text(file).split("\n"), start=1):
        line = line.removesuffix("\r")
        if not line or (number == 1 and line.startswith("#version")):
            continue
        left, space, right = line.partition(" ")
        if not (space and left and right) or " " in right:
            raise ValueError(f"{file}: line {number} is {line!r:.60}; expected two pieces with a space between them")
        unknown = [piece for piece in (left, right, left + right) if piece not in vocabulary]
        if unknown:
            vocabulary_file = find_bpe(file.parent)[0]
            raise ValueError(
                f"{file} does not belong to the {vocabulary_file} next to it: line {number} merges {line!r:.60}, and "
                f"{unknown[0]!r} is not in that vocabulary. Copy both files from one model."
            )
        merges.append((left, right))
    check_reached(vocabulary, merges, f"{file} may be cut short", f"the {find_bpe(file.parent)[0]} next to it")
    return merges


def byte_level(*, prefix: bool) -> dict[str, Any]:
    """Return the part of a spec that splits text into words and writes them as bytes."""
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": True}


def byte_bpe_spec(
    vocabulary: Mapping[str, int],
    merges: Iterable[tuple[str, str]],
    splitter: dict[str, Any],
    frame: dict[str, Any] | None,
    normalizer: dict[str, Any] | None = None,
) -> Spec:
    """Return the contents of a `tokenizer.json` for a byte-level BPE."""
    return {
        "added_tokens": [],
        "normalizer": normalizer,
        "pre_tokenizer": splitter,
        "post_processor": frame,
        "decoder": byte_level(prefix=True),
        "model": _bpe_model(vocabulary, merges, None, ""),
    }


def is_suffix_bpe(merges: Iterable[tuple[str, str]], settings: Mapping[str, Any]) -> bool:
    """Return True if merges end words by `</w>`, or the settings name GPT-1's tokenizer.

    >>> is_suffix_bpe([("t", "h"), ("th", "e</w>")], {}), is_suffix_bpe([("Ġ", "t")], {})
    (True, False)
    """
    named = str(settings.get("tokenizer_class") or "").startswith("OpenAIGPTTokenizer")
    return named or any(right.endswith(SUFFIX) for _, right in merges)


def suffix_bpe_spec(vocabulary: Mapping[str, int], merges: Iterable[tuple[str, str]], unknown: str = UNKNOWN) -> Spec:
    """Return the contents of a `tokenizer.json` for a BPE with `</w>`, as transformers builds it for GPT-1.

    >>> suffix_bpe_spec({"<unk>": 0, "a</w>": 1}, [])["model"]["end_of_word_suffix"]
    '</w>'
    """
    return {
        "added_tokens": [],
        "normalizer": cleaning_spec(split_chinese=True, strip_accents=None, lowercase=True),
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": None,
        "decoder": {"type": "BPEDecoder", "suffix": SUFFIX},
        "model": _bpe_model(vocabulary, merges, unknown, SUFFIX),
    }


def _bpe_model(
    vocabulary: Mapping[str, int], merges: Iterable[tuple[str, str]], unknown: str | None, suffix: str
) -> Spec:
    options: Spec = {"dropout": None, "unk_token": unknown}
    options |= {"continuing_subword_prefix": "", "end_of_word_suffix": suffix}
    options |= {"fuse_unk": False, "byte_fallback": False, "ignore_merges": False}
    return {"type": "BPE", **options, "vocab": dict(vocabulary), "merges": [list(pair) for pair in merges]}


def train_byte_bpe(texts: Iterable[str], vocab_size: int) -> TokenizerFile:
    """Train a byte-level BPE on texts; the result does not depend on their order or the number of threads.

    Text is cleaned as BERT cleans it and composed (NFC), and every word begins with a space. The five special pieces
    have the ids 0 to 4, the 256 bytes the next ones, so no text is unknown; a small corpus may give fewer merges than
    `vocab_size` has room for. The frame is `[CLS] a [SEP] b [SEP]`.

    >>> train_byte_bpe(["the sea the ship"] * 9, vocab_size=300).encode("the ship", specials=False).tokens
    ('Ġthe', 'Ġship')
    """
    from bert_elmo_jax.text.training import count_words, learn_merges

    splitter = byte_level(prefix=True)
    rules = compile_spec(byte_bpe_spec({}, [], splitter, None, NORMALIZER), "the rules")
    vocabulary, merges = learn_merges(count_words(texts, rules), vocab_size, CHARACTERS)
    ids = {piece: SPECIALS.index(piece) for piece in (CLS, SEP)}
    template = make_template(f"{CLS} A {SEP}", f"{CLS} A {SEP} B:1 {SEP}:1", ids)
    frame = {"type": "Sequence", "processors": [splitter, template]}
    spec = byte_bpe_spec(vocabulary, merges, splitter, frame, NORMALIZER)
    return TokenizerFile(spec, {PROJECT_KEY: {"normalization": "NFC"}}, "the trained vocabulary")
