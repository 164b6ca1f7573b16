"""What transformers writes with the same weights: greedily, with beams, and with beams that end."""

import numpy as np
import pytest

from bert_elmo_jax import load


@pytest.fixture(scope="module")
def folder(goldens):
    return goldens / "transformer_tiny"


@pytest.fixture(scope="module")
def model(folder):
    return load(folder)


@pytest.fixture(scope="module")
def sources(folder):
    found = np.load(folder / "generation.npz")
    return [found[f"{n}/prompt"].tolist() for n in range(4)]


def test_greedy_and_beams(model, folder, sources):
    wanted = np.load(folder / "generation.npz")
    greedy = model.generate(source=sources, max_new=16)
    beams = model.generate(source=sources, max_new=16, beams=4, length_penalty=0.6, n_best=3)
    for n, ([best], texts) in enumerate(zip(greedy, beams, strict=True)):
        assert [179, *best.ids] == wanted[f"{n}/greedy"][0].tolist()
        assert [[179, *text.ids] for text in texts] == wanted[f"{n}/beam"].tolist()
        np.testing.assert_allclose([text.score for text in texts], wanted[f"{n}/beam_scores"], atol=1e-4)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("early_false", {}),
        ("early_true", {"early_stopping": True}),
        ("early_never", {"early_stopping": "never"}),
        ("gnmt", {"length_rule": "gnmt"}),
    ],
)
def test_beams_that_end(model, folder, sources, name, options):
    wanted = np.load(folder / "generation_eos.npz")
    end = int(wanted["eos"])
    found = model.generate(source=sources, max_new=16, beams=4, length_penalty=0.6, n_best=3, ends=[end], **options)
    for n, texts in enumerate(found):
        sequences, scores = wanted[f"{n}/{name}/sequences"], wanted[f"{n}/{name}/scores"]
        for text, sequence, score in zip(texts, sequences, scores, strict=True):
            assert text.ids == [piece for piece in sequence.tolist() if piece >= 0]
            assert text.score == pytest.approx(score, abs=1e-4)
