"""One corpus in every format gives the same shards; wrong tables are named in one line."""

import csv
import gzip
import json
import shutil

import pytest

from bert_elmo_jax.data.corpora import table_texts
from bert_elmo_jax.data.corpora.describe_source import describe
from bert_elmo_jax.data.corpora.prepare import Request, prepare
from bert_elmo_jax.data.corpora.reading import BadInput, Reading, Tally
from bert_elmo_jax.data.corpora.table_texts import read_texts, write_texts
from bert_elmo_jax.data.corpora.text_files import each_text
from bert_elmo_jax.data.corpora.unpack import unpack

TEXTS = [f'강가의 은행 {n}, "the bank" of river {n % 7}' for n in range(300)]
LONG = [f"{text}\nand a second line\nand {n}" for n, text in enumerate(TEXTS)]


def write_all(folder, texts, documents):
    """Write a corpus in every format and return the inputs."""
    ends = {"line": "\n", "blank_line": "\n\n"}[documents]
    (folder / "c.txt").write_text(ends.join(texts) + "\n", encoding="utf-8")
    lines = "".join(json.dumps({"n": n, "text": text}, ensure_ascii=n % 2 == 0) + "\n" for n, text in enumerate(texts))
    (folder / "c.jsonl").write_text(lines, encoding="utf-8")
    (folder / "c2.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    with (folder / "c.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["n", "text"], *enumerate(texts)])
    names = ["c.txt", "c.jsonl", "c2.jsonl.gz", "c.csv"]
    if documents == "line":
        rows = "".join(f"{n}\t{text}\n" for n, text in enumerate(texts))
        (folder / "c.tsv").write_text(f"n\ttext\n{rows}", encoding="cp949")
        names.append("c.tsv")
    return names


def write_arrow(folder, texts):
    """Write a corpus as Parquet, Arrow, and a data set as `datasets` saves it."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table({"n": range(len(texts)), "text": texts})
    parquet.write_table(table, folder / "c.parquet", row_group_size=70)
    saved = folder / "saved" / "train"
    saved.mkdir(parents=True)
    (folder / "saved" / "dataset_dict.json").write_text('{"splits": ["train"]}')
    for path, part in ((saved / "a.arrow", table[:100]), (saved / "b.arrow", table[100:])):
        with pyarrow.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(part)
    (saved / "state.json").write_text('{"_data_files": [{"filename": "a.arrow"}, {"filename": "b.arrow"}]}')
    with pyarrow.ipc.new_file(folder / "c.arrow", table.schema) as writer:
        writer.write_table(table.set_column(1, "text", table["text"].dictionary_encode().cast("string")))
    return ["c.parquet", "saved", "saved/train", "c.arrow"]


def shards_of(folder, name, documents):
    reading = Reading(documents=documents, encoding="cp949" if name.endswith(".tsv") else "utf-8")
    request = Request((str(folder / name),), str(folder / f"store-{name.replace('/', '-')}"), "byte_bpe", 300, shards=3,
                      heldout=0.1, reading=reading)  # fmt: skip
    manifest = prepare(request)
    assert manifest["counts"]["heldout"]["documents"]
    return manifest["shards"], manifest["tokenizer"], manifest["skipped"]


@pytest.mark.parametrize(("texts", "documents"), [(TEXTS, "line"), (LONG, "blank_line")])
def test_a_corpus_gives_the_same_shards_in_every_format(tmp_path, texts, documents):
    names = write_all(tmp_path, texts, documents)
    expected = shards_of(tmp_path, names[0], documents)
    for name in names[1:]:
        assert shards_of(tmp_path, name, documents) == expected, name
    for name in write_arrow(tmp_path, texts):
        assert shards_of(tmp_path, name, documents) == expected, name


WRONG = {
    "a name that is nearly right": (
        "a.csv",
        "texts,n\na,1\n",
        "no column 'text' among 'texts', 'n'; .*did you mean texts",
    ),
    "a name that is there twice": ("a.csv", "text,n,text\na,1,b\n", "line 1: two columns called 'text'; rename one"),
    "a short row": ("a.csv", "text,n\na,1\nb\n", r"a.csv, line 3: 1 columns, expected 2"),
    "an open quote": ("a.csv", 'text,n\n"a,1\n', "invalid csv .*look for a quote"),
    "a carriage return": ("a.csv", "text,n\na\rb,1\n", "line 2: .*a carriage return inside a cell.*quote the cell, or"),
    "a long row": ("a.csv", 'text,n\n"' + "a\n" * 3000, "a row of more than 0.005 MB"),
    "a truncated file": ("a.csv.gz", gzip.compress(b"text\n" + b"abc\n" * 99)[:-9], "damaged or truncated"),
    "another encoding": ("a.tsv", "text\n강가\n".encode("cp949"), "line 2: invalid UTF-8 .* cp949"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_tables_are_named(tmp_path, case):
    name, content, message = WRONG[case]
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(BadInput, match=message):
        write_texts(str(tmp_path / name), tmp_path / "out", Tally(Reading(max_line_mb=0.005)))


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_lines_may_end_in_carriage_returns_alone(tmp_path, name):
    sign = "," if name == "a.csv" else "\t"
    (tmp_path / name).write_bytes(f"text{sign}n\r강{sign}1\r\rb{sign}2\r".encode("utf-8-sig"))
    assert list(read_texts(str(tmp_path / name), Tally(Reading()))) == [(2, "강"), (4, "b")]


def test_a_saved_data_set_is_the_files_that_it_lists(tmp_path):
    write_arrow(tmp_path, TEXTS)
    folder = tmp_path / "saved"
    before = describe(str(folder), str(folder))
    shutil.copy(folder / "train" / "a.arrow", folder / "train" / "cache-0123.arrow")  # of a `map` by `datasets`
    assert describe(str(folder), str(folder)) == before
    with (folder / "train" / "b.arrow").open("ab") as file:
        file.write(b"\0")
    assert describe(str(folder), str(folder)) != before


def test_a_csv_cell_longer_than_pythons_limit_is_read(tmp_path):
    limit = csv.field_size_limit(131_072)  # as in a worker of prepare_data, which imports no other reader of csv
    try:
        (tmp_path / "a.csv").write_text(f"n,text\n1,{'a' * 131_073}\n")
        write_texts(str(tmp_path / "a.csv"), tmp_path / "out", Tally(Reading()))
    finally:
        csv.field_size_limit(limit)
    assert (tmp_path / "out").stat().st_size == 131_074


def test_a_compressed_table_is_unpacked_next_to_its_texts(tmp_path, monkeypatch):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"text\nab\n"))
    targets = []
    monkeypatch.setattr(table_texts, "unpack", lambda *values: (targets.append(values[1]), unpack(*values)))
    write_texts(str(tmp_path / "a.csv.gz"), tmp_path / "work" / "out", Tally(Reading()))
    (folder,) = (target.parent for target in targets)
    assert folder.parent == tmp_path / "work" and folder.match("*.partial")  # which the next start removes
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["out"]


def test_bad_rows_are_counted_and_left_out(tmp_path):
    (tmp_path / "a.csv").write_text("text,n\na\nb,1\n")
    write_texts(str(tmp_path / "a.csv"), tmp_path / "out", tally := Tally(Reading(on_bad="skip")))
    assert (tmp_path / "out").read_text() == "b\n"
    assert dict(tally.skipped) == {"1 columns, expected 2": 1}


def test_nulls_and_other_types_in_parquet_are_named(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    file = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"text": ["ab", None], "n": [1, 2], "raw": [b"1", b"2"]}), file)
    with pytest.raises(BadInput, match=r"a\.parquet, line 2: no text in 'text'"):
        write_texts(str(file), tmp_path / "out", Tally(Reading()))
    with pytest.raises(BadInput, match=r"line 1: a text of more than 1e-06 MB"):
        write_texts(str(file), tmp_path / "out", Tally(Reading(max_line_mb=1e-6)))
    for column, message in (("n", "'n' is int64, expected texts"), ("raw", "no column 'raw'"), ("txt", "mean text?")):
        with pytest.raises(BadInput, match=message):
            write_texts(str(file), tmp_path / "out", Tally(Reading(text_field=column)))


def test_texts_of_tables_and_compressed_files_are_read_for_vectors(tmp_path):
    names = write_all(tmp_path, TEXTS, "line")[:4]
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress((tmp_path / "c.txt").read_bytes()))
    for name in (*names, "c.txt.gz"):
        assert [text for _, text in each_text(tmp_path / name)] == TEXTS, name
    with pytest.raises(BadInput, match=r"no column 'txt' among 'n', 'text'; name one with --text; did you mean text\?"):
        list(each_text(tmp_path / "c.csv", text="txt"))
    with pytest.raises(ValueError, match=r"'n' is the column of a table, and .*c\.txt is none"):
        list(each_text(tmp_path / "c.txt", text="n"))
    for name in write_arrow(tmp_path, TEXTS):
        assert [text for _, text in each_text(tmp_path / name)] == TEXTS, name
