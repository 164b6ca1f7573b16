"""Several heads answer what one head of the same width mixes up."""

import jax
import numpy as np
import pytest

from experiments.studies.why_attention import heads
from experiments.studies.why_attention.heads import answer, compare_heads, draw_roles, init_roles, read_roles


@pytest.mark.long
def test_four_heads_answer_better_than_one_of_the_same_width(monkeypatch):
    monkeypatch.setattr(heads, "WORDS", 64)
    one, four = compare_heads((1, 4), steps=250, rate=0.01)
    assert one.parameters == four.parameters
    assert four.final > one.final + 0.2
    assert one.weights.shape == (1, 8) and four.weights.shape == (4, 8)
    np.testing.assert_allclose(four.weights.sum(axis=1), 1, atol=1e-5)
    question_weights = four.weights[:, : heads.ANSWERS]
    assert question_weights.sum() > 0.9 * four.weights.sum()  # roles without a question get little


def test_weights_follow_the_roles_and_not_the_order():
    params, batch = init_roles(jax.random.key(0)), draw_roles(jax.random.key(1), 2)
    logits, weights = read_roles(params, batch, 4)
    turned = {**batch, "roles": batch["roles"][:, ::-1], "words": batch["words"][:, ::-1]}
    again, reversed_weights = read_roles(params, turned, 4)
    np.testing.assert_allclose(again, logits, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(reversed_weights[..., ::-1], weights, atol=1e-5)


def test_answers_are_the_words_of_the_first_roles():
    batch = jax.tree.map(np.asarray, draw_roles(jax.random.key(0), 5))
    for roles, words, answers in zip(batch["roles"], batch["words"], batch["answers"]):
        assert [words[list(roles).index(role)] for role in range(heads.ANSWERS)] == answers.tolist()


def test_heads_must_divide_the_width():
    with pytest.raises(ValueError, match="5 heads do not divide a width of 64"):
        answer(5, steps=1)
