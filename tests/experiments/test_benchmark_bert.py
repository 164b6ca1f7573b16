"""The benchmark runs at a toy size, on any machine, so that it cannot rot."""

import sys

import jax
import pytest
from absl import flags

from bert_elmo_jax.families.bert.config import BertConfig

TINY = BertConfig(vocab_size=50, hidden_size=8, num_layers=1, num_heads=2, feed_forward_size=8)


@pytest.fixture(scope="module")
def benchmark(program):
    return program("benchmarks.bert")


@pytest.fixture
def run(monkeypatch, benchmark):
    monkeypatch.setattr(benchmark, "make_config", lambda name, **changes: BertConfig(**vars(TINY) | changes))
    saved = flags.FLAGS.flag_values_dict()

    def run(**values):
        for name, value in values.items():
            setattr(flags.FLAGS, name, value)
        benchmark.main()

    yield run
    for name in ("what", "peers", "kinds", "presets", "lengths", "tokens", "repeats", "product"):
        setattr(flags.FLAGS, name, saved[name])


@pytest.mark.long
def test_ours_alone(run, capsys):
    run(what="step", lengths=["16"], tokens=32, repeats=2)
    assert "2 x 16 tokens, 2 predictions per row" in capsys.readouterr().out


@pytest.mark.long
def test_utilisation(run, capsys):
    run(what="utilisation", presets=["tiny"], lengths=["16"], tokens=32, repeats=2, product=64)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and all("rows/s, utilisation" in line for line in lines[1:])
    assert {line.split()[4] for line in lines[1:]} == {"fused", "reference"}


@pytest.mark.long
def test_a_peer_that_fails_ends_the_run(run, capfd, tmp_path):
    fake = tmp_path / "python"
    fake.write_text(f"#!{sys.executable}\nraise SystemExit('no torch here')\n")
    fake.chmod(0o755)
    with pytest.raises(SystemExit, match=r"pytorch in .* ended without an answer"):
        run(what="step", lengths=["16"], tokens=32, repeats=1, peers=str(fake))


def test_operations_are_those_that_xla_counts(benchmark):
    batch = benchmark.make_batch(TINY, 4, 32)
    params = benchmark.init_params(benchmark.FAMILY, TINY, jax.random.key(0), ("mlm", "nsp"))
    forward = jax.jit(lambda p: benchmark.loss(p, batch, None, TINY)).lower(params).compile().cost_analysis()["flops"]
    ours = benchmark.operations(TINY, batch) / 3
    assert 0.4 * forward < ours < forward  # at this size element-wise work, which is not counted, weighs much


@pytest.mark.long
def test_encoding_runs_at_a_toy_size():
    """Ours alone, from the sentences to the figure."""
    import subprocess

    command = [sys.executable, "-m", "experiments.benchmarks.bert_encode", "--preset=tiny", "--count=9", "--repeats=1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "9 sentences of up to" in done.stdout
    assert "ours" in done.stdout
