"""Normalisation options of WordPiece: lower-casing, accents, composition, Chinese characters.

Released BERTs have one switch: lower-casing also decomposes the text (NFD) and strips accents, which splits Hangul
into jamo. Vocabularies trained here compose text (NFC) and keep accents by default.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import normalizers

from bert_elmo_jax.files import read_json
from bert_elmo_jax.text.files import OWN_KEY
from bert_elmo_jax.text.special import UNK


@dataclass(frozen=True)
class WordPieceOptions:
    """The settings that change ids, apart from the vocabulary."""

    lowercase: bool = False
    strip_accents: bool = False
    split_chinese: bool = True
    compose: bool = False
    # A longer word is one [UNK], as in released tokenizers, because matching takes quadratic time.
    longest_word: int = 100

    def normalizer(self) -> normalizers.Normalizer:
        """Return a normalizer that cleans whitespace and control characters as BERT does and applies the options."""
        clean = normalizers.BertNormalizer(
            clean_text=True,
            handle_chinese_chars=self.split_chinese,
            strip_accents=self.strip_accents,
            lowercase=self.lowercase,
        )
        # Composition comes last, because lower-casing and stripping accents can decompose text.
        return normalizers.Sequence([clean, normalizers.NFC()]) if self.compose else clean

    def config(self) -> dict[str, Any]:
        """Return the options as entries of `tokenizer_config.json`; all but our own key are Hugging Face's.

        >>> WordPieceOptions(compose=True).config()["strip_accents"]
        False
        """
        return {
            "do_lower_case": self.lowercase,
            "strip_accents": self.strip_accents,
            "tokenize_chinese_chars": self.split_chinese,
            OWN_KEY: {"normalization": "NFC" if self.compose else None, "longest_word": self.longest_word},
        }


def read_options(folder: Path, pieces: Sequence[str], lowercase: bool | None = None) -> WordPieceOptions:
    """Read the options of a vocabulary from its configuration files, or guess them from its pieces.

    `lowercase` overrides `tokenizer_config.json`, which overrides `tokenizer.json`. Lower-casing strips accents, as in
    released BERTs, unless a file disagrees or, without a file, a piece has an accent.
    """
    config = _read_config(folder / "tokenizer_config.json")
    whole = _read_whole(folder / "tokenizer.json")
    own = config.get(OWN_KEY, {})
    found = {
        name: config.get(name) if config.get(name) is not None else whole.get(name)
        for name in ("do_lower_case", "strip_accents", "tokenize_chinese_chars")
    }
    wrong = [f"{name} is {value!r}" for name, value in found.items() if not (value is None or isinstance(value, bool))]
    if wrong:
        raise ValueError(f"{folder / 'tokenizer_config.json'}: {', '.join(wrong)}; expected true, false or null")
    said = found["do_lower_case"]
    if lowercase is None:
        lowercase = guess_options(pieces).lowercase if said is None else said
    strip = found["strip_accents"]
    if strip is None:
        strip = lowercase and (said is not None or not _keeps_accents(pieces))
    return WordPieceOptions(
        lowercase=lowercase,
        strip_accents=strip,
        split_chinese=found["tokenize_chinese_chars"] is not False,
        compose=own.get("normalization") == "NFC",
        longest_word=own.get("longest_word", whole.get("longest_word", 100)),
    )


def _read_config(file: Path) -> dict[str, Any]:
    config = read_json(file, default={})
    for key, honoured in {"word_tokenizer_type": "basic", "do_word_tokenize": True, "do_basic_tokenize": True}.items():
        if config.get(key, honoured) != honoured:
            raise ValueError(
                f"{file}: {key} is {config[key]!r}; only {honoured!r}, BERT's own word splitting, is supported. "
                "Split the text with that tool first and use encode_words."
            )
    return config


def _read_whole(file: Path) -> dict[str, Any]:
    """Return the options in a `tokenizer.json` by their names in `tokenizer_config.json`."""
    whole = read_json(file, default={})
    if not whole:
        return {}
    model, normalizer, splitter = (whole.get(part) or {} for part in ("model", "normalizer", "pre_tokenizer"))
    expected = {
        "model type": (model.get("type"), "WordPiece"),
        "unknown piece": (model.get("unk_token"), UNK),
        "continuation prefix": (model.get("continuing_subword_prefix"), "##"),
        "normalizer": (normalizer.get("type"), "BertNormalizer"),
        "clean_text": (normalizer.get("clean_text", True), True),
        "pre_tokenizer": (splitter.get("type"), "BertPreTokenizer"),
    }
    wrong = [f"{part} is {given!r} (expected {right!r})" for part, (given, right) in expected.items() if given != right]
    if wrong:
        raise ValueError(
            f"{file} is not a BERT tokenizer: {', '.join(wrong)}. If vocab.txt is complete, remove {file.name} from a "
            "copy of the folder."
        )
    return {
        "do_lower_case": normalizer.get("lowercase"),
        "strip_accents": normalizer.get("strip_accents"),
        "tokenize_chinese_chars": normalizer.get("handle_chinese_chars"),
        "longest_word": model.get("max_input_chars_per_word", 100),
    }


def guess_options(pieces: Sequence[str]) -> WordPieceOptions:
    """Guess the options of a `vocab.txt` that has no configuration file.

    Text is lower-cased if the pieces hold cased letters and none is upper-case. Accents, too, are then stripped if no
    piece would change by it (composed Hangul would).
    """
    plain = [piece for piece in pieces if not (piece.startswith("[") and piece.endswith("]"))]
    lowercase = all(piece == piece.lower() for piece in plain) and any(piece != piece.upper() for piece in plain)
    return WordPieceOptions(lowercase=lowercase, strip_accents=lowercase and not _keeps_accents(pieces))


def _keeps_accents(pieces: Sequence[str]) -> bool:
    return any(
        not unicodedata.is_normalized("NFD", piece) or any(unicodedata.category(c) == "Mn" for c in piece)
        for piece in pieces
        if not piece.isascii()
    )
