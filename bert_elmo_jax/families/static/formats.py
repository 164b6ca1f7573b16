"""Files of word vectors: text of word2vec, fastText and GloVe, and the binary files of word2vec and fastText."""

from pathlib import Path

from bert_elmo_jax.families.family import WeightFormat
from bert_elmo_jax.lazy_imports import lazy_function

FILES = "bert_elmo_jax.families.static.files"
ENDINGS = (".vec", ".txt", ".bin")


def is_vector_file(path: Path) -> bool:
    """Return True for a file with an ending of word vectors, but not for files of torch with such an ending."""
    if path.suffix.lower() not in ENDINGS or not path.is_file():
        return False
    with open(path, "rb") as file:
        return not file.read(2).startswith((b"PK", b"\x80"))


FORMATS = {
    "vectors": WeightFormat(
        owner="a file of word vectors",
        looks_like="its path, ending in .vec, .txt or .bin",
        files=lambda folder: [],  # other models have such files in their folders
        read_config=lazy_function(FILES, "read_config"),
        read_weights=lazy_function(FILES, "read_weights"),
        is_file=is_vector_file,
    )
}
