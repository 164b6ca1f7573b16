"""Examples of `bert_elmo_jax.runs.task_data`."""

import unicodedata

from ml_collections import ConfigDict

from bert_elmo_jax.data.tasks.task import task_named
from bert_elmo_jax.runs.task_data import count_steps, hold_out, parse_share, read_data, take_share


def test_example_of_parse_share():
    assert (parse_share("0.1"), parse_share("dev.csv")) == (0.1, None)


def test_example_of_hold_out():
    train, dev = hold_out(range(100), task_named("sst2"), 0.1)
    assert (len(train), len(dev), set(train) & set(dev), dev == hold_out(range(100), task_named("sst2"), 0.1)[1]) == (
        90,
        10,
        set(),
        True,
    )


def test_example_of_take_share():
    assert [len(take_share(range(1000), share)) for share in (0.001, 0.25, 1.0)] == [1, 250, 1000]
    assert set(take_share(range(9), 0.3)) < set(take_share(range(9), 0.6))


def test_example_of_count_steps():
    config = ConfigDict({"epochs": 2.5, "batch_size": 8, "eval_every": 0, "checkpoint_every": 0})
    assert repr(count_steps(config, 60)) == "Length(steps=20, epoch=8, eval_every=8, checkpoint_every=8)"


def test_labels_of_all_files_have_the_first_spelling(tmp_path):
    nfc, nfd = "감동", unicodedata.normalize("NFD", "감동")
    for name, labels in (("train", (nfc, "b", nfd)), ("dev", (nfd, "b")), ("test", (nfc, nfd))):
        rows = "".join(f"text {n},{label}\n" for n, label in enumerate(labels))
        (tmp_path / f"{name}.csv").write_text(f"text,{nfd}\n{rows}", encoding="utf-8")
    files = {name: str(tmp_path / f"{name}.csv") for name in ("train", "dev", "test")}
    asked = {"task": "classification", "text": "", "pair": "", "label": nfc, "encoding": "utf-8", "share": 1.0}
    data = read_data(ConfigDict({**asked, **files}))
    assert data.task.labels == tuple(sorted(["b", nfc]))
    assert [[example.label for example in part] for part in data[1:]] == [[nfc, "b", nfc], [nfc, "b"], [nfc, nfc]]
