"""Files of word vectors: text of word2vec, fastText and GloVe, and the binary files of word2vec and fastText."""

from pathlib import Path

from bert_elmo_jax.families.family import WeightFormat
from bert_elmo_jax.lazy_imports import lazy_function

FILES = "bert_elmo_jax.families.static.files"
ENDINGS = (".vec", ".txt", ".bin")


def is_vector_file(path: Path) -> bool:
    """Return True for a file whose name ends as those of word vectors, but not for torch's files of this name."""
    if path.suffix.lower() not in ENDINGS or not path.is_file():
        return False
    with open(path, "rb") as file:
        return not file.read(2).startswith((b"PK", b"\x80"))


FORMATS = {
    "vectors": WeightFormat(
        owner="a file of word vectors",
        looks_like="its path, ending in .vec, .txt or .bin",
        files=lambda folder: [],  # beside other models there are such files, too
        read_config=lazy_function(FILES, "read_config"),
        read_weights=lazy_function(FILES, "read_weights"),
        is_file=is_vector_file,
    )
}
