"""Predictions from Parquet to Parquet: the rows, types and order of the input, and one line for wrong inputs."""

from pathlib import Path

import pytest

from bert_elmo_jax.data.corpora.reading import BadInput
from bert_elmo_jax.inference.output_file import LineFile
from bert_elmo_jax.inference.predict_file import predict_file

pyarrow = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402

MODEL = str(Path(__file__).parents[1] / "goldens" / "released_heads" / "roberta_nli3")
ROWS = {
    "n": [1, None, 3, 4, 5],
    "premise": [f"a river {n}" for n in range(5)],
    "hypothesis": ["a bank", "the ship", "a bank", "the ship", "=1+1"],
    "words": [["a", "b"], [], None, ["c"], ["d"]],
    "raw": [b"1"] * 5,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parquet")
    table = pyarrow.table(ROWS)
    parquet.write_table(table, folder / "all.parquet", row_group_size=2)
    parquet.write_table(table[:3], folder / "part-0.parquet")
    parquet.write_table(table[3:], folder / "part-1.parquet")
    return folder


def predict(source, target, **options):
    return predict_file(MODEL, str(source), str(target), text="premise", pair="hypothesis", batch_size=2, **options)


def test_rows_of_parquet_get_predictions_in_any_format(folder):
    assert predict(folder / "all.parquet", folder / "out.parquet") == 5
    table = parquet.read_table(folder / "out.parquet")
    assert {name: table[name].to_pylist() for name in ROWS if name != "raw"} == {
        k: v for k, v in ROWS.items() if k != "raw"
    }
    assert table.schema.field("n").type == pyarrow.int64() and table.schema.field("words").type == pyarrow.list_(
        pyarrow.string()
    )
    assert table.schema.field("probability").type == pyarrow.float64()
    assert predict(folder / "part-*.parquet", folder / "parts.parquet") == 5
    parts = parquet.read_table(folder / "parts.parquet")
    assert parts["predicted"].to_pylist() == table["predicted"].to_pylist()
    assert parts["premise"].to_pylist() == ROWS["premise"]
    assert predict(f"{folder / 'part-0.parquet'},{folder / 'part-1.parquet'}", folder / "parts.csv") == 5
    first, second = (folder / "parts.csv").read_text(encoding="utf-8-sig").splitlines()[:2]
    assert first == "n,premise,hypothesis,words,predicted,probability"
    assert second.startswith('1,a river 0,a bank,"[""a"", ""b""]",')


def test_a_stopped_prediction_goes_on_with_the_same_rows(folder, monkeypatch):
    predict(folder / "all.parquet", folder / "whole.parquet")
    monkeypatch.setattr("bert_elmo_jax.inference.predict_file.AHEAD", 1)
    add = LineFile.add

    def add_once(self, lines, count):
        if self._passed:
            raise KeyboardInterrupt
        add(self, lines, count)

    with monkeypatch.context() as patch:
        patch.setattr(LineFile, "add", add_once)
        with pytest.raises(KeyboardInterrupt):
            predict(folder / "all.parquet", folder / "again.parquet")
    predict(folder / "all.parquet", folder / "again.parquet")
    assert parquet.read_table(folder / "again.parquet")["premise"].to_pylist() == ROWS["premise"]
    assert not (folder / "again.parquet.partial").exists()


def test_wrong_columns_and_cells_are_named_before_anything_is_predicted(folder):
    with pytest.raises(BadInput, match=r"no column 'premises' among 'n', .*did you mean premise\?"):
        predict_file(MODEL, str(folder / "all.parquet"), str(folder / "x.csv"), text="premises", pair="hypothesis")
    with pytest.raises(ValueError, match=r"all.parquet, row 1: n is 1, expected a text"):
        predict_file(MODEL, str(folder / "all.parquet"), str(folder / "x.csv"), text="n", pair="hypothesis")
    assert not (folder / "x.csv").exists()
