"""A share of the training data: the same for all, part of every larger one, and never of the labels."""

import pytest

from .task_files import write_task


def test_a_share_of_the_training_data(program, tmp_path):
    config = program("configs.finetune").get_config()
    config.update(write_task(tmp_path / "task", "sst2"))
    read = program("bert_elmo_jax.runs.task_data").read_data
    whole = read(config)
    found = {}
    for share in (0.02, 0.25, 0.5):
        config.share, config.seed = share, int(100 * share)
        found[share] = read(config)
        lines = [example.line for example in found[share].train]
        assert len(lines) == round(share * len(whole.train)) and lines == sorted(lines)
        assert found[share].task.labels == whole.task.labels and found[share].dev == whole.dev
    parts = [{example.line for example in data.train} for data in found.values()]
    assert parts[0] < parts[1] < parts[2]


@pytest.mark.parametrize("share", [0.0, -0.5, 1.01])
def test_no_share(program, share):
    config = program("configs.finetune").get_config()
    config.share = share
    with pytest.raises(ValueError, match=f"config.share={share}: expected a number above 0 and at most 1"):
        program("bert_elmo_jax.runs.field_ranges").check_fields(config)
