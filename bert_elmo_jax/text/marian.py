"""Marian's tokenizers: a SentencePiece model for each language, and a vocabulary of its own for the numbers."""

import hashlib
import logging
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Int32, Int64, Integer

from bert_elmo_jax.files import read_bytes, read_json
from bert_elmo_jax.text.encoding import Encoding, Frame, build_encoding, join_words
from bert_elmo_jax.text.sentencepiece import place_pieces, read_sentencepiece, replace_nul
from bert_elmo_jax.text.tokenizer import (
    PROJECT_KEY,
    SPACE_MARK,
    UNK,
    Tokenizer,
    check_fingerprint,
    check_ids,
    encode_json,
    list_pieces,
    reject_text,
)
from bert_elmo_jax.text.tokenizer_checks import read_added, read_tokenizer_config
from bert_elmo_jax.text.tokenizer_folder import MARIAN_FILES
from bert_elmo_jax.text.tokenizer_specs import name_of

TARGET_VOCABULARY = "target_vocab.json"  # of a model whose languages have a vocabulary each
NAMES = {"pad_token": "<pad>", "unk_token": "<unk>", "eos_token": "</s>"}
CODE = re.compile(r">>.*?<<", re.S)  # the target's language, in front of a source


class Marian(Tokenizer):
    """A tokenizer with one SentencePiece model for sources and another for targets (`encode_target`, `decode`).

    A SentencePiece model only splits; the ids come from `vocabulary`, and a missing piece is `<unk>`. A text
    ends with `</s>` and has no piece in front, unless it begins with a language such as `>>kor<<`. There is no mask
    piece: `mask_id` is the id of `<unk>`, and `cls_id`, which begins a target, the id of `<pad>`.

    >>> from bert_elmo_jax.text import load_tokenizer
    >>> tokenizer = load_tokenizer("tests/goldens/tokenizers/marian")
    >>> tokenizer.encode(">>kor<< river", specials=False).tokens
    ('>>kor<<', '▁river')
    """

    kind = "marian"

    def __init__(
        self,
        source: bytes,
        target: bytes,
        vocabulary: Mapping[str, int],
        target_vocabulary: Mapping[str, int] | None = None,
        settings: Mapping[str, Any] | None = None,
        where: str = "this tokenizer",
    ):
        self._settings = dict(settings or {})
        self._models = source, target
        self._libraries = [
            read_sentencepiece(model, f"{where}: {name}")[0] for model, name in zip(self._models, MARIAN_FILES)
        ]
        self._vocabularies = [dict(vocabulary), dict(vocabulary if target_vocabulary is None else target_vocabulary)]
        self.separate = target_vocabulary is not None
        if self.separate:
            self._warn_if_swapped(where)
        self.tokens: tuple[str, ...] = list_pieces(vocabulary, f"{where}: {MARIAN_FILES[2]}")
        self._target_tokens = (
            list_pieces(target_vocabulary, f"{where}: {TARGET_VOCABULARY}") if target_vocabulary else self.tokens
        )
        self.vocab_size = len(self.tokens)
        names = {kind: name_of(self._settings.get(kind)) or usual for kind, usual in NAMES.items()}
        for vocabulary_of_side in self._vocabularies:
            missing = [name for name in names.values() if name not in vocabulary_of_side]
            if missing:
                raise ValueError(f"{where}: the vocabulary has no {' and no '.join(missing)}, which Marian needs")
        self.pad_id, self.unk_id, self.sep_id = (vocabulary[name] for name in names.values())
        self.cls_id, self.mask_id = self.pad_id, self.unk_id
        self._literals = {name: name for name in names.values()}
        self.word_starts: Bool[np.ndarray, "V"] = np.array([piece.startswith(SPACE_MARK) for piece in self.tokens])
        self.word_starts[[vocabulary[name] for name in self._literals]] = False
        digest = hashlib.sha256()
        for part in (*self._models, *(encode_json(side) for side in self._vocabularies), encode_json(names)):
            digest.update(hashlib.sha256(part).digest())
        self.fingerprint = digest.hexdigest()

    def _warn_if_swapped(self, where: str) -> None:
        """Log that each model has pieces that mostly only the other language's vocabulary knows."""
        pieces = [library.id_to_piece(list(range(library.get_piece_size()))) for library in self._libraries]
        as_named, swapped = (
            sum(piece in vocabulary for side, vocabulary in zip(pieces, order) for piece in side)
            for order in (self._vocabularies, self._vocabularies[::-1])
        )
        if as_named < swapped // 2:
            logging.getLogger(__name__).warning(
                "%s: %s and %s seem to be swapped: their languages' vocabularies have %s of their %s pieces, and would "
                "have %s the other way round; most words will be unknown",
                where, *MARIAN_FILES[:2], as_named, sum(map(len, pieces)), swapped,
            )  # fmt: skip

    @cached_property
    def frame(self) -> Frame:
        """Nothing in front, and `</s>` behind; a pair is simply joined."""
        return Frame((), (), (self.sep_id,), (0, 0))

    @property
    def target_tokens(self) -> tuple[str, ...]:
        """The pieces of the target by id."""
        return self._target_tokens

    def encode_target(self, text: str, *, specials: bool = True) -> Encoding:
        """Encode a text in the target's language, with the target's SentencePiece model and vocabulary."""
        return self._join(self._encode_side(text, 1), None, specials)

    def encode_lines(self, lines: Sequence[str]) -> tuple[Int32[np.ndarray, "N"], Int64[np.ndarray, "L"]]:
        """Return the concatenated ids of lines and the length of each line."""
        lines = list(lines)
        try:
            codes, texts = zip(*map(_split_code, lines)) if lines else ((), ())
            pieces = self._libraries[0].encode([replace_nul(text) for text in texts], out_type=str)
        except (TypeError, RuntimeError, UnicodeError, AttributeError) as error:
            reject_text(lines, error)
        joined = (([code] if code else []) + row for code, row in zip(codes, pieces))
        rows = [[self._vocabularies[0].get(piece, self.unk_id) for piece in row] for row in joined]
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        return np.array([number for row in rows for number in row], np.int32), lengths

    def normalize(self, text: str) -> str:
        """Return the text normalised by the source's model."""
        try:
            code, content = _split_code(text)
            pieces = self._libraries[0].encode(replace_nul(content), out_type=str)
        except (TypeError, RuntimeError, UnicodeError, AttributeError) as error:
            reject_text([text], error)
        return self._join_pieces(([code] if code else []) + pieces)

    def decode(self, ids: Sequence[int] | Integer[np.ndarray, "N"]) -> str:
        """Return the text of a target's ids, with `[UNK]` but without the other special pieces."""
        pieces = [self.target_tokens[number] for number in check_ids(ids, len(self.target_tokens))]
        unknown = self.tokens[self.unk_id]
        shown = (
            UNK if piece == unknown else piece for piece in pieces if piece == unknown or piece not in self._literals
        )
        return self._join_pieces(list(shown))

    def files(self) -> dict[str, bytes]:
        """Return `tokenizer_config.json`, the two models and the vocabulary, as transformers reads them."""
        config = {
            "tokenizer_class": "MarianTokenizer", "separate_vocabs": self.separate, **self._settings,
            PROJECT_KEY: {"fingerprint": self.fingerprint},
        }  # fmt: skip
        contents = (*self._models, encode_json(self._vocabularies[0]))
        files = {"tokenizer_config.json": encode_json(config), **dict(zip(MARIAN_FILES, contents))}
        return files | ({TARGET_VOCABULARY: encode_json(self._vocabularies[1])} if self.separate else {})

    def _join_pieces(self, pieces: Sequence[str]) -> str:
        if not pieces:
            return ""
        text: str = self._libraries[1].decode_pieces(list(pieces))
        return text.replace(SPACE_MARK, " ").strip()

    def _encode(self, text: str | list[str]) -> Encoding:
        if isinstance(text, str):
            return self._encode_side(text, 0)
        return join_words([self._encode_side(word, 0) for word in text])

    def _encode_side(self, text: str, side: int) -> Encoding:
        """Encode a text of the source (0) or the target (1); a literal special piece is read as that piece."""
        vocabulary, unknown = self._vocabularies[side], self.tokens[self.unk_id]
        try:
            pieces, offsets, words = place_pieces(
                text, self._literals, lambda part: self._pieces(part, side), lambda piece: piece.startswith(SPACE_MARK)
            )
        except (TypeError, RuntimeError, UnicodeError, AttributeError) as error:
            reject_text([text], error)
        tokens = [piece if piece in vocabulary else unknown for piece in pieces]
        return build_encoding([vocabulary[piece] for piece in tokens], offsets, words, tokens)

    def _pieces(self, text: str, side: int) -> list[tuple[str, tuple[int, int]]]:
        """Return the pieces of a text with their places in it, a language in front of it as one piece."""
        code, content = _split_code(text)
        mapping = self._libraries[side].encode(replace_nul(content), return_type="offset_mapping")
        pieces: list[tuple[str, tuple[int, int]]] = [(code, (0, len(code)))] if code else []
        for piece, (start, end) in zip(mapping["pieces"], mapping["offsets"]):
            while start < end and content[start].isspace():
                start += 1
            pieces.append((piece, (len(code) + start, len(code) + end)))
        return pieces


def load_marian(folder: str | Path) -> Marian:
    """Load the tokenizer of a folder with `source.spm`, `target.spm` and `vocab.json`."""
    folder = Path(folder)
    missing = [name for name in MARIAN_FILES if not (folder / name).is_file()]
    settings = read_tokenizer_config(folder)
    separate = bool(settings.get("separate_vocabs"))
    if separate and not (folder / TARGET_VOCABULARY).is_file():
        missing.append(TARGET_VOCABULARY)
    if missing:
        raise FileNotFoundError(
            f"{folder} lacks {', '.join(missing)}: Marian's tokenizer is {', '.join(MARIAN_FILES)} together. Copy the "
            "files from the model's folder."
        )
    source, target = (read_bytes(folder / name) for name in MARIAN_FILES[:2])
    vocabulary = read_json(folder / MARIAN_FILES[2])
    listed = {entry["content"] for entry in (settings.get("added_tokens_decoder") or {}).values()}
    if added := sorted((listed | set(read_added(folder))) - set(vocabulary)):
        raise ValueError(
            f"{folder} adds {', '.join(added)} to Marian's vocabulary; added pieces are not supported, and a text with "
            "one would get wrong ids. If no text has one, delete added_tokens.json and these entries of "
            "added_tokens_decoder in tokenizer_config.json."
        )
    target_vocabulary = read_json(folder / TARGET_VOCABULARY) if separate else None
    names = {name: value for name, value in settings.items() if name not in (PROJECT_KEY, "separate_vocabs")}
    tokenizer = Marian(source, target, vocabulary, target_vocabulary, names, str(folder))
    check_fingerprint(settings, tokenizer.fingerprint, folder / MARIAN_FILES[2])
    return tokenizer


def _split_code(text: str) -> tuple[str, str]:
    """Split a language such as `>>kor<<` from the front of a text.

    >>> _split_code(">>kor<< The ship.")
    ('>>kor<<', ' The ship.')
    """
    match = CODE.match(text)
    return (match[0], text[match.end() :]) if match else ("", text)
