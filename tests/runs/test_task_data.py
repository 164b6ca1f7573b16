"""The data of a task: labels in one spelling, and a share of the training data."""

import unicodedata

from bert_elmo_jax.runs.config_files import read_config
from bert_elmo_jax.runs.task_data import read_data

from ..experiments.task_files import write_task


def config_of(**fields):
    config, _ = read_config("experiments/configs/finetune.py")
    config.update(fields)
    return config


def test_labels_of_all_files_have_the_first_spelling(tmp_path):
    nfc, nfd = "감동", unicodedata.normalize("NFD", "감동")
    for name, labels in (("train", (nfc, "b", nfd)), ("dev", (nfd, "b")), ("test", (nfc, nfd))):
        rows = "".join(f"text {n},{label}\n" for n, label in enumerate(labels))
        (tmp_path / f"{name}.csv").write_text(f"text,{nfd}\n{rows}", encoding="utf-8")
    files = {name: str(tmp_path / f"{name}.csv") for name in ("train", "dev", "test")}
    data = read_data(config_of(task="classification", label=nfc, **files))
    assert data.task.labels == tuple(sorted(["b", nfc]))
    assert [[example.label for example in part] for part in data[1:4]] == [[nfc, "b", nfc], [nfc, "b"], [nfc, nfc]]


def test_a_share_is_part_of_every_larger_one_and_never_of_the_labels(tmp_path):
    files = write_task(tmp_path / "task", "sst2")
    everything, lines = read_data(config_of(**files)), [set()]
    for share in (0.02, 0.25, 0.5):
        data = read_data(config_of(**files, share=share, seed=int(100 * share)))
        numbers = [example.line for example in data.train]
        assert len(numbers) == round(share * len(everything.train)) and numbers == sorted(numbers)
        assert data.task.labels == everything.task.labels and data.dev == everything.dev
        assert lines[-1] < set(numbers)
        lines.append(set(numbers))
