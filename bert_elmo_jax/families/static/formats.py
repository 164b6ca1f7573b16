"""Files of word vectors: text of word2vec, fastText and GloVe, and the binary files of word2vec and fastText."""

from pathlib import Path

from bert_elmo_jax.families.family import WeightFormat
from bert_elmo_jax.lazy_imports import lazy_function

FILES = "bert_elmo_jax.families.static.files"
ENDINGS = (".vec", ".txt", ".bin")
PACKED = (".gz", ".bz2", ".xz", ".zip")


def is_vector_file(path: Path) -> bool:
    """Return True for a file with an ending of word vectors, but not for files of torch with such an ending.

    A packed file, as vectors are often released, is one, so that its reader can say how to unpack it.
    """
    packed = path.suffix.lower() in PACKED
    if (path.with_suffix("") if packed else path).suffix.lower() not in ENDINGS or not path.is_file():
        return False
    if packed:
        return True
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
