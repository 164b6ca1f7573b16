"""Tokenizers that a `tokenizer.json` describes: byte-level BPE, Unigram, and WordPiece with other rules than BERT's.

The library `tokenizers` runs the file; here are decoding, words, literal special pieces and the files to save.
"""

import hashlib
import json
import unicodedata
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Int32, Int64, Integer

from bert_elmo_jax.files import read_json
from bert_elmo_jax.text.encoding import Encoding, encoding_of
from bert_elmo_jax.text.suffix_bpe import SUFFIX
from bert_elmo_jax.text.tokenizer import (
    OWN_KEY,
    Tokenizer,
    check_fingerprint,
    check_ids,
    encode_json,
    own_settings,
    reject_text,
)
from bert_elmo_jax.text.tokenizer_folder import BPE_PAIRS, find_bpe, find_model
from bert_elmo_jax.text.tokenizer_specs import (
    Spec,
    add_specials,
    compile_spec,
    find_frame,
    find_parts,
    find_special_ids,
    hide_specials,
    read_settings,
)
from bert_elmo_jax.text.wordpiece import compose

BYTES = [*range(33, 127), *range(161, 173), *range(174, 256)]  # bytes that byte-level BPE writes as themselves
BYTES += [byte for byte in range(256) if byte not in BYTES]
CHARACTERS = [chr(byte if place < 188 else 256 + place - 188) for place, byte in enumerate(BYTES)]
BYTE_OF = dict(zip(CHARACTERS, BYTES))
SPACE = CHARACTERS[BYTES.index(32)]  # Ġ
SPACE_MARK = "▁"


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
        self.kind = find_kind(spec, source)
        index = compile_spec(spec, source).get_vocab(with_added_tokens=True)
        self.vocab_size = len(index)
        if sorted(index.values()) != list(range(len(index))):
            raise ValueError(f"{source}: the ids of its {len(index)} pieces are not 0 to {len(index) - 1}, each once")
        self.tokens: tuple[str, ...] = tuple(sorted(index, key=index.__getitem__))
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
        self._marked = compile_spec(spec, source)
        hidden = [number for number in ids.values() if number != self.unk_id]
        # Byte-level BPE reaches a piece only through merges, and a special piece has none.
        self._texts = compile_spec(spec if self.kind == "byte_bpe" else hide_specials(spec, hidden), source)
        self._texts.encode_special_tokens = True
        self._added = {entry["id"] for entry in spec["added_tokens"]}
        self._mark = {"byte_bpe": SPACE, "sentencepiece": SPACE_MARK}.get(self.kind)
        self.word_starts: Bool[np.ndarray, "V"] = np.array([self._starts_word(piece) for piece in self.tokens])
        self.word_starts[list(ids.values())] = False
        self.composes = own_settings(settings, source).get("normalization") == "NFC"
        self.fingerprint = hashlib.sha256(json.dumps(self._facts(ids), sort_keys=True).encode()).hexdigest()
        first = self._texts.encode("a", add_special_tokens=False).tokens
        self._adds_space = bool(self._mark and first and first[0].startswith(self._mark))
        self._written = [self._bytes_of(number) for number in range(self.vocab_size)]
        for number in (self.mask_id, self.unk_id, self.pad_id, self.cls_id, self.sep_id):
            self._written[number] = b""
        for number in {self.mask_id, self.unk_id} - {self.pad_id, self.cls_id, self.sep_id}:
            self._written[number] = (" " * self._loses_space(number) + self.tokens[number]).encode()
        if self.kind == "suffix_bpe":
            for number in (self.mask_id, self.unk_id):
                self._written[number] = self.tokens[number].encode()

    def _starts_word(self, piece: str) -> bool:
        if self.kind == "suffix_bpe":
            return piece.endswith(SUFFIX)
        return piece.startswith(self._mark) if self._mark else not piece.startswith("##")

    def _facts(self, ids: Mapping[str, int]) -> list[Any]:
        """Return everything that changes ids."""
        whole = json.loads(self._marked.to_str())
        rules = {name: whole[name] for name in ("normalizer", "pre_tokenizer", "model", "added_tokens")}
        return [self.kind, rules, list(ids.values()), self.frame.before, self.frame.between, self.frame.after]

    def _bytes_of(self, number: int) -> bytes:
        piece = self.tokens[number]
        if self.kind == "wordpiece":
            return (piece[2:] if piece.startswith("##") else f" {piece}").encode()
        if self.kind == "suffix_bpe":
            return (piece.removesuffix(SUFFIX) + " " * piece.endswith(SUFFIX)).encode()
        if self.kind == "byte_bpe" and number not in self._added:
            return bytes(BYTE_OF[character] for character in piece if character in BYTE_OF)
        if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
            return bytes([int(piece[3:5], 16)])
        return (piece.replace(SPACE_MARK, " ") if self.kind == "sentencepiece" else piece).encode()

    def _loses_space(self, number: int) -> bool:
        """Return True if a space before this special piece gets no piece of its own."""
        found = self._marked.encode(f"a {self.tokens[number]}", add_special_tokens=False).tokens
        return self.kind == "wordpiece" or not (len(found) > 1 and found[-2] in (SPACE, SPACE_MARK))

    def encode_lines(self, lines: Sequence[str]) -> tuple[Int32[np.ndarray, "N"], Int64[np.ndarray, "L"]]:
        """Return the concatenated ids of lines and the length of each; `RAYON_NUM_THREADS` limits the threads."""
        lines = list(lines)
        try:
            encodings = self._texts.encode_batch_fast(lines, add_special_tokens=False)
        except (TypeError, UnicodeError) as error:
            reject_text(lines, error)
        ids = array("i")
        lengths = np.empty(len(lines), np.int64)
        for number, encoding in enumerate(encodings):
            ids.fromlist(line := encoding.ids)
            lengths[number] = len(line)
        return np.frombuffer(ids, np.int32) if ids else np.empty(0, np.int32), lengths

    def normalize(self, text: str) -> str:
        """Return the text normalised by the file's own rules."""
        try:
            normal = text if self._texts.normalizer is None else self._texts.normalizer.normalize_str(text)
            if self.kind == "byte_bpe":
                normal.encode()
                return normal.removeprefix(" ") if self._adds_space else normal
            if self._texts.pre_tokenizer is None:
                words = [normal]
            else:
                words = [word for word, _ in self._texts.pre_tokenizer.pre_tokenize_str(normal)]
        except (TypeError, UnicodeError, AttributeError) as error:
            reject_text([text], error)
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
        if self.cls_id == self.mask_id:  # a generative model: its only special piece ends a text
            names = {"eos_token": self.tokens[self.sep_id], "unk_token": self.tokens[self.unk_id]}
        inputs = [
            "input_ids",
            *(["token_type_ids"] if self.frame.before and self.frame.types[1] else []),
            "attention_mask",
        ]
        own = {"fingerprint": self.fingerprint} | ({"normalization": "NFC"} if self.composes else {})
        config = {"tokenizer_class": "PreTrainedTokenizerFast", **names, "clean_up_tokenization_spaces": False}
        config |= {"model_input_names": inputs, OWN_KEY: own}
        whole = json.loads(self._marked.to_str())
        return {"tokenizer_config.json": encode_json(config), "tokenizer.json": encode_json(whole)}

    def _special_ids(self) -> tuple[int, int, int, int, int]:
        return self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id

    def _encode(self, text: str | list[str]) -> Encoding:
        split = isinstance(text, list)
        units = text if isinstance(text, list) else [text]
        spans = None
        try:
            if self.composes and not all(unicodedata.is_normalized("NFC", unit) for unit in units):
                composed = [compose(unit) for unit in units]
                units, spans = [unit for unit, _ in composed], [place for _, place in composed]
            # Words after the first begin with a space, as they do in a text, unless the file's rules add one.
            glued = split and self.kind == "byte_bpe" and not self._adds_space
            given = [f" {unit}" if glued and number and unit else unit for number, unit in enumerate(units)]
            found: Any = self._marked.encode(
                given if split else given[0], is_pretokenized=split, add_special_tokens=False
            )
        except (TypeError, UnicodeError, AttributeError) as error:
            reject_text(units, error)
        words = list(found.word_ids) if split or self._mark is None else self._number_words(found.ids)
        offsets = found.offsets
        if glued:
            offsets = [
                (max(0, start - 1), max(0, end - 1)) if word else (start, end)
                for word, (start, end) in zip(words, offsets)
            ]
        if self.composes:
            offsets = _place_spaces(offsets, words)
        if spans is not None:
            places = [spans[word if split else 0] for word in words]
            offsets = [_original_span(place, start, end) for place, (start, end) in zip(places, offsets)]
        return encoding_of(found.ids, offsets, words, found.tokens)

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


def _original_span(place: Sequence[tuple[int, int]], start: int, end: int) -> tuple[int, int]:
    """Return the characters of the original text behind characters of the composed one."""
    if start < end:
        return place[start][0], place[end - 1][1]
    point = place[start][0] if start < len(place) else place[-1][1] if place else 0
    return point, point


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


def load_tokenizer_file(path: str | Path) -> TokenizerFile:
    """Load a `tokenizer.json`, a `vocab.json` with `merges.txt`, or a SentencePiece model with shifted ids.

    `path` is a folder, where `tokenizer.json` comes first, or one of the files.

    >>> import tempfile
    >>> from bert_elmo_jax.text import train_byte_bpe
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     train_byte_bpe(["배를 타고"], vocab_size=280).save(folder)
    ...     load_tokenizer_file(folder).kind
    'byte_bpe'
    """
    path = Path(path)
    folder = path if path.is_dir() else path.parent
    settings = read_settings(folder)
    model = find_model(folder)
    names = {name for pair in BPE_PAIRS for name in pair}
    if (path / "tokenizer.json").is_file() or (path.suffix == ".json" and path.name not in names):
        file = path / "tokenizer.json" if path.is_dir() else path
        spec = read_json(file)
    elif model is not None:
        from bert_elmo_jax.text.shifted_pieces import spec_of_shifted_model

        file, spec = model, spec_of_shifted_model(model.read_bytes(), str(model))
    else:
        from bert_elmo_jax.text.byte_bpe import read_vocabulary_and_merges

        file, spec = folder / find_bpe(folder)[0], read_vocabulary_and_merges(folder, settings)
    spec = _add_pieces(_apply_settings(spec, settings), folder, settings)
    tokenizer = TokenizerFile(spec, settings, str(file))
    check_fingerprint(settings, tokenizer.fingerprint, file)
    return tokenizer


def _apply_settings(spec: Spec, settings: Mapping[str, Any]) -> Spec:
    """Apply the settings of `tokenizer_config.json` that overrule a `tokenizer.json`."""
    spec = json.loads(json.dumps(spec))
    found = [
        *find_parts(spec.get("pre_tokenizer"), "ByteLevel"),
        *find_parts(spec.get("post_processor"), "RobertaProcessing"),
    ]
    for part in found:
        if isinstance(settings.get("add_prefix_space"), bool):
            part["add_prefix_space"] = settings["add_prefix_space"]
        if isinstance(settings.get("trim_offsets"), bool):
            part["trim_offsets"] = settings["trim_offsets"]
    return spec


def _add_pieces(spec: Spec, folder: Path, settings: Mapping[str, Any]) -> Spec:
    """Add the pieces that other files of the folder append to the spec."""
    added = spec.get("added_tokens") or []
    if not isinstance(added, list) or not all(isinstance(e, Mapping) and type(e.get("id")) is int for e in added):
        raise ValueError(
            f"{folder / 'tokenizer.json'}: added_tokens is no list of pieces with an id each: copy it again"
        )
    known = {entry["id"] for entry in added}
    vocabulary = (spec.get("model") or {}).get("vocab") or {}
    size = max([len(vocabulary) - 1, *known]) + 1
    entries = {int(number): entry for number, entry in (settings.get("added_tokens_decoder") or {}).items()}
    names = read_json(folder / "added_tokens.json", default={})
    entries = {number: {"content": name} for name, number in names.items()} | entries
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True, "special": False}
    more: list[dict[str, Any]] = []
    for number in sorted(number for number in entries if number >= size):
        if number != size + len(more):
            raise ValueError(
                f"{folder} adds the piece {entries[number]['content']!r} with the id {number}, but the ids before it "
                f"end at {size + len(more) - 1}: copy the folder again"
            )
        more.append(
            flags
            | {name: entries[number][name] for name in flags if name in entries[number]}
            | {"id": number, "content": entries[number]["content"]}
        )
    return spec | {"added_tokens": [*(spec.get("added_tokens") or []), *more]}
