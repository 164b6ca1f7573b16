"""BLEU and chrF against the figures that sacrebleu recorded, and wrong inputs."""

import json

import pytest

from bert_elmo_jax.evals import translation


@pytest.fixture(scope="module")
def recorded(goldens):
    return json.loads((goldens / "metrics" / "bleu.json").read_text("utf-8"))


@pytest.mark.parametrize("tokenize", ["13a", "none", "char", "intl"])
def test_scores_equal_those_of_sacrebleu(recorded, tokenize):
    found = translation.score(recorded["hypotheses"], recorded["references"], tokenize=tokenize)
    official = recorded["scores"]
    expected = {"bleu": official[f"bleu/{tokenize}"]["score"], "chrf": official["chrf"], "chrf++": official["chrf++"]}
    assert found == pytest.approx(expected, abs=1e-9)


def test_the_tokenizer_is_13a_by_default(recorded):
    assert translation.score(recorded["hypotheses"], recorded["references"])["bleu"] == pytest.approx(
        recorded["scores"]["bleu/13a"]["score"], abs=1e-9
    )


def test_perfect_and_unrelated_translations():
    same = ["어머니께서는 배를 깎으셨다 .", "She ate a pear ."]
    assert translation.score(same, same) == pytest.approx({"bleu": 100, "chrf": 100, "chrf++": 100})
    assert translation.score(["a b c d e"], ["v w x y z"])["chrf"] == 0
    assert translation.score([""], ["v w x y z"])["bleu"] == 0  # a model may write nothing


@pytest.mark.parametrize(
    ("hypotheses", "references", "tokenize", "message"),
    [
        (["a", "b"], ["a"], "13a", "2 hypotheses but 1 references: give one reference per hypothesis"),
        ([], [], "13a", "there are no translations to score"),
        (["a"], ["a"], "13b", r"tokenize='13b' is not known; it is one of 13a, .*; did you mean 13a\?"),
        (["a"], ["a"], "flores200", "tokenize='flores200' is not known"),  # downloads a model
    ],
)
def test_wrong_inputs(hypotheses, references, tokenize, message):
    with pytest.raises(ValueError, match=message):
        translation.score(hypotheses, references, tokenize=tokenize)


def test_other_types(as_users_run):
    with pytest.raises(TypeError, match="hypotheses is one text: give a list"):
        translation.score("a text", ["a text"])
    with pytest.raises(TypeError, match=r"references\[1\] is list, not text"):
        translation.score(["a", "b"], ["a", ["b"]])
