"""The benchmark runs at a toy size, and both ways give the same result."""

import jax
import numpy as np
import pytest
from absl import flags

from bert_elmo_jax.losses import draw_negatives


@pytest.fixture(scope="module")
def benchmark(program):
    return program("benchmarks.sampled_softmax")


@pytest.fixture(autouse=True)
def tiny(benchmark):
    toy = {"words": ["40", "90"], "width": 4, "positions": 6, "negatives": 10, "repeats": 2, "dense_up_to": 50}
    saved = flags.FLAGS.flag_values_dict()
    for name, value in toy.items():
        setattr(flags.FLAGS, name, value)
    yield
    for name in toy:
        setattr(flags.FLAGS, name, saved[name])


@pytest.mark.long
def test_it_prints_a_table(benchmark, capsys):
    benchmark.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:4]] == ["40", "90"]
    assert all(float(figure) > 0 for figure in lines[2].split()[1:])
    assert lines[3].split()[1] == lines[3].split()[3] == "nan"
    assert "update by touched rows: the slowest" in lines[4] and "step by touched rows" in lines[5]


@pytest.mark.parametrize("gradient", ["of_loss", "gradients"])
def test_both_ways_do_the_same(benchmark, gradient):
    gradient = getattr(benchmark, gradient)
    params, state = benchmark.new_state(40)
    batch = {**benchmark.new_batch(40), "negatives": draw_negatives(jax.random.key(0), 10, 40)}
    results = [
        jax.jit(lambda *a, way=way: way(gradient, *a))(params, state, batch)
        for way in (benchmark.dense, benchmark.touched)
    ]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), *results)
    assert np.any(results[0][0]["embedding"] != params["embedding"])
