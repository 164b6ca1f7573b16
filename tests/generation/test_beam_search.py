"""Beam search in compiled code gives the texts and scores of a plain search with lists."""

import functools

import numpy as np
import pytest

from bert_elmo_jax.families import REGISTRY
from bert_elmo_jax.generation import batches

from .toy_writer import FAMILY, make_writer, slow_beams, slow_logs

PROMPTS = [[5, 7, 2], [9], [4, 4, 11, 6, 1, 8, 2, 13]]


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(REGISTRY, "toy_writer", FAMILY)


def compare(writer, config, params, prompts, beams, max_new, ends=None, **options):
    """Compare all texts of a call with the plain search, and return them."""
    name = "tokens" if config.first is None else "source"
    rules = {"length_penalty": 1.0, "length_rule": "power", "early_stopping": False} | options
    all_texts = writer.generate(**{name: prompts}, beams=beams, n_best=beams, max_new=max_new, ends=ends, **options)
    stops = config.ends if ends is None else ends
    for prompt, texts in zip(prompts, all_texts, strict=True):
        logs = functools.partial(slow_logs, config, params, prompt)
        expected = slow_beams(logs, beams, max_new, stops, *rules.values())[: len(texts)]
        assert [text.ids for text in texts] == [ids for _, ids in expected]
        np.testing.assert_allclose([text.score for text in texts], [score for score, _ in expected], atol=1e-4)
        assert [text.finished for text in texts] == [text.ids[-1] in stops for text in texts]
    return all_texts


@pytest.mark.parametrize(("first", "early"), [(None, False), (None, True), (None, "never"), (1, "never")])
def test_all_rules_give_the_plain_search(first, early):
    lengths = set()
    writer, config, params = make_writer(seed=0, first=first)
    prompts = [*PROMPTS, [6, 6], [12, 3, 14], [18]]
    for penalty, rule in [(0.6, "power"), (2.0, "power"), (-1.0, "power"), (0.6, "gnmt")]:
        options = {"length_penalty": penalty, "length_rule": rule, "early_stopping": early}
        all_texts = compare(writer, config, params, prompts, 4, 9, **options)
        lengths |= {len(text.ids) for texts in all_texts for text in texts}
    assert len(lengths) > 2  # some end early


def test_a_strong_penalty_finds_all_texts():
    """Scores far below -1e9 are scores of texts; a divisor of 20^-8 had made them worse than no text."""
    [texts] = make_writer(seed=0)[0].generate(tokens=[[5, 7, 2]], beams=2, n_best=2, max_new=20, length_penalty=-8)
    assert len(texts) == 2 and texts[0].score >= texts[1].score and all(text.ids for text in texts)


@pytest.mark.long
def test_the_rules_differ():
    """If the rules agreed, the test above would compare little."""
    texts_by_rule = {}
    for early in (False, True, "never"):
        options = {"beams": 3, "n_best": 3, "max_new": 12, "early_stopping": early}
        texts = [make_writer(seed=seed)[0].generate(tokens=PROMPTS, **options) for seed in range(6)]
        texts_by_rule[early] = str([[[text.ids for text in best] for best in written] for written in texts])
    assert len(set(texts_by_rule.values())) == 3


@pytest.mark.parametrize("ends", [(), (3, 4, 5), tuple(range(3, 12))], ids=len)
def test_none_and_many_pieces_end_a_text(ends):
    writer, config, params = make_writer(seed=4, ends=ends)
    compare(writer, config, params, PROMPTS, 5, 7, length_penalty=0.6)


def test_given_ends_replace_those_of_the_model_and_forbidden_pieces_are_not_written():
    writer, config, params = make_writer(seed=4, forbidden=(2, 7, 11))
    all_texts = compare(writer, config, params, PROMPTS, 3, 7, ends=(6, 8))
    assert not {piece for texts in all_texts for text in texts for piece in text.ids} & {2, 7, 11}
    all_texts = compare(writer, config, params, PROMPTS, 3, 7, ends=())
    assert all(len(text.ids) == 7 for texts in all_texts for text in texts)


def test_forbidden_pieces_have_no_share_of_the_probability_in_a_model_that_renormalises():
    writer, config, params = make_writer(seed=4, forbidden=(2, 7, 11), renormalises=True)
    for beams in (1, 3):
        compare(writer, config, params, PROMPTS[:2], beams, 7)
    plain = make_writer(seed=4, forbidden=(2, 7, 11))[0].generate(tokens=PROMPTS[:1], beams=3, max_new=7)[0][0]
    [[text]] = writer.generate(tokens=PROMPTS[:1], beams=3, max_new=7)
    assert text.score > plain.score + 1e-3


def test_one_piece_and_as_many_beams_as_pieces():
    writer, config, params = make_writer(seed=1, vocab_size=5, ends=(3,))
    for max_new in (1, 6):
        compare(writer, config, params, [[1], [2, 4]], 5, max_new)


def test_a_search_does_not_depend_on_its_batch():
    writer, _, _ = make_writer(seed=3)
    options = {"beams": 3, "n_best": 2, "max_new": 20, "length_penalty": 0.6}
    prompts = [*PROMPTS, *[[n, n + 1] for n in range(10)]]
    expected = writer.generate(tokens=prompts, **options)
    for size in (1, 5):
        for texts, written in zip(expected, writer.generate(tokens=prompts, batch_size=size, **options), strict=True):
            assert [text.ids for text in texts] == [text.ids for text in written]
            np.testing.assert_allclose([text.score for text in texts], [text.score for text in written], atol=1e-5)


def test_long_texts_are_searched_in_several_calls(monkeypatch):
    writer, config, params = make_writer(seed=6, ends=())
    expected = compare(writer, config, params, PROMPTS, 3, 30)
    monkeypatch.setattr(batches, "CHUNK", 7)
    assert compare(writer, config, params, PROMPTS, 3, 30) == expected


def test_repeats_cost_more_in_a_search_as_in_transformers():
    """The penalty multiplies log-probabilities of pieces in the text or the prompt."""
    writer, config, params = make_writer(seed=5, ends=())
    for prompt in PROMPTS:

        def logs(ids, prompt=prompt):
            log_probs = slow_logs(config, params, prompt, ids)
            return [log * 1.7 if piece in {*prompt, *ids} else log for piece, log in enumerate(log_probs)]

        expected = slow_beams(logs, 3, 6, ())
        texts = writer.generate(tokens=[prompt], beams=3, n_best=3, max_new=6, repetition_penalty=1.7)[0]
        assert [text.ids for text in texts] == [ids for _, ids in expected]
        np.testing.assert_allclose([text.score for text in texts], [score for score, _ in expected], atol=1e-4)


def test_no_text_ends_before_it_may():
    writer, _, _ = make_writer(seed=0, sharpness=0.3, ends=tuple(range(10)))
    for texts in writer.generate(tokens=PROMPTS, beams=3, n_best=3, max_new=9, min_new=6):
        assert all(6 < len(text.ids) <= 9 and min(text.ids[:6]) >= 10 for text in texts)
