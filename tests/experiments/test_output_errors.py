"""Programs whose output cannot be written, or is a mistake: one clear line, and no files are left behind."""

import errno

import pytest

from bert_elmo_jax.inference import convert, extract

from ..inference.test_task_model import write
from .programs import run_program


def test_an_extraction_from_a_run_directory_is_quiet(tmp_path):
    model = write(tmp_path / "run", "sst2", labels=("a", "b"))
    (tmp_path / "a.txt").write_text("a ship\nthe ship\n")
    done = run_program("extract", f"--model={model}", f"--input={tmp_path / 'a.txt'}", f"--output={tmp_path / 'a.h5'}")
    assert done.status == 0, done.err
    assert "orbax" not in (done.out + done.err).lower() and "checkpoint" not in done.err.lower()


@pytest.mark.parametrize("named", [True, False])
def test_a_full_disk_says_where(tmp_path, monkeypatch, named):
    def fail(*args, **options):
        raise OSError(errno.ENOSPC, "No space left on device", *["model.safetensors"] * named)

    monkeypatch.setattr(convert, "convert", fail)
    monkeypatch.setattr(extract, "extract", fail)
    for name, words in (
        ("convert", ("--from=a", "--to=there")),
        ("extract", ("--model=a", "--input=b", "--output=there")),
    ):
        done = run_program(name, *words)
        where = ": 'model.safetensors'" if named else f" ({words[-1]})"
        advice = "make room there, or name another place, and run the command again"
        assert done.status == 2
        assert done.err.endswith(f"{name}: [Errno 28] No space left on device{where}; {advice}\n")


def test_a_full_disk_during_safetensors(tmp_path, goldens):
    """A limit on the size of files acts like a full disk."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(OSError, match=r"File too large: '.*model.safetensors.unfinished'"):
            convert.convert(str(goldens / "bert_tiny"), tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.rglob("*.unfinished"))
    assert not (tmp_path / "out").exists()
    assert convert.convert(str(goldens / "bert_tiny"), tmp_path / "out")[0] == "huggingface"


def test_a_conversion_writes_below_the_home_folder_and_removes_nothing_of_yours(tmp_path, monkeypatch, goldens):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "best.partial").mkdir()
    (tmp_path / "best.partial" / "notes.txt").touch()
    done = run_program("convert", f"--from={goldens / 'bert_tiny'}", "--to=~/best")
    assert done.status == 0 and (tmp_path / "best" / "config.json").is_file(), done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best", "best.partial"]
    assert (tmp_path / "best.partial" / "notes.txt").is_file()
    write(tmp_path / "run", "sst2", labels=("a", "b"))
    with pytest.raises(ValueError, match="run holds 1 checkpoints"):
        convert.convert("~/run", tmp_path / "mean", average=2)


@pytest.mark.parametrize("program", ["finetune", "pretrain"])
def test_a_run_directory_of_something_else(program, tmp_path):
    (tmp_path / "thesis.docx").touch()
    words = {
        "finetune": ("--task=sst2", "--train=a.tsv", "--dev=a.tsv", "--init=tests/goldens/bert_tiny"),
        "pretrain": ("--config=experiments/configs/bert.py:toy",),
    }[program]
    done = run_program(program, *words, f"--workdir={tmp_path}")
    assert done.status == 2
    assert done.err.endswith(f"{program}: {tmp_path} holds other files than a run's (thesis.docx): give a new folder\n")
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.docx"]
