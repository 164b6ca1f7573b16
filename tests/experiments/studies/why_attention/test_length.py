"""Cost by length: the memory of attention grows with the square of the length, but an LSTM's does not."""

import pytest

from experiments.studies.why_attention.length import build_layer, count_operations, find_crossing, measure_lengths


@pytest.mark.long
def test_memory_against_length():
    costs = measure_lengths((32, 256), width=16, rows=2, least=0.0)
    assert len(costs) == 8
    memory = {(c.kind, c.length): c.memory for c in costs if c.gradients}
    assert memory["attention", 256] > 16 * memory["attention", 32]  # a square would be 64, a line 8
    assert memory["lstm", 256] < 12 * memory["lstm", 32]
    assert all(c.seconds > 0 for c in costs)
    forward, backward = (next(c for c in costs if c.gradients is g) for g in (False, True))
    assert backward.operations == 3 * forward.operations


def test_the_formulas_cross_at_twice_the_width():
    for width in (64, 128):
        sizes = [width, 2 * width, 4 * width]
        both = [[float(count_operations(kind, size, width, 1)) for size in sizes] for kind in ("lstm", "attention")]
        assert find_crossing(sizes, *both) in (None, pytest.approx(2 * width, abs=0.1))
        assert both[0][0] > both[1][0] and both[0][1] == both[1][1] and both[0][2] < both[1][2]


def test_crossings():
    assert find_crossing([1, 2], [1.0, 1.0], [2.0, 3.0]) is None  # it always costs more
    assert find_crossing([1, 2], [3.0, 3.0], [1.0, 2.0]) is None  # it never does
    assert find_crossing([1, 2, 4], [4.0, 4.0, 4.0], [1.0, 2.0, 8.0]) == pytest.approx(2.8, abs=0.1)


def test_the_layers_have_the_weights_that_the_formulas_count():
    for kind, per_square in (("lstm", 8), ("attention", 4)):
        _, params, x = build_layer(kind, 3, width=16, rows=2)
        leaves = [leaf.get("kernel", leaf) if isinstance(leaf, dict) else leaf for leaf in params.values()]
        assert sum(leaf.size for leaf in leaves if leaf.ndim == 2) == per_square * 16**2
        assert x.shape == (2, 3, 16)
