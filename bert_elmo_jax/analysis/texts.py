"""Reading the texts of a study."""

from collections.abc import Iterator
from typing import Any

from bert_elmo_jax.data.corpora.reading import BadInput
from bert_elmo_jax.data.corpora.text_files import each_text


def read_texts(path: str, encoding: str) -> Iterator[Any]:
    """Yield the texts of a file; of a table, its column `text`, since `probe` has no flag for another."""
    try:
        for _, text in each_text(path, encoding=encoding, skip_blank=True):
            yield text
    except BadInput as error:
        if not error.problem.startswith("no column 'text'"):
            raise
        raise BadInput(
            error.path, error.line, error.problem, "call the column of texts 'text', or give a .txt"
        ) from None
