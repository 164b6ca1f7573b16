"""Examples of `bert_elmo_jax.inference.predictions`."""

import numpy as np

from bert_elmo_jax.data.tasks.answers import AnswerPrediction
from bert_elmo_jax.data.tasks.task import Task
from bert_elmo_jax.inference.predictions import (
    AnswerSpan,
    Label,
    Number,
    Tags,
    make_answer,
    make_label,
    softmax,
    spread_tags,
    to_json,
)


def test_example_of_make_label():
    assert (
        make_label(Task("classification", "classification", labels=("0", "1")), np.zeros(2, np.float32)).probability
        == 0.5
    )


def test_example_of_spread_tags():
    assert spread_tags("한국 은행은", ["B-OG", "", "", "I-OG", "", "O"], np.array([0.9, 0, 0, 0.8, 0, 0.7]))[0] == [
        "B-OG",
        "I-OG",
        "I-OG",
        "I-OG",
        "I-OG",
        "O",
    ]


def test_example_of_make_answer():
    from bert_elmo_jax.data.tasks import Candidate

    best = Candidate("강가", 3, 5, score=2.0, probability=0.9)
    assert repr(make_answer(AnswerPrediction("q", best, (best,), null_score=-2.0)).n_best) == "('강가' [3:5] (0.900),)"


def test_example_of_label():
    assert str(Label("재미", 0.75, {"노잼": 0.25, "재미": 0.75})) == "재미 (0.750)"


def test_example_of_tags():
    tags = Tags(("서울", "역", "앞"), ("B-LOC", "I-LOC", "O"), (0.9, 0.8, 1.0))
    assert str(tags) == "서울/B-LOC 역/I-LOC 앞/O"
    assert tags.entities == [("LOC", "서울 역")]


def test_example_of_answerspan():
    assert str(AnswerSpan("강가", 3, 5, 0.9, (), -2.0)) == "'강가' [3:5] (0.900)"


def test_example_of_to_json():
    assert to_json(Number(0.5)) == {"value": 0.5}
    assert to_json(AnswerSpan("강가", 3, 5, 0.9, (AnswerSpan("강가", 3, 5, 0.9, (), -2.0),), -2.0))["n_best"] == [
        {"answer": "강가", "start": 3, "end": 5, "probability": 0.9}
    ]


def test_example_of_softmax():
    assert softmax(np.zeros((1, 2), np.float32)).tolist() == [[0.5, 0.5]]
