"""Examples of `bert_elmo_jax.runs.start_run`."""

import pytest

from bert_elmo_jax.inference import extract
from bert_elmo_jax.runs import start_run
from bert_elmo_jax.runs.start_run import run_point

from ..experiments.programs import run_program


def test_a_point_runs_with_its_fields(capsys):
    def greet(config, workdir, name):
        print(f"{name} trains {config.steps} steps")

    assert run_point(greet, "experiments/configs/bert.py:toy", {"steps": "100"}, "runs/bert", {"name": "Kim"}) == 0
    assert capsys.readouterr().out == "Kim trains 100 steps\n"


@pytest.mark.parametrize("message", ["can't start new thread", "RESOURCE_EXHAUSTED: Out of memory for 9 bytes\nmore"])
def test_short_memory_is_one_line(message, tmp_path, monkeypatch):
    def fail(*arguments, **options):
        raise RuntimeError(message)

    monkeypatch.setattr(extract, "extract", fail)
    done = run_program("extract", "--model=a", "--input=b", f"--output={tmp_path / 'c.h5'}")
    assert (done.status, done.err.splitlines()[-1]) == (2, f"extract: out of memory: {message.splitlines()[0]}")
    message = "another error"
    with pytest.raises(RuntimeError, match="another error"):
        run_program("extract", "--model=a", "--input=b", f"--output={tmp_path / 'c.h5'}")


def test_the_loss_of_another_process_is_one_line_and_an_end_at_once(monkeypatch, capsys):
    from experiments.command_line.start import compute

    class Ended(BaseException):
        pass

    def leave(status):
        raise Ended(status)

    monkeypatch.setattr(start_run.os, "_exit", leave)
    monkeypatch.setattr(start_run, "LAST", 0.0)

    def train():
        try:
            raise ValueError("UNKNOWN: Gloo AllReduce failed: Connection closed by peer\nand more")
        except ValueError as error:
            raise OSError("the checkpoint of step 4 could not be written") from error

    def mistake():
        raise ValueError("batch_size=3: expected 4")

    with pytest.raises(OSError, match="step 4"):  # alone
        compute("pretrain", train)
    monkeypatch.setattr(start_run.jax.distributed, "is_initialized", lambda: True)
    with pytest.raises(ValueError, match="batch_size=3"):
        compute("pretrain", mistake)
    assert capsys.readouterr().err == ""
    with pytest.raises(Ended) as ended:
        compute("pretrain", train)
    assert ended.value.args == (75,)
    output = capsys.readouterr().err
    assert output.startswith("pretrain: another process of this run has ended, or cannot be reached (UNKNOWN: Gloo ")
    assert output.endswith("the same commands resume\n") and output.count("\n") == 1
