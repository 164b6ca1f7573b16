"""Tokenizers that a `tokenizer.json` describes: byte-level BPE, Unigram, and WordPiece with other rules than BERT's.

The library `tokenizers` runs the file; here are decoding, words, literal special pieces and the files to save.
"""

import functools
import hashlib
import json
import re
import unicodedata
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Int32, Int64, Integer
from tokenizers import Tokenizer as LibraryTokenizer

from bert_elmo_jax.text.composition import compose, find_original
from bert_elmo_jax.text.encoding import Encoding, build_encoding
from bert_elmo_jax.text.tokenizer import (
    PROJECT_KEY,
    SPACE_MARK,
    Tokenizer,
    check_ids,
    encode_json,
    list_pieces,
    project_settings,
    reject_text,
)
from bert_elmo_jax.text.tokenizer_checks import check_merges, check_spec, raise_clearly, without_dropout
from bert_elmo_jax.text.tokenizer_specs import (
    SUFFIX,
    USUAL_NAMES,
    Spec,
    add_specials,
    compile_spec,
    find_frame,
    find_parts,
    find_special_ids,
    hide_specials,
    index_pieces,
)

BYTES = [*range(33, 127), *range(161, 173), *range(174, 256)]  # bytes that byte-level BPE writes as themselves
BYTES += [byte for byte in range(256) if byte not in BYTES]
CHARACTERS = [chr(byte if place < 188 else 256 + place - 188) for place, byte in enumerate(BYTES)]
BYTE_OF = dict(zip(CHARACTERS, BYTES))
BYTE_PIECE = re.compile("<0x[0-9a-fA-F]{2}>")
SPACE = CHARACTERS[BYTES.index(32)]  # Ġ
PROBE = "".join(map(chr, range(32, 127))) + "é 강 가 ﬁ ½ 漢 😀"  # damaged rules show in such a text


class TokenizerFile(Tokenizer):
    """A tokenizer from the contents of a `tokenizer.json` and the settings of its `tokenizer_config.json`.

    A piece that begins with a space (Ġ, or ▁) begins a word, as does the first piece of a text. In a BPE with `</w>`
    (`kind` is "suffix_bpe") pieces mark where words end, and `word_starts` is True for the last piece of a word.
    `encode` and `encode_words` read a literal special piece in the text as that piece; `encode_lines` reads it as
    ordinary text. `encode_words` gives the pieces of the words joined by spaces.

    >>> from bert_elmo_jax.text import train_byte_bpe
    >>> tokenizer = train_byte_bpe(["배를 타고 강을", "the river"] * 9, vocab_size=320)
    >>> tokenizer.encode("the 강을").tokens[1], tokenizer.encode("the 강을").word_ids.tolist()
    ('Ġthe', [-1, 0, 1, -1])
    """

    def __init__(self, spec: Spec, settings: Mapping[str, Any] | None = None, source: str = "this tokenizer.json"):
        settings = {} if settings is None else settings
        check_spec(spec, source)
        check_merges(spec, source)
        spec = without_dropout(spec, source)
        self.kind = find_kind(spec, source)
        index = index_pieces(spec, source)
        self.tokens: tuple[str, ...] = list_pieces(index, source)
        for entry in spec.get("added_tokens") or []:
            if entry.get("id", index[entry["content"]]) != index[entry["content"]]:
                raise ValueError(
                    f"{source}: the added piece {entry['content']!r:.60} has the id {entry['id']}, but the library "
                    f"gives it {index[entry['content']]}: copy the file again"
                )
        self.vocab_size = len(self.tokens)
        if self.kind == "suffix_bpe":  # a GPT-1's only special piece is the unknown one, which then ends texts, too
            unknown = spec["model"]["unk_token"]
            if unknown not in index:
                raise ValueError(
                    f"{source} has no piece {unknown!r} for unknown characters: copy it again, or name the piece as "
                    "unk_token in tokenizer_config.json"
                )
            settings = {**settings, "eos_token": settings.get("eos_token") or unknown}
        ids = find_special_ids(index, settings, source)
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = ids.values()
        spec = add_specials(spec, ids, dict(enumerate(self.tokens)), settings)
        self.frame = find_frame(spec, ids, source)
        self._spec, self._source = spec, source
        self._marked = compile_spec(spec, source)
        self._added = {entry["id"] for entry in spec["added_tokens"]}
        self._mark = {"byte_bpe": SPACE, "sentencepiece": SPACE_MARK}.get(self.kind)
        self.word_starts: Bool[np.ndarray, "V"] = np.array([self._starts_word(piece) for piece in self.tokens])
        self.word_starts[list(ids.values())] = False
        self.composes = project_settings(settings, source).get("normalization") == "NFC"
        self.fingerprint = hashlib.sha256(json.dumps(self._identity(), sort_keys=True).encode()).hexdigest()
        try:
            if self._marked.normalizer is not None:  # the library crashes on some rules
                self._marked.normalizer.normalize_str(PROBE)
            first = self._marked.encode("a", add_special_tokens=False).tokens if self._mark else []
        except BaseException as error:
            raise_clearly(error, source)
        self._adds_space = bool(self._mark and first and first[0].startswith(self._mark))

    @functools.cached_property
    def _texts(self) -> LibraryTokenizer:
        """The library's tokenizer that reads a literal special piece as ordinary text."""
        hidden = [number for number in self._special_ids() if number != self.unk_id]
        # Byte-level BPE reaches a piece only through merges, and a special piece has none.
        spec = self._spec if self.kind == "byte_bpe" else hide_specials(self._spec, hidden)
        texts = compile_spec(spec, self._source)
        texts.encode_special_tokens = True
        return texts

    @functools.cached_property
    def _written(self) -> list[bytes]:
        """The bytes that each piece stands for."""
        written = [self._bytes_of(number) for number in range(self.vocab_size)]
        for number in self._special_ids():
            written[number] = b""
        for entry in self._spec["added_tokens"]:
            if entry.get("special"):
                written[entry["id"]] = b""
        for number in {self.mask_id, self.unk_id} - {self.pad_id, self.cls_id, self.sep_id}:
            written[number] = (" " * self._loses_space(number) + self.tokens[number]).encode()
        if self.kind == "suffix_bpe":
            for number in (self.mask_id, self.unk_id):
                written[number] = self.tokens[number].encode()
        return written

    def _starts_word(self, piece: str) -> bool:
        if self.kind == "suffix_bpe":
            return piece.endswith(SUFFIX)
        return piece.startswith(self._mark) if self._mark else not piece.startswith("##")

    def _identity(self) -> list[Any]:
        """Return everything that changes ids."""
        spec = json.loads(self._marked.to_str())
        rules = {name: spec[name] for name in ("normalizer", "pre_tokenizer", "model", "added_tokens")}
        return [self.kind, rules, self._special_ids(), self.frame.before, self.frame.between, self.frame.after]

    def _bytes_of(self, number: int) -> bytes:
        piece = self.tokens[number]
        if self.kind == "wordpiece":
            return (piece[2:] if piece.startswith("##") else f" {piece}").encode()
        if self.kind == "suffix_bpe":
            return (piece.removesuffix(SUFFIX) + " " * piece.endswith(SUFFIX)).encode()
        if self.kind == "byte_bpe" and number not in self._added:
            return bytes(BYTE_OF[character] for character in piece if character in BYTE_OF)
        if BYTE_PIECE.fullmatch(piece):
            return bytes([int(piece[3:5], 16)])
        return (piece.replace(SPACE_MARK, " ") if self.kind == "sentencepiece" else piece).encode()

    def _loses_space(self, number: int) -> bool:
        """Return True if a space before this special piece gets no piece of its own."""
        if self.kind == "wordpiece":
            return True
        tokens = self._marked.encode(f"a {self.tokens[number]}", add_special_tokens=False).tokens
        return not (len(tokens) > 1 and tokens[-2] in (SPACE, SPACE_MARK))

    def encode_lines(self, lines: Sequence[str]) -> tuple[Int32[np.ndarray, "N"], Int64[np.ndarray, "L"]]:
        """Return the concatenated ids of lines and the length of each; `RAYON_NUM_THREADS` limits the threads."""
        lines = list(lines)
        try:
            encodings = self._texts.encode_batch_fast(lines, add_special_tokens=False)
        except (TypeError, UnicodeError) as error:
            reject_text(lines, error)
        except BaseException as error:
            raise_clearly(error, self._source)
        ids = array("i")  # its `fromlist` converts to int32 twice as fast as np.array
        lengths = np.empty(len(lines), np.int64)
        for number, encoding in enumerate(encodings):
            ids.fromlist(line := encoding.ids)
            lengths[number] = len(line)
        return np.frombuffer(ids, np.int32) if ids else np.empty(0, np.int32), lengths

    def split_words(self, text: str) -> Int32[np.ndarray, "T"]:
        """Return the number of the word of each piece of a text, as the file's rules split it."""
        encoding = self._marked.encode(compose(text)[0] if self.composes else text, add_special_tokens=False)
        return np.array([-1 if word is None else word for word in encoding.word_ids], np.int32)

    def normalize(self, text: str) -> str:
        """Return the text normalised by the file's own rules."""
        try:
            normal = text if self._texts.normalizer is None else self._texts.normalizer.normalize_str(text)
            if self.kind == "byte_bpe":
                normal.encode()
                return normal.removeprefix(" ") if self._adds_space else normal
            splitter = self._texts.pre_tokenizer
            words = [normal] if splitter is None else [word for word, _ in splitter.pre_tokenize_str(normal)]
        except (TypeError, UnicodeError, AttributeError) as error:
            reject_text([text], error)
        except BaseException as error:
            raise_clearly(error, self._source)
        if self.kind in ("wordpiece", "suffix_bpe"):
            return " ".join(words)
        plain = "".join(words).replace(SPACE_MARK, " ")
        return plain.removeprefix(" ") if self._adds_space else plain

    def decode(self, ids: Sequence[int] | Integer[np.ndarray, "N"]) -> str:
        """Return the normalised text of ids, with the unknown and mask pieces, without the other special pieces."""
        data = b"".join([self._written[number] for number in check_ids(ids, self.vocab_size)])
        text = data.decode(errors="replace")
        if self.kind == "suffix_bpe":
            return text.removesuffix(" ")
        return text.removeprefix(" ") if self._adds_space or self.kind == "wordpiece" else text

    def files(self) -> dict[str, bytes]:
        """Return `tokenizer_config.json` and `tokenizer.json`, which transformers reads too."""
        names = {
            f"{kind}_token": self.tokens[number]
            for kind, number in zip(("pad", "unk", "cls", "sep", "mask"), self._special_ids())
        }
        if self.cls_id == self.mask_id:  # a generative model: the piece that ends a text stands for those it lacks
            pads = self.pad_id != self.sep_id or not set(USUAL_NAMES["pad"]).isdisjoint(self.tokens)
            kept = ("unk_token", "pad_token") if pads else ("unk_token",)
            names = {"eos_token": names["sep_token"]} | {name: names[name] for name in kept}
        elif self.mask_id == self.unk_id and not self.frame.after:  # one with a first piece
            names["eos_token"] = names["sep_token"]
        has_types = self.frame.before and self.frame.types[1]
        inputs = ["input_ids", *(["token_type_ids"] if has_types else []), "attention_mask"]
        entries = {"fingerprint": self.fingerprint} | ({"normalization": "NFC"} if self.composes else {})
        config = {"tokenizer_class": "PreTrainedTokenizerFast", **names, "clean_up_tokenization_spaces": False}
        config |= {"model_input_names": inputs, PROJECT_KEY: entries}
        spec = json.loads(self._marked.to_str())
        if (spec["pre_tokenizer"] or {}).get("add_prefix_space"):  # transformers 4 would write false into the rules
            config["add_prefix_space"] = True
        return {"tokenizer_config.json": encode_json(config), "tokenizer.json": encode_json(spec)}

    def _special_ids(self) -> tuple[int, int, int, int, int]:
        return self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id

    def _encode(self, text: str | list[str]) -> Encoding:
        split = isinstance(text, list)
        units = text if isinstance(text, list) else [text]
        spans = None
        # Words after the first begin with a space, as they do in a text, unless the file's rules add one.
        glued = split and self.kind == "byte_bpe" and not self._adds_space
        try:
            if self.composes and not all(unicodedata.is_normalized("NFC", unit) for unit in units):
                composed = [compose(unit) for unit in units]
                units, spans = [unit for unit, _ in composed], [places for _, places in composed]
            words = [f" {unit}" if glued and number and unit else unit for number, unit in enumerate(units)]
            encoding: Any = self._marked.encode(
                words if split else words[0], is_pretokenized=split, add_special_tokens=False
            )
        except (TypeError, UnicodeError, AttributeError) as error:
            reject_text(units, error)
        except BaseException as error:
            raise_clearly(error, self._source)
        word_ids = list(encoding.word_ids) if split or self._mark is None else self._number_words(encoding.ids)
        offsets = encoding.offsets
        if glued:
            offsets = [
                (max(0, start - 1), max(0, end - 1)) if word else (start, end)
                for word, (start, end) in zip(word_ids, offsets)
            ]
        if self.composes:
            offsets = _place_spaces(offsets, word_ids)
        if spans is not None:
            places = [spans[word if split else 0] for word in word_ids]
            offsets = [find_original(place, start, end) for place, (start, end) in zip(places, offsets)]
        return build_encoding(encoding.ids, offsets, word_ids, encoding.tokens)

    def _number_words(self, ids: Sequence[int]) -> list[int]:
        """Number the words of a text; a literal special piece is a word."""
        specials = set(self._special_ids())
        words: list[int] = []
        word, begins = -1, True
        for number in ids:
            special = number in specials
            word += begins or special or bool(self.word_starts[number])
            begins = special
            words.append(word)
        return words


def _place_spaces(offsets: Sequence[tuple[int, int]], words: Sequence[int]) -> list[tuple[int, int]]:
    """Move a space that was put before a word from behind the word's first character, where the library has it."""
    placed = list(offsets)
    for number in reversed(range(len(words) - 1)):
        start = placed[number + 1][0]
        if words[number] == words[number + 1] and placed[number][0] > start:
            placed[number] = (start, start)
    return placed


def find_kind(spec: Spec, source: str) -> str:
    """Return "byte_bpe", "suffix_bpe" (`</w>`), "sentencepiece" (▁) or "wordpiece"; raise on a model of another kind.

    >>> find_kind({"model": {"type": "Unigram", "vocab": []}}, "x")
    'sentencepiece'
    """
    model = spec.get("model") or {}
    kind = model.get("type")
    splitter, normalizer = spec.get("pre_tokenizer"), spec.get("normalizer")
    if kind == "Unigram":
        return "sentencepiece"
    if kind == "WordPiece" and model.get("continuing_subword_prefix", "##") == "##":
        return "wordpiece"
    bytewise = find_parts(splitter, "ByteLevel") or find_parts(normalizer, "ByteLevel")
    if kind == "BPE" and model.get("end_of_word_suffix") == SUFFIX and not bytewise and model.get("unk_token"):
        return "suffix_bpe"
    if kind == "BPE" and not (model.get("continuing_subword_prefix") or model.get("end_of_word_suffix")):
        if bytewise:
            return "byte_bpe"
        if SPACE_MARK in json.dumps([splitter, normalizer], ensure_ascii=False):
            return "sentencepiece"
    raise ValueError(
        f"{source}: model type is {kind!r} with pre_tokenizer {(splitter or {}).get('type')!r}; supported are "
        "WordPiece (continuations with ##), byte-level BPE (pre_tokenizer ByteLevel), BPE with </w> and an unk_token, "
        "Unigram or BPE with ▁ as space"
    )
