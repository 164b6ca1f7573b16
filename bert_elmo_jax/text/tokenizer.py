"""What every tokenizer offers, and loading one from its folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Int32, Int64, Integer

from bert_elmo_jax.text.encoding import Encoding
from bert_elmo_jax.text.sentencepiece import MODEL_FILES, find_model, load_sentencepiece
from bert_elmo_jax.text.wordpiece import load_wordpiece
from bert_elmo_jax.text.wordpiece_vocabulary import VOCABULARY_FILES, find_vocabulary


@runtime_checkable
class Tokenizer(Protocol):
    """Strings to ids and back; `WordPiece` and `SentencePiece` are tokenizers.

    `tokens` lists the pieces by id. `word_starts` is True for pieces that begin a word, so not for special ones.
    `fingerprint` names everything that changes ids: two tokenizers with the same fingerprint are interchangeable.

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
        """One text or a pair; a literal special piece in the text counts as that piece."""

    def encode_words(
        self, words: Sequence[str], pair: Sequence[str] | None = None, *, specials: bool = True
    ) -> Encoding:
        """Words that are split already; `word_ids` number them, and a word that normalises to nothing has no piece."""

    def encode_lines(self, lines: Sequence[str]) -> tuple[Int32[np.ndarray, "N"], Int64[np.ndarray, "L"]]:
        """Corpus text in bulk: all ids and the length of each line; no special pieces, not even literal ones."""

    def normalize(self, text: str) -> str:
        """The text as the ids remember it: `decode(encode_lines([text])[0])` unless a piece is unknown."""

    def decode(self, ids: Sequence[int] | Integer[np.ndarray, "N"]) -> str:
        """The text of ids; special pieces are left out, but `[UNK]` and `[MASK]` show."""

    def save(self, folder: str | Path) -> None:
        """Writes the files that `load_tokenizer` reads."""


def load_tokenizer(folder: str | Path, *, lowercase: bool | None = None) -> Tokenizer:
    """The tokenizer in a folder (or in a `vocab.txt` or `.model` file), whatever its kind, whatever its kind.

    >>> import tempfile
    >>> from bert_elmo_jax.text import train_wordpiece
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     train_wordpiece(["배를 타고"], vocab_size=20).save(folder)
    ...     load_tokenizer(folder).kind
    'wordpiece'
    """
    path = Path(folder)
    if path.is_file():
        found = {"wordpiece": path.suffix != ".model", "sentencepiece": path.suffix == ".model"}
    else:
        found = {"wordpiece": find_vocabulary(path) is not None, "sentencepiece": find_model(path) is not None}
    if found["sentencepiece"] and not (path / "vocab.txt").is_file():
        # A tokenizer.json beside a model only repeats it in another form.
        found["wordpiece"] = False
    if all(found.values()):
        raise ValueError(
            f"{path} holds both vocab.txt and {find_model(path)}: say which with load_wordpiece or load_sentencepiece"
        )
    if found["wordpiece"]:
        return load_wordpiece(path, lowercase=lowercase)
    if found["sentencepiece"]:
        if lowercase is not None:
            raise ValueError(
                f"lowercase={lowercase} was asked for, but a SentencePiece model ({path}) carries its own "
                "normalisation: leave lowercase out"
            )
        return load_sentencepiece(path)
    if not path.is_dir():
        raise FileNotFoundError(f"no tokenizer at {path}: there is no such file or folder")
    here = ", ".join(sorted(entry.name for entry in path.iterdir())) or "nothing"
    words = " (words.txt is a word vocabulary: WordVocabulary.load reads it)" if (path / "words.txt").is_file() else ""
    raise FileNotFoundError(
        f"no tokenizer in {path}: looked for {' or '.join(VOCABULARY_FILES)} (WordPiece), {', '.join(MODEL_FILES)}"
        f" or a single *.model (SentencePiece); there is {here}{words}"
    )
