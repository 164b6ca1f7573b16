import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.data.rows.draws import generator, uniforms


@given(st.integers(0, 2**40), st.integers(0, 2**35), st.integers(1, 9), st.integers(1, 13))
def test_rows_of_draws_do_not_need_the_rows_before(seed, first, rows, width):
    table = uniforms((seed, 3), first, rows, width)
    assert table.shape == (rows, width)
    for row in range(rows):
        assert (uniforms((seed, 3), first + row, 1, width)[0] == table[row]).all()


def test_draws_are_uniform_and_rows_and_keys_are_uncorrelated():
    table = uniforms((0, 1), 0, 2000, 50)
    counts = np.histogram(table, 20, (0, 1))[0]
    assert abs(counts - 5000).max() < 5 * np.sqrt(5000)
    other = uniforms((0, 2), 0, 2000, 50)
    for a, b in ((table[:-1], table[1:]), (table, other), (table[:, :-1], table[:, 1:])):
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 5 / np.sqrt(a.size)
    assert generator(1).random() != generator(1, 0).random()
