"""Line-aligned files and tables of pairs: the written lines, and refused inputs."""

import gzip
import json
import random
import shutil
from collections import Counter

import pytest

from bert_elmo_jax.data.corpora import prepare
from bert_elmo_jax.data.corpora.pair_files import join_pairs, joined_inputs
from bert_elmo_jax.data.corpora.prepare import OtherPlan
from bert_elmo_jax.data.corpora.reading import BadInput, Reading
from bert_elmo_jax.data.corpora.run_preparation import prepare_from_flags
from bert_elmo_jax.data.corpora.store import open_store
from bert_elmo_jax.data.corpora.toy_corpus import toy_pairs
from bert_elmo_jax.data.pipeline.batches import train_batches
from bert_elmo_jax.data.rows.translation import PairExamples
from bert_elmo_jax.text import load_tokenizer


def write(folder, **files):
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return [str(folder / name) for name in files]


def join(folder, aligned=(), tables=(), columns=(), **reading):
    into = folder / "pairs.txt"
    skipped, _ = join_pairs(into, Reading(**reading), [tuple(files) for files in aligned], tables, columns)
    return [tuple(pair.split("\n")) for pair in into.read_text("utf-8").removesuffix("\n\n").split("\n\n")], skipped


def test_lines_of_two_files_are_pairs(tmp_path):
    both = write(tmp_path, en="a pear\r\n the sea \n", ko="\ufeff배\n바다")
    assert join(tmp_path, [both]) == (
        [("a pear", "배"), ("the sea", "바다")],
        {"a Windows line end (CR LF)": 1, "a byte-order mark": 1},
    )
    both = write(tmp_path, en="pear\nsea\n", **{"ko.gz": gzip.compress("배\n바다\n".encode("cp949"))})
    assert join(tmp_path, [both], encoding="cp949")[0] == [("pear", "배"), ("sea", "바다")]
    both = write(tmp_path, a="pear\nsea\n".encode("utf-16"), b="배\n바다\n".encode("utf-16"))
    assert join(tmp_path, [both], encoding="utf-16")[0] == [("pear", "배"), ("sea", "바다")]


def test_files_of_unequal_length(tmp_path):
    for first, second, counts in [("a\nb\nc\n", "가\n나\n", "3 lines, but .* has 2"), ("a\n", "가\n\n나\n", "1 .* 3")]:
        both = write(tmp_path, en=first, ko=second)
        for on_bad in ("error", "skip"):  # it is unknown which lines belong together
            with pytest.raises(BadInput, match=rf"/en: {counts}; line n of one file must be the translation of line n"):
                join(tmp_path, [both], on_bad=on_bad)


def test_an_empty_side_and_a_bad_line_leave_out_a_pair(tmp_path):
    both = write(tmp_path, en="a\nb\n\nc\n", ko="가\n \n\n다\n")
    with pytest.raises(BadInput, match=r"/ko, line 2: the target is empty; translate it, or remove the line on both"):
        join(tmp_path, [both])
    assert join(tmp_path, [both], on_bad="skip") == (
        [("a", "가"), ("c", "다")],
        {"the target is empty": 1, "a line that is empty on both sides": 1},
    )
    both = write(tmp_path, en="a\nb\n", ko="가\n".encode() + b"\xff\n")
    with pytest.raises(BadInput, match=r"/ko, line 2: invalid UTF-8"):
        join(tmp_path, [both])
    assert join(tmp_path, [both], on_bad="skip")[0] == [("a", "가")]


def test_tables(tmp_path):
    plain, named = write(tmp_path, plain="a\t가\nb\t나\n", named="id\tko\ten\n1\t다\tc\n")
    assert join(tmp_path, tables=[plain])[0] == [("a", "가"), ("b", "나")]
    assert join(tmp_path, tables=[named], columns=["en", "ko"])[0] == [("c", "다")]


@pytest.mark.parametrize(
    ("table", "columns", "message"),
    [
        ("a\tb\tc\n", (), r"line 1: 3 columns, expected 2; name two with --columns=a,b"),
        ("a\n", (), r"line 1: 1 columns, expected 2; separate the columns by one tab"),
        ("en\tko\na\n", ("en", "ko"), r"line 2: 1 columns, expected 2"),
        ("en\tko\n", ("en", "kr"), r"line 1: no column 'kr' \(the first line has en, ko\)"),
        ("en\tko\n", ("en", "ko"), r"no pair in any file"),
        ("en\tko\na\t\n", ("en", "ko"), r"line 2: the target is empty"),
        ("", (), "an empty file"),
    ],
)
def test_broken_tables(tmp_path, table, columns, message):
    with pytest.raises(BadInput, match=message):
        join(tmp_path, tables=write(tmp_path, table=table), columns=columns)


@pytest.fixture(autouse=True)
def in_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def flags(**changed):
    reading = {"documents": "blank_line", "split": "lines", "encoding": "utf-8", "text_field": "text"}
    return {**reading, "on_bad": "error", "max_line_mb": 4.0, "input": [], "output": "store"} | changed


def test_flags(tmp_path):
    source, target = write(tmp_path, en="a\n", ko="가\n".encode("cp949"))
    with joined_inputs(flags(source=[source], target=[target], encoding="cp949", on_bad="skip")) as values:
        assert values["input"] == ["store/.pairs.partial/pairs.txt"]
        assert values["encoding"] == "utf-8"
    assert [path.name for path in (tmp_path / "store").iterdir()] == [".lock"]
    with joined_inputs(flags(input=["x"])) as values:
        assert values["input"] == ["x"]


@pytest.mark.parametrize(
    ("changed", "flags_set", "message"),
    [
        ({"source": ["a"]}, (), "there are 1 --source and 0 --target files: give as many of both"),
        ({"source": ["a"], "target": ["b"], "input": ["c"]}, ("input",), "--input is for texts without translations"),
        ({"columns": ["en", "ko"]}, (), r"--columns=en,ko names the columns of --pairs=FILE.tsv"),
        ({"pairs": ["a.tsv"], "columns": ["en"]}, (), "--columns=en: name two columns, source and target"),
        ({"source": ["none.en"], "target": ["none.ko"]}, (), "none.en: no file matches"),
    ],
)
def test_wrong_flags(tmp_path, changed, flags_set, message):
    with pytest.raises(ValueError, match=message), joined_inputs(flags(**changed), flags_set):
        pass
    assert not (tmp_path / "store").exists()


def test_a_tokenizer_with_a_model_for_each_language(goldens, tmp_path):
    source, target = write(tmp_path, en="a\n", ko="가\n")
    marian = str(goldens / "tokenizers" / "marian")
    options = flags(source=[source], target=[target], tokenizer=marian)
    with pytest.raises(ValueError, match="is Marian's, which splits each language"), joined_inputs(options):
        pass
    folder = toy_pairs(tmp_path / "pairs", documents=20, tokenizer=marian)
    with pytest.raises(ValueError, match="was prepared with Marian's tokenizer, which splits each language"):
        train_batches(folder, PairExamples(8, 8, 0, 1, 2), 2)


def prepare_flags(tmp_path, **changed):
    values = flags(output=str(tmp_path / "store"), tokenizer="wordpiece", vocab_size=80, lowercase=False)
    values |= {"sentencepiece_model": "unigram", "word_rule": "punctuation", "min_count": 1, "heldout": 0.2}
    values |= {"shards": 2, "seed": 0, "workers": 1, "runner": "local", "ray_address": None, "sample_mb": 1.0}
    return values | {"verify": False, "pairs": [], "columns": []} | changed


def test_from_files_to_batches(tmp_path, capsys):
    coins = random.Random(0)
    english = [" ".join(coins.choices(["the", "pear", "sea", "ship"], k=1 + n % 5)) for n in range(40)]
    korean = [" ".join(coins.choices(["배", "바다", "강"], k=1 + n % 3)) for n in range(40)]
    source, target = write(tmp_path, en="\n".join(english), ko="\n".join(korean))
    values = prepare_flags(tmp_path, source=[source], target=[target])
    prepare_from_flags(values, ["source", "target", "output"])
    assert "Preparing" in capsys.readouterr().out
    tokenizer = load_tokenizer(tmp_path / "store" / "tokenizer")
    stores = [open_store(tmp_path / "store", part) for part in ("train", "heldout")]
    read = [tuple(tokenizer.decode(side) for side in store[n]) for store in stores for n in range(len(store))]
    assert Counter(read) == Counter(zip(english, korean))
    batch = next(train_batches(tmp_path / "store", PairExamples(12, 12, 2, 3, 0), 4))
    assert batch["source_tokens"].shape == batch["target_out"].shape == (4, 12)
    prepare_from_flags(values, ["source", "target", "output"])  # finished: it makes no file again
    with pytest.raises(ValueError, match="was started with other options"):
        prepare_from_flags(values | {"vocab_size": 90})


def test_dropped_pairs_name_the_users_files(tmp_path):
    write(tmp_path, en="\n\n".join([*"abcd", "a"]), ko="\n\n".join([*"가나다라", "가"]))
    write(tmp_path, table="e\t마\nb\t나\n")
    values = prepare_flags(tmp_path, source=["en"], target=["ko"], pairs=["table"], dedupe=1.0, heldout=0.0)
    prepare_from_flags(values)
    report = json.loads((tmp_path / "store" / "dropped.json").read_text("utf-8"))
    assert report["dropped"]["a near-duplicate"]["samples"] == [
        {"file": "en", "document": 5, "text": "a 가", "similar_to": {"file": "en", "document": 1}},
        {"file": "table", "document": 2, "text": "b 나", "similar_to": {"file": "en", "document": 2}},
    ]


def test_a_killed_joining_of_pairs_is_resumed(tmp_path, monkeypatch):
    write(tmp_path, en="\n".join("abcdefgh"), ko="\n".join("가나다라마바사아"))
    values = prepare_flags(tmp_path, source=["en"], target=["ko"], heldout=0.0)
    unfinished = tmp_path / "store" / ".pairs.partial"
    unfinished.mkdir(parents=True)
    (unfinished / "plain-0").write_text("half")
    prepare_from_flags(values)
    assert sorted(path.name for path in (tmp_path / "store").glob("*p*")) == ["plan.json"]
    shutil.rmtree(tmp_path / "store")

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(prepare, "_manifest", stop)
        prepare_from_flags(values)
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "store").glob("shard-*/*")}
    prepare_from_flags(values)
    assert times == {path: path.stat().st_mtime_ns for path in (tmp_path / "store").glob("shard-*/*")} != {}


def test_pairs_are_not_written_into_a_folder_of_something_else(tmp_path):
    write(tmp_path, en="a\n", ko="가\n")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "film").touch()
    with pytest.raises(OtherPlan, match=r"has other files \(film\)"):
        prepare_from_flags(prepare_flags(tmp_path, source=["en"], target=["ko"]))
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["film"]
