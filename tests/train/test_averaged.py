"""The mean of the last checkpoints: its numbers, when it is read, and damage."""

import json
import shutil

import numpy as np
import pytest

from bert_elmo_jax.train.averaged import average_params, check_average, load_average, write_average
from bert_elmo_jax.train.checkpoint import save_params, saved_steps


def params(step):
    return {"encoder": {"w": np.float32([step, 1e8 + 8 * step])}, "head": {"b": np.float32([[-step]])}}


@pytest.fixture
def run(tmp_path):
    for step in (10, 20, 30, 40):
        save_params(tmp_path, step, params(step))
    return tmp_path


def test_the_mean_is_that_of_the_last(run):
    steps, mean = average_params(run, 3)
    assert steps == [20, 30, 40]
    assert mean["encoder"]["w"].dtype == np.float32
    # In float32 the sum of the large numbers would lose their differences.
    assert mean["encoder"]["w"].tolist() == np.float32([30, 1e8 + 240]).tolist()
    assert mean["head"]["b"].tolist() == [[-30]]
    assert average_params(run, 9)[0] == [10, 20, 30, 40]


def test_it_is_read_until_there_is_a_newer_checkpoint(run):
    assert load_average(run) is None
    means = []
    summary = write_average(run, 2, lambda mean: means.append(mean) or {"held_out/accuracy": 0.5})
    assert summary == {"steps": [30, 40], "figures": {"held_out/accuracy": 0.5}}
    assert means[0]["encoder"]["w"][0] == 35
    steps, mean = load_average(run)
    assert (steps, mean["encoder"]["w"][0]) == ([30, 40], 35)
    assert write_average(run, 2, lambda mean: pytest.fail("it is there already")) == summary
    assert saved_steps(run) == [10, 20, 30, 40]
    save_params(run, 50, params(50))
    assert load_average(run) is None
    assert write_average(run, 2)["steps"] == [40, 50]
    assert load_average(run)[1]["encoder"]["w"][0] == 45


def test_a_checkpoint_of_a_stop_is_no_part_of_the_mean(run):
    facts = save_params(run, 35, params(35)) / "facts.json"
    facts.write_text('{"scheduled": false}')
    assert average_params(run, 3)[0] == [20, 30, 40]
    assert write_average(run, 3)["steps"] == load_average(run)[0] == [20, 30, 40]


def test_a_damaged_mean_is_refused_and_written_again(run):
    write_average(run, 2)
    folder = run / "checkpoints" / "average"
    (folder / "facts.json").write_text('{"steps": [30, 40], "figures": {"held_out/accuracy": 1.0}}')
    with pytest.raises(ValueError, match=r"average is damaged: facts\.json .*; copy it again, or delete it"):
        load_average(run)
    assert write_average(run, 2)["figures"] == {}
    assert load_average(run)[0] == [30, 40]
    (folder / "files.json").unlink()  # as if killed while it was written
    assert load_average(run) is None
    shutil.rmtree(folder)
    assert load_average(run) is None


def test_without_checkpoints(tmp_path):
    assert load_average(tmp_path) is None
    with pytest.raises(FileNotFoundError, match="has no checkpoint"):
        write_average(tmp_path, 2)


@pytest.mark.parametrize(("average", "keep", "message"), [(5, 4, "average=5 checkpoints, but .* newest 4: use keep=5")])
def test_averages_of_more_than_are_kept_are_refused(average, keep, message):
    with pytest.raises(ValueError, match=message):
        check_average(average, keep)
    check_average(None, 1)
    check_average(1, 1)
    check_average(keep, keep)


@pytest.mark.parametrize("steps", [5, {"a": 1}, ["x"], "40"])
def test_steps_of_another_type_name_the_file(run, steps):
    write_average(run, 2)
    (run / "checkpoints" / "average" / "facts.json").write_text(json.dumps({"steps": steps}))
    with pytest.raises(ValueError, match=r"average/facts\.json: steps is .*; expected a list"):
        load_average(run)
