"""Several input files, each with an output of its own: shared out, stopped, on Ray, they are as if predicted alone."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bert_elmo_jax.inference.extract import extract
from bert_elmo_jax.inference.many_files import FileJob, check_shared, leave_out_outputs, name_outputs, share_files, work
from bert_elmo_jax.inference.predict_file import predict_file
from bert_elmo_jax.progress_bars import progress_bar, replace_bars

from ..simulated_devices import program_environment
from .test_task_model import write

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return str(write(tmp_path_factory.mktemp("model") / "sst2", "sst2", labels=("0", "1")))


@pytest.fixture
def files(tmp_path):
    """Write three tables, the second one long, and return their folder."""
    (tmp_path / "new").mkdir()
    for name, count in (("a", 3), ("b", 400), ("배", 5)):
        rows = "".join(f"{word} the film {n}\t0\n" for n in range(count) for word in ("good",))
        (tmp_path / "new" / f"{name}.tsv").write_text(f"sentence\tlabel\n{rows}", encoding="utf-8")
    return tmp_path


def predict_each(run, files):
    """Return the bytes of each file's predictions, each by a call of its own."""
    outputs = {}
    for file in sorted((files / "new").iterdir()):
        predict_file(run, str(file), str(files / "alone" / f"{file.stem}.csv"))
        outputs[f"{file.stem}.csv"] = (files / "alone" / f"{file.stem}.csv").read_bytes()
    return outputs


def written(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.startswith(".")}


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("out.csv", "expected one * in the name of the file"),
        ("*/out.csv", "expected one * in the name of the file"),
        ("out/*-*.csv", "expected one * in the name of the file"),
        ("out/*.csv", "may/a.csv and june/a.csv would both be written to out/a.csv"),
    ],
)
def test_names_of_outputs(target, message):
    with pytest.raises(ValueError) as refused:
        name_outputs(["may/a.csv", "june/a.csv"], target)
    assert message in str(refused.value)


def test_outputs_of_an_earlier_call_are_no_inputs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    files = ["new/a.csv", "new/a_out.csv", "new/a_out.csv.skipped.jsonl", "new/b.csv", "new/b_out.csv.partial"]
    Path("new").mkdir()
    with pytest.raises(ValueError, match=r"the output of new/a\.csv would replace new/a_out\.csv, another input"):
        leave_out_outputs(files, "new/*_out.csv")
    Path("new/.a_out.csv.request").touch()
    assert leave_out_outputs(files, "new/*_out.csv") == ["new/a.csv", "new/b.csv"]
    assert "3 of 5 files left out of the input: an earlier run of this command wrote them" in capsys.readouterr().err
    assert leave_out_outputs(files, "out/*_out.csv") == files


@pytest.mark.long
def test_the_same_command_takes_no_output_as_input_and_finds_the_home(run, files, monkeypatch):
    monkeypatch.setenv("HOME", str(files))
    monkeypatch.chdir(files)
    (files / "new" / "b.tsv").write_text("sentence\tlabel\n \t0\ngood film\t0\n", encoding="utf-8")
    for _ in range(2):
        share_files(predict_file, run, "~/new/*.tsv", "~/new/*_out.tsv", {"on_bad": "skip"})
        outputs = [f"{name}_out.tsv" for name in ("a", "b", "배")]
        inputs = [f"{name}.tsv" for name in ("a", "b", "배")]
        assert sorted(written(files / "new")) == sorted([*inputs, *outputs, "b_out.tsv.skipped.jsonl"])
    predict_file(run, "~/new/b.tsv", "~/out.jsonl", on_bad="skip")
    assert (files / "out.jsonl.skipped.jsonl").is_file() and not (files / "~").exists()


@pytest.mark.long
def test_extraction_of_several_files_continues_after_complete_ones(run, files, capfd):
    command = (extract, run, f"{files}/*.txt", f"{files}/vectors/*.npz", {"layers": [-1]})
    (files / "one.txt").write_text("one film\n", encoding="utf-8")
    share_files(*command)
    time_of_one = (files / "vectors" / "one.npz").stat().st_mtime_ns
    (files / "two.txt").write_text("two film\n", encoding="utf-8")
    share_files(*command)
    assert "one.npz is complete already, by the same command: 1 examples" in capfd.readouterr().out
    assert (files / "vectors" / "one.npz").stat().st_mtime_ns == time_of_one
    assert sorted(written(files / "vectors")) == ["one.npz", "two.npz"]
    with pytest.raises(FileExistsError, match=r"one\.npz exists; remove it"):
        share_files(*command[:-1], {"layers": [0]})


def test_flags_that_would_mean_nothing_are_refused():
    assert check_shared("out/*.csv", 2, "local", None, 0.0) and check_shared("out/*.csv", 1, "ray", "auto", 1.0)
    assert not check_shared("out.csv", 1, "local", None, 0.0)
    for flags in ((2, "local", None, 0.0), (1, "ray", None, 0.0), (1, "local", None, 1.0)):
        with pytest.raises(ValueError, match="each needs an output of its own"):
            check_shared("out.csv", *flags)
    with pytest.raises(ValueError, match="are for --runner=ray"):
        check_shared("out/*.csv", 2, "local", None, 1.0)


def test_in_a_worker_bars_are_silent_and_can_stop_it(capsys):
    calls = []

    def stop():
        calls.append(1)
        if len(calls) == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError), replace_bars(stop), progress_bar(9, "texts") as bar:
        for _ in range(9):
            bar.update()
    assert len(calls) == 3 and capsys.readouterr() == ("", "")
    with progress_bar(1, "texts") as bar:
        bar.update()
    assert len(calls) == 3 and "texts" in capsys.readouterr().err


def test_a_job_reports_its_bytes_and_is_as_a_call_alone(run, files):
    reports = []
    source, target = str(files / "new" / "b.tsv"), str(files / "out" / "b.csv")
    work(FileJob(predict_file, run, source, target, {"batch_size": 8}, 7), reports.append)
    assert reports[-1] == 7 and set(reports[:-1]) == {0} and len(reports) > 3
    predict_file(run, source, str(files / "alone.csv"), batch_size=8)
    assert Path(target).read_bytes() == (files / "alone.csv").read_bytes()


@pytest.mark.long
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)  # Ray's sockets
@pytest.mark.parametrize("how", [{"workers": 2}, {"runner": "ray"}], ids=("processes", "ray"))
def test_shared_out_they_are_as_if_alone(run, files, how):
    if "runner" in how:
        pytest.importorskip("ray", reason="needs the extra `cluster`")
    arguments = predict_file, run, str(files / "new" / "*.tsv"), str(files / "out" / "*.csv"), {}
    share_files(*arguments, **how)
    assert written(files / "out") == predict_each(run, files)
    times = {file: file.stat().st_mtime_ns for file in (files / "out").glob("*.csv")}
    share_files(*arguments, **how)
    assert times == {file: file.stat().st_mtime_ns for file in (files / "out").glob("*.csv")}, "complete ones stay"


@pytest.mark.long
def test_vectors_of_several_files(run, files):
    h5py = pytest.importorskip("h5py")
    for name in ("one", "two"):
        (files / f"{name}.txt").write_text(f"{name} film\nthe film\n", encoding="utf-8")
    share_files(extract, run, f"{files}/one.txt,{files}/two.txt", f"{files}/vectors/*.h5", {"layers": [-1]}, workers=2)
    for name in ("one", "two"):
        with h5py.File(files / "vectors" / f"{name}.h5") as file:
            assert file["0"].shape[0] == 1 and f"{name} film" in file["sentence_to_index"][0].decode()


@pytest.mark.long
def test_stopped_in_the_middle_the_same_command_continues(run, files):
    rows = "".join(f"good the film {n} {'very ' * (n % 9)}good\t0\n" for n in range(80_000))
    (files / "new" / "b.tsv").write_text(f"sentence\tlabel\n{rows}", encoding="utf-8")
    command = [sys.executable, "-m", "experiments.predict", f"--model={run}", f"--input={files}/new/*.tsv",
               f"--output={files}/out/*.csv", "--workers=2"]  # fmt: skip
    started = subprocess.Popen(command, cwd=ROOT, env=program_environment(), stderr=subprocess.PIPE, text=True)
    progress, until = files / "out" / "b.csv.partial" / "progress.json", time.monotonic() + 120
    while not progress.exists() and time.monotonic() < until:
        time.sleep(0.02)
    started.send_signal(signal.SIGINT)
    _, messages = started.communicate(timeout=60)
    assert started.returncode == 130 and progress.exists(), messages
    done = subprocess.run(command, cwd=ROOT, env=program_environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "are from a stopped run" in done.stderr
    assert written(files / "out") == predict_each(run, files)
