"""The tokenizer interface, and loading a tokenizer of either kind."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Int32, Int64, Integer

from bert_elmo_jax.text.encoding import Encoding
from bert_elmo_jax.text.sentencepiece_model import MODEL_FILES, find_model
from bert_elmo_jax.text.wordpiece import load_wordpiece
from bert_elmo_jax.text.wordpiece_vocabulary import VOCABULARY_FILES, find_vocabulary


@runtime_checkable
class Tokenizer(Protocol):
    """Converts text to ids and back; implemented by `WordPiece` and `SentencePiece`.

    `tokens` lists the pieces by id. `word_starts` is True for pieces that begin a word and False for special pieces.
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
        """Encode one text or a pair; a literal special piece in the text is read as that piece."""

    def encode_words(
        self, words: Sequence[str], pair: Sequence[str] | None = None, *, specials: bool = True
    ) -> Encoding:
        """Encode pre-split words; `word_ids` index the given words, and a word that normalises to "" has no piece."""

    def encode_lines(self, lines: Sequence[str]) -> tuple[Int32[np.ndarray, "N"], Int64[np.ndarray, "L"]]:
        """Encode corpus text; return all ids and the length of each line, without special pieces."""

    def normalize(self, text: str) -> str:
        """Return `decode(encode_lines([text])[0])`, but with unknown pieces spelled out."""

    def decode(self, ids: Sequence[int] | Integer[np.ndarray, "N"]) -> str:
        """Return the text of ids, with `[UNK]` and `[MASK]` but without the other special pieces."""

    def save(self, folder: str | Path) -> None:
        """Write the files that `load_tokenizer` reads."""


def load_tokenizer(folder: str | Path, *, lowercase: bool | None = None) -> Tokenizer:
    """Load the tokenizer in a folder, or from a `vocab.txt` or `.model` file.

    >>> import tempfile
    >>> from bert_elmo_jax.text import train_wordpiece
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     train_wordpiece(["배를 타고"], vocab_size=20).save(folder)
    ...     load_tokenizer(folder).kind
    'wordpiece'
    """
    path = Path(folder)
    if path.is_file():
        vocabulary, model = (None, path) if path.suffix == ".model" else (path, None)
    else:
        vocabulary, model = find_vocabulary(path), find_model(path)
    if vocabulary and model:
        if vocabulary.name == "vocab.txt":
            raise ValueError(
                f"{path} holds both vocab.txt and {model}: choose one with load_wordpiece or load_sentencepiece"
            )
        vocabulary = None  # the tokenizer.json repeats the model
    if vocabulary:
        return load_wordpiece(path, lowercase=lowercase)
    if model:
        if lowercase is not None:
            raise ValueError(
                f"lowercase={lowercase} was given, but a SentencePiece model ({path}) carries its own "
                "normalisation: leave lowercase out"
            )
        from bert_elmo_jax.text.sentencepiece import load_sentencepiece

        return load_sentencepiece(path)
    if not path.is_dir():
        raise FileNotFoundError(f"no tokenizer at {path}: there is no such file or folder")
    here = ", ".join(sorted(entry.name for entry in path.iterdir())) or "nothing"
    hint = " (words.txt is a word vocabulary: use WordVocabulary.load)" if (path / "words.txt").is_file() else ""
    raise FileNotFoundError(
        f"no tokenizer in {path}: expected {' or '.join(VOCABULARY_FILES)} (WordPiece), {', '.join(MODEL_FILES)}"
        f" or a single *.model (SentencePiece); there is {here}{hint}"
    )
