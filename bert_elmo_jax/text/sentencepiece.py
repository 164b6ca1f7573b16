"""SentencePiece tokenizers, released or trained here, on top of the `sentencepiece` library."""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import sentencepiece
from jaxtyping import Bool, Int32, Int64, Integer

from bert_elmo_jax.files import read_bytes
from bert_elmo_jax.text.cleaning import Cleaning, read_cleaning
from bert_elmo_jax.text.composition import find_original
from bert_elmo_jax.text.encoding import Encoding, build_encoding, join_words
from bert_elmo_jax.text.tokenizer import (
    CLS,
    MASK,
    PAD,
    PROJECT_KEY,
    SEP,
    SPACE_MARK,
    SPECIALS,
    UNK,
    Tokenizer,
    check_fingerprint,
    check_ids,
    encode_json,
    reject_text,
)
from bert_elmo_jax.text.tokenizer_checks import check_sentencepiece, read_tokenizer_config
from bert_elmo_jax.text.tokenizer_folder import (
    MASK_LAST_CLASSES,
    MODEL_FILES,
    find_model,
    has_mask_last,
    refuse_split_punctuation,
)

# Names of the special pieces in released models, ours first. The library knows the unknown piece.
USUAL_NAMES = {
    "pad": (PAD, "<pad>"),
    "cls": (CLS, "<cls>", "<s>"),
    "sep": (SEP, "<sep>", "</s>"),
    "mask": (MASK, "<mask>"),
}


def read_sentencepiece(model: bytes, source: str) -> tuple[Any, tuple[str, ...]]:
    """Return the library's processor for the bytes of a `.model` file, and all pieces.

    >>> read_sentencepiece(b"text", "spiece.model")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: spiece.model is not a SentencePiece model, or an incomplete one (...)
    """
    library = sentencepiece.SentencePieceProcessor()
    wrong = f"{source} is not a SentencePiece model, or an incomplete one"
    try:
        # The constructor would accept an empty model silently.
        library.load_from_serialized_proto(model)
        check_sentencepiece(model, source)
        return library, tuple(library.id_to_piece(list(range(library.vocab_size()))))
    except UnicodeDecodeError:  # of a piece, or of the library's message about one
        raise ValueError(f"{wrong} (one of its pieces is not UTF-8)") from None
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"{wrong} ({error})") from None


Piece = TypeVar("Piece", int, str)
Placed = list[tuple[Piece, tuple[int, int]]]


def place_pieces(
    text: str,
    literals: Mapping[str, Piece],
    split: Callable[[str], Placed[Piece]],
    starts_word: Callable[[Piece], bool],
) -> tuple[list[Piece], list[tuple[int, int]], list[int]]:
    """Return the pieces of a text, their offsets and their words; a literal special piece counts as one word.

    `split` places the pieces of a part without literals in that part.
    """
    pieces: list[Piece] = []
    offsets: list[tuple[int, int]] = []
    word_ids: list[int] = []
    start, word = 0, -1
    pattern = f"({'|'.join(map(re.escape, literals))})"
    for number, part in enumerate(re.split(pattern, text)):  # every second part is a literal special piece
        placed = [(literals[part], (0, len(part)))] if number % 2 else split(part)
        for position, (piece, (begin, end)) in enumerate(placed):
            word += position == 0 or starts_word(piece)
            pieces.append(piece)
            offsets.append((start + begin, start + end))
            word_ids.append(word)
        start += len(part)
    return pieces, offsets, word_ids


class SentencePiece(Tokenizer):
    """A SentencePiece tokenizer, from the bytes of a `.model` file.

    `encode` and `encode_words` read a literal special piece (`[MASK]`, or the model's name for it) in the text as that
    piece; `encode_lines` reads it as ordinary text. A piece that starts with ▁ begins a word; its offsets exclude the
    space. With `mask_last`, it is a DeBERTa's as in transformers: offsets include the space, and a model without a mask
    piece has one after its last piece. `cleaning` changes a text before the model's own rules do.

    >>> tokenizer = train_sentencepiece(["배를 타고", "배를 보다"] * 9, vocab_size=30, model="bpe")
    >>> encoding = tokenizer.encode("배를 [MASK]", specials=False)
    >>> encoding.tokens, encoding.offsets.tolist(), encoding.word_ids.tolist()
    (('▁배를', '[MASK]'), [[0, 2], [3, 9]], [0, 1])
    """

    kind = "sentencepiece"

    def __init__(
        self, model: bytes, source: str = "this model", *, mask_last: bool = False, cleaning: Cleaning | None = None
    ):  # fmt: skip
        self.cleaning = Cleaning() if cleaning is None else cleaning
        self._library, self.tokens = read_sentencepiece(model, source)
        self._pieces_of_model = len(self.tokens)
        self.includes_spaces = mask_last
        if mask_last and not set(USUAL_NAMES["mask"]) & set(self.tokens):
            self.tokens = (*self.tokens, MASK)
        self.vocab_size = len(self.tokens)
        specials = list(find_specials(self.tokens, self._library, source))
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = specials
        self.word_starts: Bool[np.ndarray, "V"] = np.array([piece.startswith(SPACE_MARK) for piece in self.tokens])
        self.word_starts[specials] = False
        self.fingerprint = hashlib.sha256(model + self.cleaning.identity).hexdigest()
        self._model = model
        self._index = {self.tokens[number]: number for number in specials}
        self._texts = without_literals(self._library, model, [n for n in specials if n < self._pieces_of_model])
        self._trained_here = self.tokens[: len(SPECIALS)] == SPECIALS
        self._adds_space = self._library.normalize("a").startswith(SPACE_MARK)
        self._written = [self._bytes_of(number) for number in range(self.vocab_size)]

    def encode_lines(self, lines: Sequence[str]) -> tuple[Int32[np.ndarray, "N"], Int64[np.ndarray, "L"]]:
        """Return the concatenated ids of lines and the length of each line."""
        try:
            lines = [self.cleaning.clean(line) for line in lines] if self.cleaning else list(lines)
            if any("\0" in line for line in lines):
                lines = [self._replace_nul(line) for line in lines]
            rows = self._texts.encode(lines, return_type="numpy")
        except (TypeError, RuntimeError, UnicodeError, AttributeError) as error:
            reject_text(lines, error)
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        return np.concatenate([np.empty(0, np.int32), *rows]), lengths

    def normalize(self, text: str) -> str:
        """Return the text normalised by the model's own rules."""
        try:
            return self._plain(self._texts.normalize(self._replace_nul(self.cleaning.clean(text))))
        except (TypeError, RuntimeError, UnicodeError, AttributeError) as error:
            reject_text([text], error)

    def decode(self, ids: Sequence[int] | Integer[np.ndarray, "N"]) -> str:
        """Return the normalised text of ids, with `[UNK]` and `[MASK]` but without the other special pieces."""
        # Joined as bytes, because a model may spell rare characters byte by byte.
        data = b"".join([self._written[number] for number in check_ids(ids, self.vocab_size)])
        return self._plain(data.decode(errors="replace"))

    def files(self) -> dict[str, bytes]:
        """Return `tokenizer_config.json` and the model, under the name that transformers expects for such a model."""
        config: dict[str, Any] = self.cleaning.config() | {PROJECT_KEY: {"fingerprint": self.fingerprint}}
        name = "spiece.model" if self.cleaning else "sentencepiece.model"
        if self.includes_spaces:
            config |= {"tokenizer_class": MASK_LAST_CLASSES[0], "do_lower_case": self.cleaning.lowercase}
            config["vocab_type"], name = "spm", "spm.model"
        return {"tokenizer_config.json": encode_json(config), name: self._model}

    def _bytes_of(self, number: int) -> bytes:
        if number < self._pieces_of_model and self._library.is_byte(number):
            return bytes([int(self.tokens[number][3:5], 16)])
        if number == self.unk_id:
            return UNK.encode()
        if number == self.mask_id:
            return f"{SPACE_MARK}{MASK}".encode()
        if number in self._index.values() or self._library.is_control(number):
            return b""
        return self.tokens[number].encode()

    def _replace_nul(self, text: str) -> str:
        # The rules of models trained here delete control characters; of released ones, each has rules of its own.
        return replace_nul(text) if self._trained_here else text

    def _plain(self, text: str) -> str:
        text = text.replace(SPACE_MARK, " ")
        return text.removeprefix(" ") if self._adds_space else text

    def _encode(self, text: str | list[str]) -> Encoding:
        if isinstance(text, list):
            return join_words([self._encode(word) for word in text])
        try:
            ids, offsets, words = place_pieces(
                text, self._index, self._pieces, lambda number: self.tokens[number].startswith(SPACE_MARK)
            )
        except (TypeError, RuntimeError, UnicodeError) as error:
            reject_text([text], error)
        return build_encoding(ids, offsets, words, [self.tokens[number] for number in ids])

    def _pieces(self, text: str) -> list[tuple[int, tuple[int, int]]]:
        """Return each piece with the library's offsets, corrected for byte pieces and the spaces before words."""
        text, places = self.cleaning.place(text)
        mapping = self._texts.encode(self._replace_nul(text), return_type="offset_mapping")
        spans: list[tuple[int, int]] = []
        for piece, (start, end) in zip(reversed(mapping["ids"]), reversed(mapping["offsets"])):
            # The library gives the character's offsets to the last of its bytes only.
            if start == end and spans and self._library.is_byte(piece):
                start, end = spans[-1]
            while start < end and text[start].isspace():
                start += 1
            if self.includes_spaces and start and text[start - 1].isspace():
                start -= self.tokens[piece].startswith(SPACE_MARK)
            spans.append((start, end))
        if self.cleaning:
            spans = [find_original(places, start, end) for start, end in spans]
        return list(zip(mapping["ids"], reversed(spans)))


def load_sentencepiece(path: str | Path) -> SentencePiece:
    """Load a released or saved model from a `.model` file or its folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     train_sentencepiece(["배를 타고"], vocab_size=20).save(folder)
    ...     load_sentencepiece(folder).tokens[:5]
    ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]')
    """
    path = Path(path)
    file = find_model(path) if path.is_dir() else path
    if file is None or not file.is_file():
        raise FileNotFoundError(
            f"no SentencePiece model at {path}: expected a .model file, or a folder with a single one or one named "
            f"{', '.join(MODEL_FILES)}"
        )
    config = read_tokenizer_config(file.parent)
    refuse_split_punctuation(file.parent)
    options: dict[str, Any] = {"mask_last": has_mask_last(file.parent), "cleaning": read_cleaning(file.parent)}
    tokenizer = SentencePiece(read_bytes(file), str(file), **options)
    check_fingerprint(config, tokenizer.fingerprint, file)
    return tokenizer


def train_sentencepiece(
    texts: Iterable[str], vocab_size: int, *, model: Literal["unigram", "bpe"] = "unigram"
) -> SentencePiece:
    """Train a tokenizer on texts; the result does not depend on their order or the number of threads.

    Text is composed (NFC). `vocab_size` includes the five special pieces, which get the ids 0 to 4; a small corpus may
    give fewer pieces. The distinct words are held in memory, so pass a sample of a large corpus.

    >>> train_sentencepiece(["배를 타고 배를"], vocab_size=20, model="bpe").encode("배를", specials=False).tokens
    ('▁배를',)
    """
    from bert_elmo_jax.text.training import learn_model

    return SentencePiece(learn_model(texts, vocab_size, model))


def replace_nul(text: str) -> str:
    """Return a text without NUL, which rules cannot contain; U+0001 has the same length, and the rules delete it."""
    return text.replace("\0", "\1")


def find_specials(tokens: Sequence[str], library: Any, source: str) -> tuple[int, ...]:
    """Return the ids of the pad, unknown, cls, sep and mask pieces."""
    index = {piece: number for number, piece in enumerate(tokens)}
    ids = {kind: next((index[name] for name in names if name in index), None) for kind, names in USUAL_NAMES.items()}
    missing = [f"{kind} ({' or '.join(USUAL_NAMES[kind])})" for kind, number in ids.items() if number is None]
    if missing:
        raise ValueError(
            f"{source} has no piece for: {', '.join(missing)}. BERT needs all of them: use a model made for BERT, or "
            "train one with train_sentencepiece."
        )
    pad, cls, sep, mask = (number for number in ids.values() if number is not None)
    return pad, library.unk_id(), cls, sep, mask


def without_literals(library: Any, model: bytes, specials: Sequence[int]) -> Any:
    """Return a model whose special pieces never match literal text, as corpus text needs."""
    literal = [number for number in specials if not (library.is_control(number) or library.is_unknown(number))]
    if not literal:
        return library
    from sentencepiece import sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    for number in literal:
        proto.pieces[number].type = proto.SentencePiece.CONTROL
    return sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
