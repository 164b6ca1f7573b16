"""Released classifiers, taggers and readers answer as transformers' pipelines do; frozen answers, and wrong files."""

import csv
import functools
import importlib
import json
import re
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.data.tasks.examples import TextExample
from bert_elmo_jax.inference.entities import find_entities, make_text_rows
from bert_elmo_jax.inference.predict_file import predict_file
from bert_elmo_jax.inference.predictions import to_json
from bert_elmo_jax.inference.task_model import TaskModel
from bert_elmo_jax.text import load_tokenizer
from bert_elmo_jax.text.tokenizer_json import tokenizer_json

GOLDENS = Path(__file__).parents[1] / "goldens" / "released_heads"
SHARED = Path(__file__).parents[3] / "shared" / "goldens" / "released_heads"
FOLDERS = sorted(folder.name for folder in GOLDENS.iterdir())
ALL = sorted(folder.name for folder in SHARED.iterdir()) if SHARED.is_dir() else FOLDERS
LIMIT = 1e-5


class Released(NamedTuple):
    """A released model, its inputs as `predict` takes them, and the frozen answers."""

    model: TaskModel
    inputs: list[Any]
    frozen: dict[str, Any]


@functools.cache
def released(name: str) -> Released:
    folder = SHARED / name if name not in FOLDERS else GOLDENS / name
    frozen = json.loads((folder / "predictions.json").read_text(encoding="utf-8"))
    keys = ("question", "context") if frozen["pipeline"] == "question-answering" else ("text", "text_pair")
    inputs = [tuple(map(text.get, keys)) if isinstance(text, dict) else text for text in frozen["inputs"]]
    return Released(load(folder), inputs, frozen)


def of_pipeline(names: list[str], pipeline: str) -> list[Any]:
    """Return the folders of a pipeline; those that are not in this repository are tested at night."""
    ends = {
        "text": ("sentiment2", "nli3", "regression", "multilabel"),
        "tag": ("ner",),
        "read": ("qa",),
        "mask": ("mask",),
    }[pipeline]
    chosen = [name for name in names if name.endswith(ends)]
    return [name if name in FOLDERS else pytest.param(name, marks=pytest.mark.long) for name in chosen]


@pytest.mark.parametrize("name", of_pipeline(ALL, "text"))
def test_labels_and_probabilities_of_texts(name):
    model, inputs, frozen = released(name)
    for prediction, scores in zip(model.predict(inputs), frozen["answers"]["top_k=None"], strict=True):
        theirs = {entry["label"]: entry["score"] for entry in scores}
        if name.endswith("regression"):
            assert abs(prediction.value - scores[0]["score"]) < LIMIT
            continue
        assert prediction.probabilities == pytest.approx(theirs, abs=LIMIT)
        if name.endswith("multilabel"):
            assert list(prediction.labels) == [entry["label"] for entry in scores if entry["score"] >= 0.5]
        else:
            assert prediction.label == scores[0]["label"]


@pytest.mark.parametrize("name", of_pipeline(ALL, "text"))
def test_logits_of_texts(name):
    model, inputs, frozen = released(name)
    encodings = [model.tokenizer.encode(*(text if isinstance(text, tuple) else (text,))) for text in inputs]
    assert [encoding.ids.tolist() for encoding in encodings] == frozen["ids"]
    batch = model.tokenizer.batch(inputs)
    output = model.forward(batch["tokens"], batch["types"], batch["segments"])
    logits = np.array(frozen["logits"])
    assert np.abs(np.asarray(output.logits) - logits).max() < LIMIT * max(1, np.abs(logits).max())
    assert output.head == "classify" and len(output.layers) == model.num_layers + 1 and output.mlm_logits is None


def test_the_encoder_of_a_classifier_stays_available():
    model = released("roberta_nli3").model
    assert model.labels == ("CONTRADICTION", "NEUTRAL", "ENTAILMENT")
    assert model.encode(["The river."]).last.shape[2] == model.sentences(["The river."]).shape[1] == model.width


@pytest.mark.parametrize("name", of_pipeline(ALL, "mask"))
def test_masked_words(name):
    model, inputs, frozen = released(name)
    for text, answers in zip(inputs, frozen["answers"]["top_k=5"], strict=True):
        theirs = answers if isinstance(answers[0], list) else [answers]  # one list for each mask
        ours = model.fill_mask(text, top=5)
        assert [(guess.mask, guess.piece) for guess in ours] == [
            (mask, model.tokenizer.tokens[guess["token"]]) for mask, guesses in enumerate(theirs) for guess in guesses
        ]
        scores = [guess["score"] for guesses in theirs for guess in guesses]
        assert [guess.probability for guess in ours] == pytest.approx(scores, abs=LIMIT)


@pytest.mark.parametrize(
    ("name", "lines", "options", "first"),
    [
        ("electra_regression", "좋다\nThe river.\n", {}, {"text": "좋다"}),
        ("roberta_nli3", "a river\ta bridge\n", {}, {"text": "a river", "pair": "a bridge"}),
        ("bert_ner", "The river had risen.\n", {"aggregation": "simple"}, {"text": "The river had risen."}),
        ("bert_ner", "The river had risen.\n", {}, {"words": ["The", "river", "had", "risen."]}),
        ("distilbert_qa", "What had risen?\tThe river had risen.\n", {"n_best": 2}, {"question": "What had risen?"}),
    ],
)
def test_predictions_for_lines(tmp_path, name, lines, options, first):
    source, target = tmp_path / "lines.txt", tmp_path / "predictions.jsonl"
    source.write_text(lines, encoding="utf-8")
    predict_file(str(GOLDENS / name), str(source), str(target), **options)
    rows = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == lines.count("\n") and first.items() <= rows[0].items()
    inputs = [tuple(line.split("\t")) if "\t" in line else line for line in lines.splitlines()]
    options = {"top_k": 2} if "n_best" in options else options
    assert rows == [
        {
            **{key: value for key, value in row.items() if key in ("text", "pair", "question", "id")},
            **json.loads(json.dumps(to_json(prediction))),
        }
        for row, prediction in zip(rows, released(name).model.predict(inputs, **options), strict=True)
    ]


def test_predictions_for_a_table_name_its_columns(tmp_path):
    source, target = tmp_path / "pairs.csv", tmp_path / "predictions.csv"
    source.write_text("premise,hypothesis\na river,a bridge\n", encoding="utf-8")
    predict_file(str(GOLDENS / "roberta_nli3"), str(source), str(target), text="premise", pair="hypothesis")
    assert target.read_text(encoding="utf-8-sig").startswith(
        "premise,hypothesis,predicted,probability\na river,a bridge,"
    )


@pytest.mark.parametrize(
    ("ending", "columns"), [("csv", {}), ("tsv", {"text": "q"}), ("jsonl", {}), ("parquet", {"text": "q", "pair": "c"})]
)
def test_answers_for_a_table_of_questions(tmp_path, ending, columns):
    source, target = tmp_path / f"questions.{ending}", tmp_path / "answers.csv"
    names = ["n", columns.get("text", "question"), columns.get("pair", "context")]
    pairs = [("What had risen?", "The river had risen in the night."), ("Who came?", "A boat had come at dawn.")]
    rows = [dict(zip(names, (str(n), *pair))) for n, pair in enumerate(pairs)]
    if ending == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
        parquet.write_table(importlib.import_module("pyarrow").Table.from_pylist(rows), source)
    else:
        lines = map(json.dumps, rows)
        if ending != "jsonl":
            lines = map({"csv": ",", "tsv": "\t"}[ending].join, [names, *(row.values() for row in rows)])
        source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    predict_file(str(GOLDENS / "distilbert_qa"), str(source), str(target), **columns)
    with target.open(encoding="utf-8-sig", newline="") as opened:
        written = list(csv.DictReader(opened))
    assert [{name: row[name] for name in names} for row in written] == rows
    answers = released("distilbert_qa").model.predict(pairs)
    assert [row["predicted"] for row in written] == [answer.answer for answer in answers]


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize(
    ("name", "inputs", "options", "message"),
    [
        ("bert_ner", ["a"], {"aggregation": "best"}, "aggregation is 'best'; it is one of none, simple, first"),
        ("bert_ner", [["a"]], {"aggregation": "simple"}, r"input 0 is \['a'\]; expected a text"),
        ("bert_ner", ["a"], {"aggregation": "simple", "stride": 60}, "stride=60: use a whole number, 0 to 56"),
        ("bert_ner", ["a"], {"top_k": 2}, "top_k and no_answer are for questions"),
        ("roberta_nli3", ["a"], {"aggregation": "simple"}, "are for taggers"),
        ("distilbert_qa", ["a"], {}, r"expected \(question, context\)"),
        ("roberta_nli3", [" "], {}, r"expected a text or \(text, pair\), not empty"),
    ],
)
def test_wrong_requests_are_refused(name, inputs, options, message):
    with pytest.raises(ValueError, match=message):
        released(name).model.predict(inputs, **options)


@pytest.fixture
def change(tmp_path):
    """Return a function that copies a folder, changes fields of its `config.json`, and returns the copy."""

    def copy_and_change(name, **fields):
        folder = shutil.copytree(GOLDENS / name, tmp_path / name)
        content = json.loads((folder / "config.json").read_text(encoding="utf-8")) | fields
        content = {field: value for field, value in content.items() if value is not None}
        (folder / "config.json").write_text(json.dumps(content), encoding="utf-8")
        return folder

    return copy_and_change


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        (
            "roberta_nli3",
            {"id2label": None, "label2id": None},
            r"no id2label, and the head has 3 outputs: add id2label",
        ),
        ("roberta_nli3", {"id2label": {"0": "a", "2": "b", "3": "c"}}, "id2label must name the labels 0 to 2"),
        ("modernbert_sentiment2", {"id2label": {"0": "a", "1": "b", "2": "c"}}, "id2label .*3 labels .*2 outputs"),
        ("bert_ner", {"id2label": {"0": "O", "1": "B-PER"}}, "id2label .*2 labels .*7 outputs"),
        ("roberta_nli3", {"id2label": {"0": "a", "1": "b", "2": "a"}}, "has a label twice: a, b, a; rename one"),
        ("roberta_nli3", {"problem_type": "ranking"}, "problem_type in config.json is 'ranking'; it is one of regress"),
        (
            "modernbert_sentiment2",
            {"model_type": "new", "auto_map": {"AutoModel": "modeling_new.NewModel"}},
            r"model_type 'new', which is not supported \(auto_map names code .*modeling_new.NewModel\), which is never",
        ),
        ("roberta_nli3", {"position_embedding_type": "rotary"}, "position_embedding_type is 'rotary'; only 'absolute'"),
    ],
)
def test_wrong_files_are_refused(change, name, fields, message):
    folder = change(name, **fields)
    (folder / "modeling_new.py").write_text("raise AssertionError('this is never run')", encoding="utf-8")
    with pytest.raises(ValueError, match=message) as error:
        load(folder)
    assert len(str(error.value).splitlines()) <= 2


def test_fields_of_unknown_meaning_are_logged_and_refused_on_request(change, caplog):
    unknown = {"hiden_size": 7, "new_rotation": True, "auto_map": {"AutoModel": "modeling_new.NewModel"}}
    folder = change("roberta_nli3", **unknown)
    (folder / "modeling_new.py").write_text("raise AssertionError('this is never run')", encoding="utf-8")
    assert len(load(folder).predict([("a", "b")])) == 1
    assert "hiden_size is 7, a field of unknown meaning; did you mean hidden_size?; it is ignored" in caplog.text
    assert "new_rotation is True" in caplog.text and "modeling_new.NewModel), which is never run" in caplog.text
    with pytest.raises(ValueError, match=r"(?s)auto_map names code .*hiden_size is 7, .*new_rotation is True"):
        load(folder, strict=True)
    assert load(GOLDENS / "roberta_nli3", strict=True).labels


@pytest.mark.parametrize("name", of_pipeline(ALL, "tag"))
def test_entities(name):
    model, inputs, frozen = released(name)
    for call, answers in frozen["answers"].items():
        strategy, _, stride = call.partition(", stride=")
        texts = inputs[-1:] if stride else inputs  # the last is longer than a row
        predictions = model.predict(texts, aggregation=strategy, stride=int(stride) if stride else None)
        for text, prediction, theirs in zip(texts, predictions, answers, strict=True):
            ours = [(entity.label, entity.start, entity.end) for entity in prediction.entities]
            kind = "entity" if strategy == "none" else "entity_group"
            assert ours == [(entity[kind], entity["start"], entity["end"]) for entity in theirs], (call, text)
            probabilities = [entity.probability for entity in prediction.entities]
            assert probabilities == pytest.approx([entity["score"] for entity in theirs], abs=LIMIT)
            assert all(entity.text == text[entity.start : entity.end] for entity in prediction.entities)


@pytest.mark.parametrize("name", ["deberta_v3_tiny", "albert_tiny"])
def test_entities_of_sentencepiece_models_cover_the_characters_of_the_pipeline(goldens, tmp_path, name):
    """A DeBERTa's include the space before, in both files; an ALBERT's do not. The mark of a space is not empty."""
    shutil.copy(goldens / name / "tokenizer_config.json", tmp_path)
    tokenizer = load_tokenizer(goldens / name)
    spec = json.loads(tokenizer_json(tokenizer))
    # As transformers writes it:
    if name == "deberta_v3_tiny":
        [strip] = [step for step in spec["normalizer"]["normalizers"] if step["type"] == "Strip"]
        strip["strip_left"] = False
    else:
        spec["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, spec["decoder"]]}
    (tmp_path / "tokenizer.json").write_text(json.dumps(spec))
    theirs = {}
    for entry in json.loads((goldens / name / "encodings.json").read_text("utf-8")):
        newest = entry.get("transformers_5", entry)
        plain = isinstance(entry["text"], str) and re.fullmatch(r"[\s!-~]+", entry["text"], re.ASCII)
        if plain and newest["offsets"] and newest["ids"] == entry["ids"] and len(entry["ids"]) > 2:
            theirs[entry["text"]] = newest["offsets"][1:-1]
    assert len(theirs) > 9
    texts = [TextExample(text, None, None, None, "texts.txt", 1) for text in theirs]
    for reads in (tokenizer, load_tokenizer(tmp_path)):
        rows = make_text_rows(texts, reads, 512, None)
        outputs = [np.zeros((len(row.ids[0]), 1), np.float32) for row in rows]
        answers = find_entities(texts, rows, outputs, ["PLACE"], reads, "none")
        for text, entities, offsets in zip(texts, answers, theirs.values(), strict=True):
            assert [[entity.start, entity.end] for entity in entities.entities] == offsets, (text, type(reads))


def test_long_texts_lose_the_end_that_the_tokenizer_cuts(monkeypatch):
    """With `stride`, the rows begin at the other end, as those of the library of tokenizers."""
    tokenizer = load(GOLDENS / "bert_ner").tokenizer
    text = TextExample("abcdefg " * 2, None, None, None, "texts.txt", 1)
    ids = tokenizer.encode(text.text, specials=False).ids.tolist()
    inner = {side: [] for side in (False, True)}
    for side, stride in ((False, None), (False, 2), (True, None), (True, 2)):
        monkeypatch.setattr(tokenizer, "cuts_start", side)
        inner[side] += [row.ids[0][1:-1].tolist() for row in make_text_rows([text], tokenizer, 8, stride)]
    assert inner[False][:2] == [ids[:6], ids[:6]] and inner[True][:2] == [ids[-6:], ids[-6:]]
    assert inner[False][2] == ids[4:10] and inner[True][2] == ids[-10:-4]


@pytest.mark.parametrize("name", of_pipeline(ALL, "read"))
def test_answers(name):
    model, inputs, frozen = released(name)
    for no_answer in (False, True):
        call = "top_k=3, handle_impossible_answer=True" if no_answer else "top_k=3"
        predictions = model.predict(inputs, top_k=3, no_answer=no_answer)
        for question, prediction, theirs in zip(inputs, predictions, frozen["answers"][call], strict=True):
            ours = [(span.answer, span.start, span.end) for span in prediction.n_best]
            assert ours == [(span["answer"], span["start"], span["end"]) for span in theirs], question
            assert [span.probability for span in prediction.n_best] == pytest.approx(
                [span["score"] for span in theirs], abs=LIMIT
            )
            assert (prediction.answer, prediction.probability) == (ours[0][0], prediction.n_best[0].probability)
