"""Predictions from Parquet to Parquet: the rows, types and order of the input, and one line for wrong inputs."""

import datetime
import json
from decimal import Decimal
from pathlib import Path

import pytest

from bert_elmo_jax.data.corpora.reading import BadInput
from bert_elmo_jax.inference import parquet_output
from bert_elmo_jax.inference.output_file import LineFile
from bert_elmo_jax.inference.parquet_output import write_parquet
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


def test_rows_of_parquet_get_predictions_in_any_format(folder, capsys):
    assert predict(folder / "all.parquet", folder / "out.parquet") == 5
    assert "warning: the output lacks these columns of " in (err := capsys.readouterr().err) and "raw (binary)" in err
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


ZONED = pyarrow.timestamp("us", "+09:00")


def test_dates_and_decimals_become_texts(tmp_path):
    day = datetime.datetime(2026, 1, 2, 9, 30)
    seoul = day.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=9)))
    columns = {
        "day": pyarrow.array([day.date(), None]), "premise": ["a river", "a bank"], "hypothesis": ["a bank", "a ship"],
        "at": pyarrow.array([day] * 2, "timestamp[ns]"), "zoned": pyarrow.array([seoul, None], ZONED),
        "price": [Decimal("1.50")] * 2, "time": [day.time()] * 2,
    }  # fmt: skip
    parquet.write_table(pyarrow.table(columns), tmp_path / "in.parquet")
    predict(tmp_path / "in.parquet", tmp_path / "out.csv")
    lines = (tmp_path / "out.csv").read_text("utf-8-sig").splitlines()
    assert lines[0] == "day,premise,hypothesis,at,zoned,price,time,predicted,probability"
    assert lines[1].startswith("2026-01-02,a river,a bank,2026-01-02 09:30:00.000000000,2026-01-02 00:30:00.000000Z,")
    assert ",1.50,09:30:00.000000," in lines[1] and lines[2].startswith(",a bank,a ship,") and ",,1.50," in lines[2]
    predict(tmp_path / "in.parquet", tmp_path / "out.parquet")
    assert parquet.read_table(tmp_path / "out.parquet")["day"].to_pylist() == ["2026-01-02", None]
    with pytest.raises(BadInput, match=r"the column 'day' is date32\[day\], expected texts or numbers"):
        predict_file(MODEL, str(tmp_path / "in.parquet"), str(tmp_path / "x.csv"), text="day", pair="hypothesis")


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


def test_a_kill_between_the_conversion_and_the_name_loses_nothing(tmp_path, monkeypatch):
    target = tmp_path / "out.parquet"

    def stop(out, result):
        out._held.close()  # as the end of a process does
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LineFile, "_keep_record", stop)
        with pytest.raises(KeyboardInterrupt), LineFile(target, finish=write_parquet) as out:
            out.begin({"model": "0a"})
            out.add(['{"text": "강"}'], 1)
    with LineFile(target, finish=write_parquet) as out:
        out.begin({"model": "0a"})
        assert out.skip(1)
    assert parquet.read_table(target).to_pydict() == {"text": ["강"]}
    assert sorted(file.name for file in tmp_path.iterdir()) == [".out.parquet.request", "out.parquet"]


MIXED = [  # values of a column, and its texts
    (["a1", 5], ["a1", "5"]),
    ([5, "a1"], ["5", "a1"]),
    ([0.5, "x", None], ["0.5", "x", None]),
    ([5, True], ["5", "true"]),
    ([{"a": 1}, {"a": "강"}], ['{"a": 1}', '{"a": "강"}']),
    ([["a", 1]], ['["a", 1]']),
    ([12345678901234567, 0.5], ["12345678901234567", "0.5"]),
    ([2**63, -1], ["9223372036854775808", "-1"]),
]


@pytest.mark.parametrize("rows_at_once", [1, 4096])
@pytest.mark.parametrize(("values", "texts"), MIXED)
def test_a_column_with_values_of_two_kinds_becomes_texts(tmp_path, monkeypatch, values, texts, rows_at_once):
    monkeypatch.setattr(parquet_output, "ROWS", rows_at_once)
    lines = [json.dumps({"id": value, "n": 1}) for value in values]
    (tmp_path / "lines").write_text("\n".join(lines), encoding="utf-8")
    write_parquet(tmp_path / "lines", tmp_path / "out.parquet")
    assert parquet.read_table(tmp_path / "out.parquet").to_pydict() == {"id": texts, "n": [1] * len(values)}


def test_wrong_columns_and_cells_are_named_before_anything_is_predicted(folder):
    with pytest.raises(BadInput, match=r"no column 'premises' among 'n', .*did you mean premise\?"):
        predict_file(MODEL, str(folder / "all.parquet"), str(folder / "x.csv"), text="premises", pair="hypothesis")
    with pytest.raises(ValueError, match=r"all.parquet, row 1: n is 1, expected a text"):
        predict_file(MODEL, str(folder / "all.parquet"), str(folder / "x.csv"), text="n", pair="hypothesis")
    assert not (folder / "x.csv").exists()
