"""The interface of tokenizers, the special pieces, and checks that all of them share."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from jaxtyping import Bool, Int32, Int64, Integer

from bert_elmo_jax.files import write_bytes
from bert_elmo_jax.text.encoding import Encoding, Frame, build_encoding, join_texts

PAD, UNK, CLS, SEP, MASK = SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PROJECT_KEY = "bert_elmo_jax"  # of this project's entries in `tokenizer_config.json`
SPACE_MARK = "▁"  # SentencePiece writes a space as this mark, and reads a literal one as a space


class Tokenizer(ABC):
    """Converts text to ids and back; implemented by `WordPiece`, `SentencePiece` and `TokenizerFile`.

    `tokens` lists the pieces by id. `word_starts` is True for pieces that begin a word and False for special pieces.
    `frame` holds the special pieces around a text and a pair.
    `fingerprint` hashes everything that changes ids: tokenizers with the same fingerprint are interchangeable.

    >>> from bert_elmo_jax.text import train_wordpiece
    >>> isinstance(train_wordpiece(["배를 타고"], vocab_size=20), Tokenizer)
    True
    """

    kind: str
    vocab_size: int
    pad_id: int
    unk_id: int
    cls_id: int
    sep_id: int
    mask_id: int
    tokens: tuple[str, ...]
    word_starts: Bool[np.ndarray, "V"]
    fingerprint: str
    max_positions: int | None = None  # of the model that it was loaded with, for `batch`
    cuts_start: bool = False  # True: a text that is too long loses its first pieces, not its last ones

    def encode(self, text: str, pair: str | None = None, *, specials: bool = True) -> Encoding:
        """Encode a text, or two as `[CLS] text [SEP] pair [SEP]` (see `frame`), without truncating.

        A literal special piece in the text is read as that piece.
        """
        return self._join(self._encode(text), None if pair is None else self._encode(pair), specials)

    def encode_words(
        self, words: Sequence[str], pair: Sequence[str] | None = None, *, specials: bool = True
    ) -> Encoding:
        """Encode pre-split words; `word_ids` index the given words, and offsets are relative to each word.

        A word that normalises to "" (a zero-width space, say) becomes the unknown piece; "" itself has none.
        """
        return self._join(self._encode_each(words), None if pair is None else self._encode_each(pair), specials)

    def _encode_each(self, words: Sequence[str]) -> Encoding:
        """Encode words so that each has a piece, because its vector and its tag need a place."""
        encoding = self._encode(list(words))
        missing = sorted({n for n, word in enumerate(words) if word} - set(encoding.word_ids.tolist()))
        if not missing:
            return encoding
        places = np.searchsorted(encoding.word_ids, missing)
        return Encoding(
            ids=np.insert(encoding.ids, places, self.unk_id),
            types=np.insert(encoding.types, places, 0),
            offsets=np.insert(encoding.offsets, places, [(0, len(words[word])) for word in missing], axis=0),
            word_ids=np.insert(encoding.word_ids, places, missing),
            tokens=tuple(np.insert(np.array(encoding.tokens, object), places, self.tokens[self.unk_id])),
        )

    def split_words(self, text: str) -> Int32[np.ndarray, "T"]:
        """Return the number of the word of each piece of a text, in the words that the pieces are made within.

        They may be smaller than the words of `encode`: a byte-level BPE splits off punctuation first.
        """
        return self.encode(text, specials=False).word_ids

    def encode_target(self, text: str, *, specials: bool = True) -> Encoding:
        """Encode a text as a translation, which some tokenizers read with other rules than the text to translate."""
        return self.encode(text, specials=specials)

    def batch(
        self,
        texts: Sequence[str | Sequence[str] | tuple[Any, Any]],
        *,
        length: int | None = None,
        packed: bool = False,
        rows: int | None = None,
    ) -> dict[str, np.ndarray]:
        """Return the arrays `tokens, types, positions, segments` [B, T] of texts, for `encoder.module.apply`.

        A text is a string, a list of words, or a pair (tuple) of these. A text with more than `length` pieces is cut
        at its end (with `cuts_start` at its start), of a pair the longer text. Rows have exactly `length` positions, by
        default as many as the longest text. If `packed`, a row holds as many texts as fit, in order, and
        `nsp_positions` [B, S] are the first places of its texts; segments 1 to S are the texts, and 0 is padding.
        `rows` then fixes their number.

        >>> from bert_elmo_jax.text import train_wordpiece
        >>> tokenizer = train_wordpiece(["the river bank"] * 9, vocab_size=40)
        >>> tokenizer.batch(["the bank", "the river", "bank"], length=9, packed=True)["segments"].tolist()
        [[1, 1, 1, 1, 2, 2, 2, 2, 0], [1, 1, 1, 0, 0, 0, 0, 0, 0]]
        """
        from bert_elmo_jax.text.piece_batch import batch_texts  # few programs need it

        return batch_texts(self, texts, length=length, packed=packed, rows=rows)

    @abstractmethod
    def encode_lines(self, lines: Sequence[str]) -> tuple[Int32[np.ndarray, "N"], Int64[np.ndarray, "L"]]:
        """Return the concatenated ids of many lines of a corpus and the length of each, without special pieces.

        Runs on all cores. Pass a few thousand lines per call.
        """

    @abstractmethod
    def normalize(self, text: str) -> str:
        """Return `decode(encode_lines([text])[0])`, but with unknown pieces spelled out."""

    @abstractmethod
    def decode(self, ids: Sequence[int] | Integer[np.ndarray, "N"]) -> str:
        """Return the normalised text of ids, with `[UNK]` and `[MASK]` but without the other special pieces."""

    @abstractmethod
    def files(self) -> dict[str, bytes]:
        """Return the contents of the files that `save` writes, by name, the configuration first."""

    def save(self, folder: str | Path) -> None:
        """Write the files that `load_tokenizer` reads; for transformers, write `files_for_transformers`."""
        for name, content in self._files_with_side().items():
            write_bytes(Path(folder) / name, content)

    def files_for_transformers(self, *, max_positions: int, types: bool = True) -> dict[str, bytes]:
        """Return `files` with the length limit of a model, and without types (token_type_ids) if it reads none."""
        files = self._files_with_side()
        config = json.loads(files["tokenizer_config.json"]) | {"model_max_length": max_positions}
        # Without the list, the class decides, and transformers 5 leaves types out where transformers 4 gives them.
        names = [] if not types or self.frame.types == (0, 0) else ["token_type_ids"]
        config["model_input_names"] = ["input_ids", *names, "attention_mask"]
        return files | {"tokenizer_config.json": encode_json(config)}

    def _files_with_side(self) -> dict[str, bytes]:
        """Return `files` with the side at which texts are cut, if it is not the usual one."""
        files = self.files()
        if not self.cuts_start:
            return files
        config = json.loads(files["tokenizer_config.json"]) | {"truncation_side": "left"}
        return files | {"tokenizer_config.json": encode_json(config)}

    @abstractmethod
    def _encode(self, text: str | list[str]) -> Encoding:
        """Encode a text or a list of words, without adding special pieces."""

    @property
    def target_tokens(self) -> tuple[str, ...]:
        """The pieces of a translation by id, which `decode` reads; some tokenizers have others for what they read."""
        return self.tokens

    @cached_property
    def frame(self) -> Frame:
        """The special pieces around a text and around a pair."""
        return Frame((self.cls_id,), (self.sep_id,), (self.sep_id,))

    def _join(self, first: Encoding, second: Encoding | None, specials: bool) -> Encoding:
        return join_texts(first, second, self._boundaries if specials else [build_encoding()] * 3, self.frame.types)

    @cached_property
    def _boundaries(self) -> list[Encoding]:
        return [
            build_encoding(ids, [(0, 0)] * len(ids), [-1] * len(ids), [self.tokens[number] for number in ids])
            for ids in (self.frame.before, self.frame.between, self.frame.after)
        ]


def reject_text(texts: Iterable[object], error: Exception) -> NoReturn:
    r"""Explain why a library refused some text; called only after it failed, so that valid text costs nothing.

    >>> reject_text(["fine", "half \ud83d"], UnicodeError())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: text 1 holds a lone surrogate, U+D83D at character 5: half of a character, ...
    """
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"text {number} is {text!r:.60}, a {type(text).__name__}; expected a str") from None
        try:
            text.encode()
        except UnicodeEncodeError as problem:
            raise ValueError(
                f"text {number} holds a lone surrogate, U+{ord(text[problem.start]):04X} at character {problem.start}: "
                "half of a character, which cannot be encoded. Decode the source as UTF-16 or with errors='replace', "
                "or remove it."
            ) from None
    raise error


def check_ids(ids: Sequence[int] | Integer[np.ndarray, "N"], vocab_size: int) -> list[int]:
    """Return the ids as a list; raise if one is not in the vocabulary.

    >>> check_ids([3, 9], vocab_size=5)
    Traceback (most recent call last):
    ...
    ValueError: id 9 at position 1 is not in this vocabulary of 5 pieces; use the tokenizer that made the ids
    """
    numbers = np.asarray(ids, np.int64)
    outside = (numbers < 0) | (numbers >= vocab_size)
    if outside.any():
        position = int(np.argmax(outside))
        raise ValueError(
            f"id {numbers[position]} at position {position} is not in this vocabulary of {vocab_size} pieces; "
            "use the tokenizer that made the ids"
        )
    return numbers.tolist()


def list_pieces(index: Mapping[str, Any], source: str) -> tuple[str, ...]:
    """Return the pieces of a vocabulary by id; raise unless the ids are 0, 1, 2, …

    >>> list_pieces({"river": 1, "배": 0}, "vocab.json")
    ('배', 'river')
    """
    if not all(type(number) is int for number in index.values()):
        raise ValueError(f"{source} is not a vocabulary: expected an object that maps pieces to whole numbers")
    if sorted(index.values()) != list(range(len(index))):
        raise ValueError(f"{source}: the ids of its {len(index)} pieces are not 0 to {len(index) - 1}, each once")
    return tuple(sorted(index, key=index.__getitem__))


def project_settings(config: Mapping[str, Any], source: str) -> Mapping[str, Any]:
    """Return this project's entries in a `tokenizer_config.json`, {} if there are none.

    >>> project_settings({"bert_elmo_jax": {"normalization": "NFC"}}, "x")
    {'normalization': 'NFC'}
    """
    entries = config.get(PROJECT_KEY)
    if entries is not None and not isinstance(entries, Mapping):
        raise ValueError(
            f"{source}: {PROJECT_KEY} in tokenizer_config.json is {entries!r:.60}, not an object: copy it again"
        )
    return entries or {}


def check_fingerprint(config: dict[str, Any], fingerprint: str, file: Path) -> None:
    """Raise if the config was saved with another tokenizer; a config without a fingerprint passes."""
    saved = project_settings(config, str(file.parent)).get("fingerprint", fingerprint)
    if saved != fingerprint:
        raise ValueError(
            f"{file} does not match the tokenizer_config.json in its folder (fingerprint {fingerprint[:12]}…, expected "
            f"{str(saved)[:12]}…): one of the two was edited or replaced. Restore both, or delete "
            "tokenizer_config.json to use the file as a released one."
        )


def encode_json(content: Any) -> bytes:
    """Return readable JSON as the bytes of a file."""
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()
