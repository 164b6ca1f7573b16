"""Messages of the program that compares ways of transfer; studies/transfer/test_compare_ways.py runs the study."""

from .programs import run_program


def test_messages(goldens, tmp_path):
    def run(*flags):
        return run_program("benchmarks.transfer", f"--output={tmp_path}", *flags)

    status, _, err = run()
    assert status == 2 and "--models=… is needed" in err
    status, _, err = run(f"--models={goldens / 'elmo_tiny'}", "--ways=all,gradul")
    assert status == 2 and "'gradul' is not a way of this study; it has all, head_first, gradual, upper, frozen" in err
    assert "did you mean gradual?" in err
    status, _, err = run(f"--models={tmp_path / 'nothing'}")
    assert status == 2 and "nothing" in err
    assert not list(tmp_path.iterdir())
