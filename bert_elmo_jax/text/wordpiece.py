"""WordPiece tokenizers, released or trained here, on top of the `tokenizers` library."""

import hashlib
import json
import unicodedata
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int32, Int64, Integer
from tokenizers import AddedToken, models, pre_tokenizers
from tokenizers import Encoding as LibraryEncoding
from tokenizers import Tokenizer as LibraryTokenizer

from bert_elmo_jax.files import read_json
from bert_elmo_jax.text.encoding import Encoding, Frame, encoding_of
from bert_elmo_jax.text.tokenizer import (
    OWN_KEY,
    SPECIALS,
    UNK,
    Tokenizer,
    check_fingerprint,
    check_ids,
    encode_json,
    reject_text,
)
from bert_elmo_jax.text.tokenizer_folder import VOCABULARY_FILES, find_vocabulary
from bert_elmo_jax.text.wordpiece_files import (
    WordPieceOptions,
    check_added,
    check_vocabulary,
    has_one_type,
    read_options,
    read_vocabulary,
)


class WordPiece(Tokenizer):
    """A WordPiece tokenizer: a list of pieces and the options that normalise text.

    `encode` and `encode_words` read a literal `[MASK]` (or another special piece) in the text as that piece, as
    released tokenizers do. `encode_lines` reads it as ordinary text.

    >>> pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "배", "##를", "the", "ship", "play", "##ing"]
    >>> tokenizer = WordPiece(pieces)
    >>> tokenizer.encode("the [MASK]", "배를 playing").tokens
    ('[CLS]', 'the', '[MASK]', '[SEP]', '배', '##를', 'play', '##ing', '[SEP]')
    """

    kind = "wordpiece"

    def __init__(self, pieces: Sequence[str], options: WordPieceOptions | None = None, *, one_type: bool = False):
        check_vocabulary(pieces, "this list of pieces")
        self.tokens: tuple[str, ...] = tuple(pieces)
        self.options = WordPieceOptions() if options is None else options
        self.vocab_size = len(self.tokens)
        index = {piece: number for number, piece in enumerate(self.tokens)}
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (index[piece] for piece in SPECIALS)
        if one_type:  # the network has no types, or one
            self.frame = Frame((self.cls_id,), (self.sep_id,), (self.sep_id,), (0, 0))
        self.word_starts: Bool[np.ndarray, "V"] = np.array([not piece.startswith("##") for piece in self.tokens])
        self.word_starts[[index[piece] for piece in SPECIALS]] = False
        facts = json.dumps([self.kind, asdict(self.options), self.tokens], sort_keys=True)
        self.fingerprint = hashlib.sha256(facts.encode()).hexdigest()
        self._texts = _library_tokenizer(index, self.options)
        self._marked = _library_tokenizer(index, self.options)
        self._marked.add_special_tokens([AddedToken(piece, special=True, normalized=False) for piece in SPECIALS])
        self._written = [piece[2:] if piece.startswith("##") else f" {piece}" for piece in self.tokens]
        for number in (self.pad_id, self.cls_id, self.sep_id):
            self._written[number] = ""

    def encode_lines(self, lines: Sequence[str]) -> tuple[Int32[np.ndarray, "N"], Int64[np.ndarray, "L"]]:
        """Return the concatenated ids of lines and the length of each; `RAYON_NUM_THREADS` limits the threads."""
        lines = list(lines)
        try:
            encodings = self._texts.encode_batch_fast(lines, add_special_tokens=False)
        except (TypeError, UnicodeError) as error:
            reject_text(lines, error)
        # array.fromlist converts a list to int32 twice as fast as np.array.
        ids = array("i")
        lengths = np.empty(len(lines), np.int64)
        for number, encoding in enumerate(encodings):
            ids.fromlist(line := encoding.ids)
            lengths[number] = len(line)
        return np.frombuffer(ids, np.int32) if ids else np.empty(0, np.int32), lengths

    def normalize(self, text: str) -> str:
        """Return the normalised words and punctuation marks, separated by single spaces."""
        try:
            normal = self._texts.normalizer.normalize_str(text)
        except (TypeError, UnicodeError) as error:
            reject_text([text], error)
        return " ".join(word for word, _ in self._texts.pre_tokenizer.pre_tokenize_str(normal))

    def decode(self, ids: Sequence[int] | Integer[np.ndarray, "N"]) -> str:
        """Return the normalised text of ids, without `[CLS]`, `[SEP]` and `[PAD]`."""
        return "".join([self._written[number] for number in check_ids(ids, self.vocab_size)]).removeprefix(" ")

    def files(self) -> dict[str, bytes]:
        """Return `tokenizer_config.json` and `vocab.txt`, which Hugging Face's libraries read too."""
        config = self.options.config()
        config[OWN_KEY]["fingerprint"] = self.fingerprint
        if self.frame.types == (0, 0):
            config[OWN_KEY]["types"] = 1
        names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIALS))
        return {
            "tokenizer_config.json": encode_json({"tokenizer_class": "BertTokenizer", **names, **config}),
            "vocab.txt": ("\n".join(self.tokens) + "\n").encode(),
        }

    def _encode(self, text: str | list[str]) -> Encoding:
        split = isinstance(text, list)
        units = text if isinstance(text, list) else [text]
        spans = None
        try:
            if self.options.compose and not all(unicodedata.is_normalized("NFC", unit) for unit in units):
                composed = [compose(unit) for unit in units]
                units, spans = [unit for unit, _ in composed], [place for _, place in composed]
            found: LibraryEncoding = self._marked.encode(
                list(units) if split else units[0], is_pretokenized=split, add_special_tokens=False
            )
        except (TypeError, UnicodeError) as error:
            reject_text(units, error)
        word_ids = [-1 if word is None else word for word in found.word_ids]
        offsets = found.offsets
        if spans is not None:
            places = [spans[word if split else 0] for word in word_ids]
            offsets = [(place[start][0], place[end - 1][1]) for place, (start, end) in zip(places, offsets)]
        return encoding_of(found.ids, offsets, word_ids, found.tokens)


def load_wordpiece(path: str | Path, *, lowercase: bool | None = None) -> WordPiece:
    """Load a released or saved tokenizer from a vocabulary file or its folder.

    The options come from `tokenizer_config.json` or `tokenizer.json` in the same folder, else from the pieces;
    `lowercase` overrides.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     train_wordpiece(["배를 타고"], vocab_size=20).save(folder)
    ...     load_wordpiece(folder).normalize("배를  타고")
    '배를 타고'
    """
    path = Path(path)
    file = find_vocabulary(path) if path.is_dir() else path
    if file is None or not file.is_file():
        raise FileNotFoundError(
            f"no WordPiece vocabulary at {path}: expected a vocab.txt, or a folder with {' or '.join(VOCABULARY_FILES)}"
        )
    pieces = read_vocabulary(file)
    check_vocabulary(pieces, str(file))
    check_added(file.parent, pieces)
    config = read_json(file.parent / "tokenizer_config.json", default={})
    options = read_options(file.parent, pieces, lowercase)
    tokenizer = WordPiece(pieces, options, one_type=has_one_type(file.parent, config))
    if OWN_KEY in config:
        saved = tokenizer if lowercase is None else WordPiece(pieces, read_options(file.parent, pieces))
        check_fingerprint(config, saved.fingerprint, file)
    return tokenizer


def train_wordpiece(
    texts: Iterable[str], vocab_size: int, *, lowercase: bool = False, strip_accents: bool = False
) -> WordPiece:
    """Train a tokenizer on texts; the result does not depend on their order or the number of threads.

    Text is composed (NFC). `vocab_size` includes the five special pieces, which get the ids 0 to 4; a small corpus may
    give fewer pieces. The distinct words are held in memory, so pass a sample of a large corpus.

    >>> train_wordpiece(["the sea the ship"] * 9, vocab_size=40).encode("the shape", specials=False).tokens
    ('the', 's', '##h', '##a', '##p', '##e')
    """
    from bert_elmo_jax.text.training import count_words, learn_pieces

    options = WordPieceOptions(lowercase=lowercase, strip_accents=strip_accents, compose=True)
    return WordPiece(learn_pieces(count_words(texts, options), vocab_size), options)


def _library_tokenizer(index: dict[str, int], options: WordPieceOptions) -> LibraryTokenizer:
    tokenizer = LibraryTokenizer(models.WordPiece(index, unk_token=UNK, max_input_chars_per_word=options.longest_word))
    tokenizer.normalizer = options.normalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def compose(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the composed text (NFC), and for each of its characters the (start, end) in the original.

    The libraries compose text, too, but their offsets cover only the first part of a composed character.
    """
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    start = 0
    for end in range(1, len(text) + 1):
        # A part ends before a character that is no mark and does not compose with the previous ones.
        if end < len(text) and not _starts_part(text[start:end], text[end]):
            continue
        part = unicodedata.normalize("NFC", text[start:end])
        parts.append(part)
        if part == text[start:end]:
            spans += [(place, place + 1) for place in range(start, end)]
        else:
            # Marks that do not compose may be reordered, so each character gets the span of the whole part.
            spans += [(start, end)] * len(part)
        start = end
    return "".join(parts), spans


def _starts_part(before: str, character: str) -> bool:
    if character.isascii():
        return True
    if unicodedata.combining(character):
        return False
    joined = unicodedata.normalize("NFC", before + character)
    return joined == unicodedata.normalize("NFC", before) + unicodedata.normalize("NFC", character)
