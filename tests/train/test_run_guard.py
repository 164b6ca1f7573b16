"""A run directory is new, empty, or of the same run."""

from pathlib import Path

import pytest

from bert_elmo_jax.train.checkpoint import Checkpoints, load_params, save_params
from bert_elmo_jax.train.run_guard import refuse_other_files, same_run


@pytest.mark.parametrize("name", ["thesis.docx", "model.json", "checkpoints", "src", "data.csv", "lockfile"])
def test_other_files_are_refused_and_stay_alone(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(FileExistsError, match=rf"holds other files than a run's \({name}\): give a new folder"):
        refuse_other_files(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_files_of_an_interrupted_start_are_allowed(tmp_path):
    refuse_other_files(tmp_path / "new")
    refuse_other_files(tmp_path)
    for name in ("lock", "costs.jsonl", "log.txt", "point.json", "run.json.123.partial", ".DS_Store", "slurm-7.out"):
        (tmp_path / name).touch()
    for name in ("skipped.jsonl", "examples.json"):  # of finetune
        (tmp_path / name).touch()
    for name in ("toyworld", "adapted", "lost+found"):
        (tmp_path / name).mkdir()
    refuse_other_files(tmp_path)
    (tmp_path / "notes.md").touch()
    same_run(tmp_path, {"steps": 1})
    refuse_other_files(tmp_path)  # a run, to which a user has added notes


def test_a_name_that_the_system_cannot_write():
    """LC_ALL=C without the UTF-8 mode: Python reads the bytes of Hangul as half characters."""
    name = Path("/tmp/\udced\udc95\udc9c")
    with pytest.raises(ValueError, match=r"is not text in the encoding of this system's file names.*PYTHONUTF8=1"):
        save_params(name, 1, {})
    with pytest.raises(ValueError, match="PYTHONUTF8=1"):
        Checkpoints(name)  # before the first step, not at the first checkpoint
    with pytest.raises((ValueError, FileNotFoundError)):
        load_params(name)
