"""Examples of `bert_elmo_jax.train.parallel`."""

import re

import numpy as np
import pytest

from bert_elmo_jax.train.parallel import check_rows


def test_example_of_check_rows():
    with pytest.raises(
        ValueError,
        match=re.escape("a batch's x has 6 rows, which 4 devices cannot share equally: choose a multiple of 4"),
    ):
        check_rows({"x": np.zeros((6, 2))}, 4)
