"""Saved data sets changed afterwards: files outside, rows that are selected elsewhere, labels without a name."""

import json

import pytest

from bert_elmo_jax.data import arrow_files
from bert_elmo_jax.data.arrow_files import open_arrow

pyarrow = pytest.importorskip("pyarrow")
FEATURES = {"label": {"names": ["bad", "good", "good"], "_type": "ClassLabel"}}
FILE = {"filename": "a.arrow"}
STATES = [
    ({"_data_files": 5}, "state.json: no list of different files"),
    ({"_data_files": [FILE, FILE]}, "state.json: no list of different files"),
    ({"_data_files": [{"filename": "../a.arrow"}]}, "state.json: no list of different files"),
    ({"_data_files": [FILE], "_indices_files": [FILE]}, "state.json: rows that another file selects"),
    ({"_data_files": [{"filename": "link.arrow"}]}, "link.arrow is a link to .*, outside the folder"),
]


def save_table(folder, labels, state):
    """Write a table as `datasets` saves it."""
    folder.mkdir()
    table = pyarrow.table({"text": ["a"] * len(labels), "label": labels})
    with pyarrow.ipc.new_stream(folder / "a.arrow", table.schema) as writer:
        writer.write_table(table)
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text(json.dumps({"features": FEATURES}))
    return folder


@pytest.mark.parametrize(("state", "message"), STATES)
def test_states_that_do_not_list_the_rows_are_refused(tmp_path, state, message):
    save_table(tmp_path / "other", [0], {})
    folder = save_table(tmp_path / "saved", [0], state)
    if "link" in message:
        (folder / "link.arrow").symlink_to(tmp_path / "other" / "a.arrow")
    with pytest.raises(ValueError, match=message):
        open_arrow(folder)


@pytest.mark.parametrize("ending", ["arrow", "parquet"])
def test_a_long_text_that_a_dictionary_repeats_is_read_in_small_parts(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(arrow_files, "LARGEST_TEXTS", 1 << 12)
    numbers = pyarrow.array([0, 1] * 20, pyarrow.int32())
    texts = pyarrow.DictionaryArray.from_arrays(numbers, pyarrow.array(["a" * (1 << 10), "b"]))
    table, file = pyarrow.table({"text": texts}), tmp_path / f"a.{ending}"
    if ending == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(table, file)
    else:
        with pyarrow.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)
    assert [len(row["text"]) for row in open_arrow(file).rows(["text"])] == [1 << 10, 1] * 20
    assert {batch.num_rows for batch in arrow_files._batches(file, ["text"])} == {4}


@pytest.mark.parametrize("label", [1, 2, 3, -2])
def test_labels_without_a_name_of_their_own_are_refused(tmp_path, label):
    """A number would become a class of its own, and two numbers with one name the same class."""
    table = open_arrow(save_table(tmp_path / "saved", [0, -1, label], {"_data_files": [FILE]}))
    rows = table.rows(["label"])
    assert [next(rows)["label"] for _ in range(2)] == ["bad", None]
    with pytest.raises(ValueError, match=rf"a\.arrow: the label {label}, which has no name of its own among the 3"):
        list(rows)
