import json
import threading
import time

import numpy as np
import pytest

from bert_elmo_jax.train import checkpoint
from bert_elmo_jax.train.checkpoint import Checkpoints, load_params, save_params, saved_steps
from bert_elmo_jax.train.run_guard import ClockWentBack

from ..simulated_devices import program_environment

PARAMS = {
    "encoder": {"kernel": np.arange(6000, dtype=np.float32).reshape(60, 100)},
    "head": {"bias": np.ones(3, np.float32)},
}


@pytest.fixture
def run(tmp_path):
    save_params(tmp_path, 3, PARAMS)
    return tmp_path


def files(run, step=3):
    return sorted(p for p in (run / "checkpoints" / str(step) / "params").rglob("*") if p.is_file())


def test_saved_parameters_come_back(run):
    save_params(run, 20, {"head": {"bias": np.zeros(3, np.float32)}})
    assert saved_steps(run) == [3, 20]
    assert load_params(run)[0] == 20
    step, params = load_params(run, 3)
    assert step == 3
    assert np.array_equal(params["encoder"]["kernel"], PARAMS["encoder"]["kernel"])
    with pytest.raises(FileNotFoundError, match="no checkpoint of step 4; it has 3, 20"):
        load_params(run, 4)


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda file: file.write_bytes(file.read_bytes()[:-1]), r"has [\d,]+ bytes, [\d,]+ were written"),
        (lambda file: file.unlink(), "is missing"),
        (lambda file: file.write_bytes(file.read_bytes()[:-1] + b"\x55"), "has changed"),
    ],
)
def test_every_damaged_file_is_found_in_one_short_message(run, harm, message):
    save_params(run, 5, PARAMS)
    for file in files(run):
        content = file.read_bytes()
        harm(file)
        if not file.exists() or file.read_bytes() != content:
            with pytest.raises(ValueError, match=message) as caught:
                load_params(run, 3)
            error_text = str(caught.value)
            assert file.name in error_text
            assert "checkpoints/3 is damaged" in error_text
            assert "use another step (5), or copy it again" in error_text
            assert len(error_text.splitlines()) == 1
        file.write_bytes(content)
    assert load_params(run, 3)[0] == 3


def test_many_damaged_files_are_counted(run):
    all_files = files(run)
    for file in all_files:
        file.unlink()
    with pytest.raises(ValueError, match=f"; and {len(all_files) - 3} more; copy it again$"):
        load_params(run)


def test_an_unfinished_step_is_none(run):
    save_params(run, 9, PARAMS)
    (run / "checkpoints" / "9" / "files.json").unlink()
    (run / "checkpoints" / "latest").mkdir()
    assert load_params(run)[0] == 3
    (run / "checkpoints" / "3" / "files.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"has no checkpoint: .*files\.json, which is written last"):
        load_params(run)


@pytest.mark.parametrize("content", ["", "[]", "null", json.dumps({"a": 1}), json.dumps({"a": ["x", "y"]})])
def test_a_damaged_list_of_files(run, content):
    (run / "checkpoints" / "3" / "files.json").write_text(content)
    with pytest.raises(ValueError, match=r"files\.json is not a list of files"):
        load_params(run)


def test_an_error_of_orbax_takes_one_line(run, monkeypatch):
    def refuse(self, path, like):
        raise ValueError("a new layout\nwith\nmany lines")

    monkeypatch.setattr("orbax.checkpoint.StandardCheckpointer.restore", refuse)
    with pytest.raises(ValueError, match=r"cannot be read here \(a new layout\): the model, .* or the installed orbax"):
        load_params(run)


@pytest.mark.devices
def test_one_device_reads_the_files_of_eight(tmp_path):
    """A run of many devices is opened on a laptop."""
    import subprocess
    import sys

    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    from bert_elmo_jax.train import make_mesh
    from bert_elmo_jax.train.checkpoint import Checkpoints

    split = NamedSharding(make_mesh(fsdp=2), PartitionSpec("data"))
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(3, {"dense": jax.device_put(np.arange(8.0), split)}, {"m": np.zeros(2)}, {})
    program = "import sys, jax; from bert_elmo_jax.train.checkpoint import load_params\n"
    program += "print(jax.device_count(), *load_params(sys.argv[1])[1]['dense'])"
    command = [sys.executable, "-c", program, tmp_path]
    done = subprocess.run(command, env=program_environment(), capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", *map(str, np.arange(8.0))]


def test_a_checkpoint_that_lost_an_array_is_none(tmp_path):
    from bert_elmo_jax.train.checkpoint import Checkpoints

    moments = {"m": np.zeros(2, np.float32), "v": np.zeros((2, 5), np.float32)}
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(1, PARAMS, moments, {})
        checkpoints.wait()
        writer = checkpoints._writers["rest"]
        save_tree = writer.save
        writer.save = lambda path, tree: save_tree(path, {"m": tree["m"]})
        checkpoints.save(2, PARAMS, moments, {})
        with pytest.raises(
            OSError, match=r"of step 2 could not be written; the one of step 1 is intact: .*float32\[2, 5\]"
        ):
            checkpoints.wait()
    assert saved_steps(tmp_path) == [1]


def test_a_stop_displaces_no_scheduled_checkpoint(tmp_path):
    steps, stops = [], (7, 8)
    with Checkpoints(tmp_path, keep=2) as checkpoints:
        for step, score in ((3, 0.3), (6, 0.1), (7, 0.9), (8, None), (9, 0.1)):
            checkpoints.save(step, {"w": np.ones(2)}, {"m": np.zeros(2)}, {}, score=score, scheduled=step not in stops)
            checkpoints.wait()
            steps.append(saved_steps(tmp_path))
    assert steps == [[3], [3, 6], [3, 6, 7], [3, 6, 8], [3, 6, 9]]  # step 3 has the highest score of the schedule
    assert "scheduled" not in json.loads((tmp_path / "checkpoints" / "9" / "facts.json").read_text())


def save_steps(run, steps, keep):
    with Checkpoints(run, keep=keep) as checkpoints:
        for step in steps:
            checkpoints.save(step, {"w": np.full(2, float(step))}, {"n": np.zeros(1)}, {"position": step})


def test_an_old_checkpoint_that_cannot_be_removed_costs_no_new_one(tmp_path, monkeypatch, caplog):
    save_steps(tmp_path, [1], keep=1)

    def fail(folder, **options):
        if not options:
            raise OSError("Directory not empty")

    monkeypatch.setattr(checkpoint.shutil, "rmtree", fail)
    save_steps(tmp_path, [2], keep=1)
    assert saved_steps(tmp_path) == [2] and "could not be removed: Directory not empty" in caplog.text


def test_a_record_that_cannot_be_read_costs_no_new_checkpoint(tmp_path):
    save_steps(tmp_path, [1, 2], keep=3)
    (tmp_path / "checkpoints" / "2" / "facts.json").write_text("")
    save_steps(tmp_path, [3, 4], keep=3)
    assert saved_steps(tmp_path) == [1, 3, 4]


def test_a_damaged_checkpoint_is_written_again(tmp_path):
    save_steps(tmp_path, [1, 2], keep=3)
    files(tmp_path, 2)[0].unlink()
    save_steps(tmp_path, [2], keep=3)
    assert load_params(tmp_path)[1]["w"].tolist() == [2.0, 2.0]


def test_a_checkpoint_that_waits_for_a_clock_which_went_back_is_given_up(tmp_path, monkeypatch):
    """Orbax waits for moments of the clock; without a change of the clock, a slow disk is waited for."""
    end, before = threading.Event(), checkpoint._clock_offset()
    monkeypatch.setattr(checkpoint, "PATIENCE", 0.2)
    monkeypatch.setattr(Checkpoints, "_finish", lambda *arguments: end.wait(60))
    clock_goes_back = threading.Timer(1.0, monkeypatch.setattr, (checkpoint, "_clock_offset", lambda: before - 1000))
    with (
        pytest.raises(ClockWentBack, match="clock of this machine went back by 1,000 seconds while a checkpoint"),
        Checkpoints(tmp_path) as checkpoints,
    ):
        checkpoints.save(1, PARAMS, {"momentum": np.zeros(3)}, {})
        clock_goes_back.start()
        begun = time.monotonic()
        checkpoints.wait()
    assert 1.0 < time.monotonic() - begun < 50 and not end.is_set()
    end.set()
