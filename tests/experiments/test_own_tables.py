"""Your own table, as a spreadsheet saves it: a share held out for dev, an encoding, predictions as a table."""

import csv
import importlib
import io
import random
import re
from pathlib import Path

import pytest

from bert_elmo_jax.data.tasks.examples import Question, TaggedSentence, TextExample
from bert_elmo_jax.data.tasks.task import task_named
from bert_elmo_jax.train.metrics import read_metrics

from .programs import run_program
from .task_files import texts, write_model

ROOT = Path(__file__).parents[2]
NAMES = "번호,후기,평가\n"


def write_reviews(path, count, encoding="cp949", seed=0):
    rows = [
        f'{n},"{text}, 정말",{"재미" if good else "노잼"}\n'
        for n, (text, good) in enumerate(texts(random.Random(seed), count))
    ]
    path.write_bytes((NAMES + "".join(rows)).encode(encoding))
    return str(path)


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    return write_reviews(tmp_path_factory.mktemp("reviews") / "reviews.csv", 80)


def review_fields(reviews, **more):
    return {"task": "classification", "train": reviews, "text": "후기", "label": "평가", **more}


def config_of(fields, **changes):
    config = importlib.import_module("experiments.configs.finetune").get_config()
    config.update({"epochs": 1.0, "batch_size": 16, "max_length": 32, **fields})
    config.update_from_flattened_dict(changes)
    return config


def test_a_share_is_kept_aside(program, reviews, capsys):
    read_data = program("bert_elmo_jax.runs.task_data").read_data
    data = read_data(config_of(review_fields(reviews, dev="0.1", encoding="cp949")))
    first, hint = capsys.readouterr().err.splitlines()
    assert first == f"--dev=0.1: 8 examples of {reviews} are held out by a fixed shuffle; 72 are trained on"
    assert hint.startswith("warning: the development data have 8 rows: one row is worth 12.5 points of the score")
    lines = [[example.line for example in part] for part in (data.train, data.dev)]
    assert sorted(lines[0] + lines[1]) == list(range(2, 82))
    assert lines[0] == sorted(lines[0]) and lines[1] == sorted(lines[1]) != list(range(2, 10))
    assert data.task.labels == ("노잼", "재미")
    again = read_data(config_of(review_fields(reviews, dev="0.1", encoding="cp949", share=0.5)))
    assert (again.dev, len(again.train)) == (data.dev, 36)


def test_one_context_or_document_is_never_split(program):
    hold_out = program("bert_elmo_jax.runs.task_data").hold_out
    questions = [Question(str(n), "?", f"context {n // 5}", (), "a.json", n) for n in range(50)]
    train, dev = hold_out(questions, task_named("squad"), 0.2)
    assert (len(train), len(dev)) == (40, 10)
    assert {question.context for question in train}.isdisjoint({question.context for question in dev})
    sentences = [TaggedSentence(("서울",), ("O",), "a.conll", (n,), n // 5) for n in range(50)]
    train, dev = hold_out(sentences, task_named("entities", context=True), 0.2)
    assert {sentence.document for sentence in train}.isdisjoint({sentence.document for sentence in dev})
    assert len({sentence.document for sentence in hold_out(sentences, task_named("entities"), 0.2)[1]}) > 2


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"dev": "0.1"}, "it reads as cp949: save it as UTF-8, or give its encoding (cp949): --encoding=cp949"),
        ({"dev": "0.1", "encoding": "utf-16"}, "it reads as cp949: save it as UTF-8, or give its encoding (cp949)"),
        ({"dev": "1.5", "encoding": "cp949"}, "--dev=1.5: expected a file, or a share of --train above 0 and below 1"),
        ({"dev": "0.999", "encoding": "cp949"}, "--dev=0.999 of 80 examples would be 80 of them: use another share"),
        ({"dev": "0.001", "encoding": "cp949"}, "--dev=0.001 of 80 examples would be 0 of them: use another share"),
        ({"encoding": "cp949"}, "--dev is needed, such as --task=classification --train=my.csv --dev=dev.csv"),
    ],
)
def test_wrong_inputs_are_refused(program, reviews, fields, message):
    with pytest.raises((ValueError, OSError), match=re.escape(message)):
        program("bert_elmo_jax.runs.task_data").read_data(config_of({**review_fields(reviews), **fields}))


def test_a_file_that_is_not_there(program, reviews):
    with pytest.raises(FileNotFoundError, match=r"there is no such file; did you mean .*reviews\.csv\?"):
        program("bert_elmo_jax.runs.task_data").read_data(
            config_of(review_fields(reviews.replace("reviews.csv", "review.csv"), dev="0.1"))
        )


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(write_model(tmp_path_factory.mktemp("model") / "bert"))


@pytest.mark.long
def test_from_a_table_to_a_table(reviews, model, tmp_path, one_device):
    """The steps of the documented commands: a share for dev, the run's encoding for new rows, a table for Excel."""
    flags = {**review_fields(reviews, dev="0.25", encoding="cp949"), "workdir": str(tmp_path / "run"), "init": model}
    fields = ["--config.epochs=1", "--config.batch_size=16", "--config.max_length=32"]

    def start(**changes):
        arguments = [f"--{name}={value}" for name, value in {**flags, **changes}.items()]
        status, _, messages = run_program("finetune", *arguments, *fields)
        return status, messages

    status, messages = start()
    assert status == 0, messages
    assert "20 examples of" in messages and "warning" not in messages
    assert "new, and untrained at the start, because the weights have none: classify\n" in messages
    before = read_metrics(tmp_path / "run")
    status, messages = start()
    assert (status, read_metrics(tmp_path / "run")) == (0, before)
    assert "untrained" not in messages
    assert "20 examples of" in messages
    status, messages = start(dev="0.5")
    assert status == 2
    assert "dev_share: 0.25 then, 0.5 now" in messages

    new = write_reviews(tmp_path / "new.csv", 5, seed=1)
    (tmp_path / "lines.txt").write_text("좋다 영화\n싫다, 영화\n", encoding="utf-8")
    for given_here, out in (([new], "a.csv"), ([str(tmp_path / "lines.txt"), "--encoding=utf-8"], "b.tsv")):
        words = [f"--model={tmp_path / 'run'}", f"--output={tmp_path / out}", f"--input={given_here[0]}"]
        status, _, err = run_program("predict", *words, *given_here[1:])
        assert status == 0, err
    assert (tmp_path / "a.csv").read_bytes().startswith(b"\xef\xbb\xbf")  # the mark that Excel goes by
    rows = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text(encoding="utf-8-sig"))))
    assert list(rows[0]) == ["번호", "후기", "평가", "predicted", "probability"]
    assert [row["번호"] for row in rows] == ["0", "1", "2", "3", "4"]
    assert all(row["후기"].endswith(", 정말") for row in rows)
    assert all(row["predicted"] in ("재미", "노잼") and 0.5 <= float(row["probability"]) <= 1 for row in rows)
    first, *lines = (tmp_path / "b.tsv").read_text(encoding="utf-8").splitlines()
    assert first == "text\tpredicted\tprobability"
    assert [line.split("\t")[0] for line in lines] == ["좋다 영화", "싫다, 영화"]


def test_a_column_that_is_there_already(program):
    module = program("bert_elmo_jax.inference.prediction_lines")
    from bert_elmo_jax.inference.predictions import Number

    cells = {"text": "좋다", "predicted": "old", "more": [1], "none": None}
    rows = module.table_rows(module.InputRows(list(cells), iter([("a.jsonl", 2, cells)])), [])
    example = TextExample("좋다", None, None, None, "a.jsonl", 2)
    assert list(rows([example], [Number(4.5)])) == [
        ["text", "predicted", "more", "none", "predicted_"],
        ["좋다", "old", "[1]", "", "4.5"],
    ]
