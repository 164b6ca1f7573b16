"""The tokenizer interface, the special pieces and the result of encoding, and loading a tokenizer of any kind."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from jaxtyping import Bool, Int32, Int64, Integer

from bert_elmo_jax.files import write_bytes

PAD, UNK, CLS, SEP, MASK = SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
VOCABULARY_FILES = ("vocab.txt", "tokenizer.json")  # newer versions of Hugging Face's libraries write only the second
BPE_FILES = ("vocab.json", "merges.txt")
# The same two files as transformers and as OpenAI name them, for GPT-2 and GPT-1.
BPE_PAIRS = (BPE_FILES, ("encoder.json", "vocab.bpe"), ("encoder_bpe_40000.json", "vocab_40000.bpe"))
MARIAN_FILES = ("source.spm", "target.spm", "vocab.json")
MODEL_FILES = ("sentencepiece.model", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model")
OWN_KEY = "bert_elmo_jax"  # of our own entries in `tokenizer_config.json`


@dataclass(frozen=True, eq=False)
class Encoding:
    """The pieces of one or two texts, with the characters and words they came from.

    `types` are what the model reads: 0 in the first text (with its special pieces) and 1 in the second, or 0
    everywhere, as the tokenizer says. `texts` is 0 in the first text and 1 in the second for every tokenizer; `second`
    is the place where the second begins. `offsets` are (start, end) in the original text, or in the word for
    `encode_words`. `word_ids` number the words of each text from 0. Special pieces that the tokenizer added have the
    offsets (0, 0) and the word id -1.

    >>> from bert_elmo_jax.text import train_wordpiece
    >>> train_wordpiece(["배를 타고"] * 9, vocab_size=30).encode("타고 배를").offsets.tolist()
    [[0, 0], [0, 2], [3, 5], [0, 0]]
    """

    ids: Int32[np.ndarray, "T"]
    types: Int32[np.ndarray, "T"]
    offsets: Int32[np.ndarray, "T 2"]
    word_ids: Int32[np.ndarray, "T"]
    tokens: tuple[str, ...]
    second: int | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def texts(self) -> Int32[np.ndarray, "T"]:
        """Return the text of each piece, 0 or 1; special pieces between the texts belong to the first."""
        return np.zeros_like(self.types) if self.second is None else (np.arange(len(self)) >= self.second).astype("i4")


@dataclass(frozen=True)
class Frame:
    """The special pieces around one text and around a pair, and the types of the two texts.

    >>> Frame(before=(2,), between=(3,), after=(3,))  # [CLS] a [SEP] b [SEP]
    Frame(before=(2,), between=(3,), after=(3,), types=(0, 1))
    """

    before: tuple[int, ...] = ()
    between: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    types: tuple[int, int] = (0, 1)

    def count(self, pair: bool) -> int:
        """Return the number of special pieces of one text or a pair."""
        return len(self.before) + len(self.between) * pair + len(self.after)

    def join(
        self, first: Int32[np.ndarray, "A"], second: Int32[np.ndarray, "B"] | None = None
    ) -> tuple[Int32[np.ndarray, "T"], Int32[np.ndarray, "T"]]:
        """Return the ids and types of one text or a pair with its special pieces.

        >>> [array.tolist() for array in Frame((2,), (3,), (3,)).join(np.array([7, 8], "i4"), np.array([9], "i4"))]
        [[2, 7, 8, 3, 9, 3], [0, 0, 0, 0, 1, 1]]
        """
        before, between, after = (np.array(part, np.int32) for part in (self.before, self.between, self.after))
        head = [before, first] if second is None else [before, first, between]
        tail = [after] if second is None else [second, after]
        ids = np.concatenate([*head, *tail])
        types = np.full(len(ids), self.types[0], np.int32)
        if second is not None:
            types[sum(map(len, head)) :] = self.types[1]
        return ids, types


def encoding_of(
    ids: Sequence[int], offsets: Sequence[tuple[int, int]], word_ids: Sequence[int], tokens: Sequence[str]
) -> Encoding:
    """Return the encoding of one text without special pieces."""
    return Encoding(
        ids=np.array(ids, np.int32),
        types=np.zeros(len(ids), np.int32),
        offsets=np.array(offsets, np.int32).reshape(len(ids), 2),
        word_ids=np.array(word_ids, np.int32),
        tokens=tuple(tokens),
    )


def join_texts(
    first: Encoding,
    second: Encoding | None,
    cls: Encoding | None,
    sep: Encoding | None,
    between: Encoding | None = None,
    types: tuple[int, int] = (0, 1),
) -> Encoding:
    """Return `[CLS] first [SEP] second [SEP]`, or `first second` if `cls` and `sep` are None.

    `between` takes the place of the first `[SEP]` in a pair, and `types` are the types of the two texts.
    """
    pair = second is not None
    parts = [(part, 0) for part in (cls, first, sep if between is None or not pair else between) if part is not None]
    start = sum(len(part) for part, _ in parts)
    if pair:
        parts += [(part, 1) for part in (second, sep) if part is not None]
    return Encoding(
        ids=np.concatenate([part.ids for part, _ in parts]),
        types=np.concatenate([np.full(len(part), types[number], np.int32) for part, number in parts]),
        offsets=np.concatenate([part.offsets for part, _ in parts]),
        word_ids=np.concatenate([part.word_ids for part, _ in parts]),
        tokens=tuple(token for part, _ in parts for token in part.tokens),
        second=start if pair else None,
    )


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
        found = self._encode(list(words))
        if lost := sorted({n for n, word in enumerate(words) if word} - set(found.word_ids.tolist())):
            at = np.searchsorted(found.word_ids, lost)
            tokens = list(found.tokens)
            for place in at[::-1]:
                tokens.insert(place, self.tokens[self.unk_id])
            return Encoding(
                ids=np.insert(found.ids, at, self.unk_id),
                types=np.insert(found.types, at, 0),
                offsets=np.insert(found.offsets, at, [(0, len(words[word])) for word in lost], axis=0),
                word_ids=np.insert(found.word_ids, at, lost),
                tokens=tuple(tokens),
            )
        return found

    def encode_target(self, text: str, *, specials: bool = True) -> Encoding:
        """Encode a text as a translation, which some tokenizers read with other rules than the text to translate."""
        return self.encode(text, specials=specials)

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
        """Write the files that `load_tokenizer` reads; transformers reads them too, except a SentencePiece model."""
        for name, content in self.files().items():
            write_bytes(Path(folder) / name, content)

    def files_for_transformers(self, *, max_positions: int, types: bool = True) -> dict[str, bytes]:
        """Return `files` with the length limit of a model, and without types (token_type_ids) if it has none."""
        files = self.files()
        config = json.loads(files["tokenizer_config.json"]) | {"model_max_length": max_positions}
        if not types:
            config["model_input_names"] = ["input_ids", "attention_mask"]
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
        before, between, after = self._boundaries if specials else (None, None, None)
        return join_texts(first, second, before, after, between, self.frame.types)

    @cached_property
    def _boundaries(self) -> tuple[Encoding, Encoding, Encoding]:
        before, between, after = (
            encoding_of(ids, [(0, 0)] * len(ids), [-1] * len(ids), [self.tokens[number] for number in ids])
            for ids in (self.frame.before, self.frame.between, self.frame.after)
        )
        return before, between, after


def reject_text(texts: Iterable[object], error: Exception) -> NoReturn:
    """Explain why a library refused some text; called only after it failed, so that valid text costs nothing."""
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
    """Return the ids as a list; raise if one is not in the vocabulary."""
    numbers = np.asarray(ids, np.int64)
    outside = (numbers < 0) | (numbers >= vocab_size)
    if outside.any():
        position = int(np.argmax(outside))
        raise ValueError(
            f"id {numbers[position]} at position {position} is not in this vocabulary of {vocab_size} pieces; "
            "use the tokenizer that made the ids"
        )
    return numbers.tolist()


def own_settings(config: Mapping[str, Any], source: str) -> Mapping[str, Any]:
    """Return this project's own entries in a `tokenizer_config.json`, {} if there are none.

    >>> own_settings({"bert_elmo_jax": {"normalization": "NFC"}}, "x")
    {'normalization': 'NFC'}
    """
    own = config.get(OWN_KEY)
    if own is not None and not isinstance(own, Mapping):
        raise ValueError(f"{source}: {OWN_KEY} in tokenizer_config.json is {own!r:.60}, not an object: copy it again")
    return own or {}


def check_fingerprint(config: dict[str, Any], fingerprint: str, file: Path) -> None:
    """Raise if the config was saved with another tokenizer; a config without a fingerprint passes."""
    saved = own_settings(config, str(file.parent)).get("fingerprint", fingerprint)
    if saved != fingerprint:
        raise ValueError(
            f"{file} does not match the tokenizer_config.json in its folder (fingerprint {fingerprint[:12]}…, expected "
            f"{str(saved)[:12]}…): one of the two was edited or replaced. Restore both, or delete "
            "tokenizer_config.json to use the file as a released one."
        )


def encode_json(content: Any) -> bytes:
    """Return readable JSON as the bytes of a file."""
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


def find_vocabulary(folder: Path) -> Path | None:
    """Return the WordPiece vocabulary of a folder, or None."""
    return next((folder / name for name in VOCABULARY_FILES if (folder / name).is_file()), None)


def find_bpe(folder: Path) -> tuple[str, str]:
    """Return the names of the vocabulary and merges of a BPE in a folder, by the first of either that is there.

    >>> find_bpe(Path("tests/goldens/gpt2_tiny"))
    ('vocab.json', 'merges.txt')
    """
    there = [pair for pair in BPE_PAIRS if any((folder / name).is_file() for name in pair)]
    return there[0] if there else BPE_FILES


def find_model(folder: Path) -> Path | None:
    """Return the SentencePiece model of a folder: a usual name, else its only `.model` file."""
    usual = next((folder / name for name in MODEL_FILES if (folder / name).is_file()), None)
    others = list(folder.glob("*.model"))
    return usual or (others[0] if len(others) == 1 else None)


def load_tokenizer(folder: str | Path, *, lowercase: bool | None = None) -> Tokenizer:
    """Load the tokenizer in a folder, or from its vocabulary, `tokenizer.json` or `.model` file.

    A folder holds one of: `vocab.txt` (WordPiece), `vocab.json` with `merges.txt` (BPE, byte-level or with `</w>`), a
    SentencePiece model, `source.spm` with `target.spm` and `vocab.json` (Marian), or a `tokenizer.json`; the rules of
    normalisation and splitting in that file are followed.

    >>> import tempfile
    >>> from bert_elmo_jax.text import train_wordpiece
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     train_wordpiece(["배를 타고"], vocab_size=20).save(folder)
    ...     load_tokenizer(folder).kind
    'wordpiece'
    """
    path = Path(folder)
    kind = _find_kind(path)
    if kind == "wordpiece":
        from bert_elmo_jax.text.wordpiece import load_wordpiece

        return load_wordpiece(path, lowercase=lowercase)
    if kind == "marian" and lowercase is None:
        from bert_elmo_jax.text.marian import load_marian

        return load_marian(path)
    if lowercase is not None:
        raise ValueError(
            f"lowercase={lowercase} was given, but a {'SentencePiece model' if kind == 'sentencepiece' else kind} "
            f"({path}) carries its own normalisation: leave lowercase out"
        )
    if kind == "sentencepiece":
        from bert_elmo_jax.text.sentencepiece import load_sentencepiece

        return load_sentencepiece(path)
    from bert_elmo_jax.text.tokenizer_file import load_tokenizer_file

    return load_tokenizer_file(path)


def _find_kind(path: Path) -> str:
    """Return the kind at a path: "wordpiece", "sentencepiece", "marian", "tokenizer.json" or "byte-level BPE"."""
    if path.is_file():
        from bert_elmo_jax.text.wordpiece_files import is_wordpiece

        if path.suffix == ".model":
            return "sentencepiece"
        if any(path.name in pair for pair in BPE_PAIRS):
            return "byte-level BPE"
        return "wordpiece" if path.suffix != ".json" or is_wordpiece(path) else "tokenizer.json"
    return _find_kind_in(path)


def _find_kind_in(folder: Path) -> str:
    from bert_elmo_jax.text.shifted_pieces import prefers_file
    from bert_elmo_jax.text.wordpiece_files import is_wordpiece

    if any((folder / name).is_file() for name in MARIAN_FILES[:2]):
        return "marian"
    whole, lines, model = folder / "tokenizer.json", folder / "vocab.txt", find_model(folder)
    pairs = [name for pair in BPE_PAIRS for name in pair if (folder / name).is_file()]
    if lines.is_file() and (model or pairs):
        one = f"both vocab.txt and {model or ' and '.join(pairs)}"
        raise ValueError(f"{folder} holds {one}: choose one with load_wordpiece or load_sentencepiece")
    if model:
        # A tokenizer.json usually repeats the model; where its ids differ, it is the one to read.
        return "tokenizer.json" if prefers_file(folder) else "sentencepiece"
    if whole.is_file():
        return "wordpiece" if is_wordpiece(whole) else "tokenizer.json"
    if lines.is_file():
        return "wordpiece"
    if pairs:
        return "byte-level BPE"
    if not folder.is_dir():
        raise FileNotFoundError(f"no tokenizer at {folder}: there is no such file or folder")
    here = ", ".join(sorted(entry.name for entry in folder.iterdir())) or "nothing"
    hint = " (words.txt is a word vocabulary: use WordVocabulary.load)" if (folder / "words.txt").is_file() else ""
    raise FileNotFoundError(
        f"no tokenizer in {folder}: expected {' or '.join(VOCABULARY_FILES)} (WordPiece), {' with '.join(BPE_FILES)} "
        f"(BPE), {', '.join(MODEL_FILES)} or a single *.model (SentencePiece); there is {here}{hint}"
    )
