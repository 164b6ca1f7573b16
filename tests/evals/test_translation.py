"""BLEU and chrF against the figures that sacrebleu recorded, and wrong inputs."""

import json

import pytest

from bert_elmo_jax.evals import translation


@pytest.fixture(scope="module")
def recorded(goldens):
    return json.loads((goldens / "metrics" / "bleu.json").read_text("utf-8"))


@pytest.mark.parametrize("tokenize", ["13a", "none", "char", "intl", None])
def test_scores_equal_those_of_sacrebleu(recorded, tokenize):
    options = {} if tokenize is None else {"tokenize": tokenize}  # 13a is the default
    figures = translation.score(recorded["hypotheses"], recorded["references"], **options)
    scores = recorded["scores"]
    bleu = scores[f"bleu/{tokenize or '13a'}"]["score"]
    assert figures == pytest.approx({"bleu": bleu, "chrf": scores["chrf"], "chrf++": scores["chrf++"]}, abs=1e-9)


def test_perfect_and_unrelated_translations():
    same = ["어머니께서는 배를 깎으셨다 .", "She ate a pear ."]
    assert translation.score(same, same) == pytest.approx({"bleu": 100, "chrf": 100, "chrf++": 100})
    assert translation.score(["a b c d e"], ["v w x y z"])["chrf"] == 0
    assert translation.score([""], ["v w x y z"])["bleu"] == 0  # a model may write nothing


def test_wrong_inputs(as_users_run):
    for hypotheses, references, tokenize, message in (
        (["a", "b"], ["a"], "13a", "2 hypotheses but 1 references: give one reference per hypothesis"),
        ([], [], "13a", "there are no translations to score"),
        (["a"], ["a"], "13b", r"tokenize='13b' is not known; it is one of 13a, .*; did you mean 13a\?"),
        (["a"], ["a"], "flores200", "tokenize='flores200' is not known"),  # downloads a model
        ("a text", ["a text"], "13a", "hypotheses is one text: give a list"),
        (["a", "b"], ["a", ["b"]], "13a", r"references\[1\] is list, not text"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            translation.score(hypotheses, references, tokenize=tokenize)
