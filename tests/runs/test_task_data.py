"""Examples of `bert_elmo_jax.runs.task_data`."""

import unicodedata

from ml_collections import ConfigDict

from bert_elmo_jax.runs.task_data import read_data


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
