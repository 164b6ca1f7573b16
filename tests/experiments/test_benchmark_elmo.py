"""The benchmark runs at a toy size, on any machine, so that it cannot rot."""

import sys

import jax
import numpy as np
import pytest
from absl import flags

from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.families.elmo.model import Elmo, init_elmo_params

TINY = ElmoConfig(cell_size=8, projection_size=4, filters=((1, 4), (2, 4)), num_highways=1)


@pytest.fixture(scope="module")
def benchmark(program):
    return program("benchmarks.elmo")


@pytest.fixture
def run(monkeypatch, benchmark):
    monkeypatch.setattr(benchmark, "make_config", lambda name, **changes: ElmoConfig(**vars(TINY) | changes))
    names = ("what", "peers", "presets", "batches", "window", "dtype", "repeats")
    saved = {name: flags.FLAGS[name].value for name in names}

    def run(**values):
        for name, value in values.items():
            setattr(flags.FLAGS, name, value)
        benchmark.main()

    yield run
    for name, value in saved.items():
        setattr(flags.FLAGS, name, value)


@pytest.mark.long
def test_ours_alone(run, capsys):
    run(what="compare", presets=["tiny"], batches=["3x4", "1x2"], repeats=1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("tiny, 3 x 4 words") and lines[3].startswith("tiny, 1 x 2 words")
    assert [line.split()[0] for line in lines[1:3]] == ["forward", "both"]


@pytest.mark.parametrize("dtype", ["float32", pytest.param("bfloat16", marks=pytest.mark.long)])
def test_training(run, capsys, dtype):
    run(what="train", presets=["tiny"], window="2x5", dtype=dtype, repeats=2)
    assert f"tiny, {dtype}, 2 x 5" in capsys.readouterr().out


@pytest.mark.long
def test_a_peer_that_fails_ends_the_run(run, tmp_path):
    fake = tmp_path / "python"
    fake.write_text(f"#!{sys.executable}\nraise SystemExit('no torch here')\n")
    fake.chmod(0o755)
    with pytest.raises(SystemExit, match=r"AllenNLP in .* ended without an answer"):
        run(what="compare", presets=["tiny"], batches=["1x2"], repeats=1, peers=str(fake))


@pytest.mark.long
def test_a_peer_is_timed_in_turn_and_its_vectors_are_compared(run, benchmark, tmp_path, capsys):
    """A peer that knows our vectors is timed; one that says others is not."""
    ids = benchmark.make_ids(1, 2)
    params = init_elmo_params(TINY, jax.random.key(0))["encoder"]
    right = np.asarray(benchmark.make_passes(TINY, params, ids)["forward"]())[0]
    fake = tmp_path / "python"
    answers = (
        'import sys, json\nprint(json.dumps({"about": "fake", "vectors": %s}), flush=True)\n'
        "for line in sys.stdin: print(2.0, flush=True)\n"
    )
    for vectors in (right, right + 1):
        fake.write_text(f"#!{sys.executable}\n" + answers % vectors.tolist())
        fake.chmod(0o755)
        if vectors is right:
            run(what="compare", presets=["tiny"], batches=["1x2"], repeats=1, peers=str(fake))
            assert "AllenNLP 2.000 s" in capsys.readouterr().out
        else:
            with pytest.raises(AssertionError, match="do not compute the same"):
                run(what="compare", presets=["tiny"], batches=["1x2"], repeats=1, peers=str(fake))


def test_distinct_words_with_their_marks_are_the_sentences(benchmark):
    ids = benchmark.make_ids(3, 5)
    words, lengths, table = benchmark.prepare(ids)
    assert table.shape == (1, 16, 16) and lengths.tolist() == [7, 7, 7]
    np.testing.assert_array_equal(table[0][words[:, 1:-1]], ids[:, :, :16])
    assert (words[:, 0] == 0).all() and (words[:, -1] == 1).all()
    assert Elmo(TINY).init(jax.random.key(0), words, lengths, characters=table)
