"""Examples of `bert_elmo_jax.data.corpora.npy`."""

from pathlib import Path

import numpy as np

from bert_elmo_jax.data.corpora.store import NpyAppender


def test_example_of_npyappender():
    import tempfile

    path = Path(tempfile.mkdtemp()) / "numbers.npy"
    with NpyAppender(path, np.dtype("uint16")) as numbers:
        numbers.append(np.array([1, 2]))
        numbers.append(np.array([3]))
    assert repr(np.load(path)) == "array([1, 2, 3], dtype=uint16)"
