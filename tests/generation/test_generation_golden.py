"""Texts and scores of transformers' `generate`: greedy, four beams, and searches that end early."""

import numpy as np
import pytest

from bert_elmo_jax import load

MODELS = {"gpt_tiny": "tokens", "gpt2_tiny": "tokens", "transformer_tiny": "source"}
RULES = {
    "early_false": {"early_stopping": False},
    "early_true": {"early_stopping": True},
    "early_never": {"early_stopping": "never"},
    "gnmt": {"length_rule": "gnmt"},
}
BEAMS = {"max_new": 16, "beams": 4, "n_best": 3, "length_penalty": 0.6}


@pytest.fixture(scope="module", params=MODELS)
def model(request, goldens):
    """Return a model, the name of its prompts' argument, and the stored texts without and with an end."""
    folder = goldens / request.param
    stored = [dict(np.load(folder / name)) for name in ("generation.npz", "generation_eos.npz")]
    return load(folder), MODELS[request.param], *stored


def read_prompts(stored):
    return [stored[f"{n}/prompt"].tolist() for n in range(sum(name.endswith("/prompt") for name in stored))]


def check(texts, pieces, scores):
    assert [text.ids for text in texts] == [[piece for piece in row if piece >= 0] for row in pieces.tolist()]
    np.testing.assert_allclose([text.score for text in texts], scores, atol=1e-4)


def test_greedy_texts_and_beams(model):
    writer, name, stored, _ = model
    prompts = read_prompts(stored)  # of mixed lengths, in one batch
    greedy, beams = writer.generate(**{name: prompts}, max_new=16), writer.generate(**{name: prompts}, **BEAMS)
    for number, prompt in enumerate(prompts):
        skip = len(prompt) if name == "tokens" else 1
        assert greedy[number][0].ids == stored[f"{number}/greedy"][0, skip:].tolist()
        check(beams[number], stored[f"{number}/beam"][:, skip:], stored[f"{number}/beam_scores"])


# The rules are the same for all models: in every run, one model with each, and each model with one.
SEARCHES = [
    pytest.param(name, rule, marks=[pytest.mark.long] * (name != "gpt_tiny" and rule != "early_true"))
    for name in MODELS
    for rule in RULES
]


@pytest.mark.parametrize(("model", "rule"), SEARCHES, indirect=["model"])
def test_searches_that_end(model, rule):
    writer, name, _, stored = model
    end = int(stored["eos"])
    all_texts = writer.generate(**{name: read_prompts(stored)}, ends=[end], **BEAMS, **RULES[rule])
    for number, texts in enumerate(all_texts):
        check(texts, stored[f"{number}/{rule}/sequences"], stored[f"{number}/{rule}/scores"])
        assert [text.finished for text in texts] == [text.ids[-1] == end for text in texts]


def test_a_greedy_score_is_that_of_one_pass(model):
    """Steps with a memory give the same log-probabilities as the whole text read at once."""
    writer, name, stored, _ = model
    prompts = read_prompts(stored)
    texts = writer.generate(**{name: prompts}, max_new=16, length_penalty=0.0)
    prompt, [text] = max(zip(prompts, texts, strict=True), key=lambda pair: len(pair[0]))
    if name == "tokens":
        logits = writer.forward(np.array([[*prompt, *text.ids]])).logits[0, len(prompt) - 1 : -1]
    else:
        first = writer.config.start_id
        logits = writer.forward(source=np.array([prompt]), target=np.array([[first, *text.ids]])).logits[0, :-1]
    logits = np.asarray(logits, np.float64)
    logs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    np.testing.assert_allclose(text.score, logs[np.arange(16), text.ids].sum(), rtol=1e-4)


@pytest.mark.long
def test_half_precision(goldens):
    writers = [load(goldens / "gpt2_tiny", dtype=dtype) for dtype in ("float32", "bfloat16")]
    exact, half = (writer.generate(tokens=[[5, 7, 2], [9]], max_new=6, beams=2) for writer in writers)
    for [one], [other] in zip(exact, half, strict=True):
        np.testing.assert_allclose(one.score, other.score, atol=0.05)
        assert one.score != other.score
