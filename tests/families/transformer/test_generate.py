"""The texts of transformers with the same weights: greedy, with beams, and with beams that end."""

import dataclasses

import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.init_params import param_shapes
from bert_elmo_jax.families.transformer.config import TransformerConfig
from bert_elmo_jax.families.transformer.translator import Translator
from bert_elmo_jax.weights.parameter_tree import nest


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


def test_the_last_piece_may_be_forced(model, sources):
    config = dataclasses.replace(model.config, forced_end_id=0)
    forced = Translator(config, model.params, None, "forced")
    for beams in (1, 4):
        options = {"source": sources, "beams": beams, "length_penalty": 0.0}
        found, shorter = forced.generate(max_new=5, **options), model.generate(max_new=4, **options)
        for [text], [before] in zip(found, shorter, strict=True):
            # The forced piece has the score 0, so the best text is the best shorter one.
            assert text.ids == [*before.ids, 0] and text.score == pytest.approx(before.score, abs=1e-5)
            assert text.finished and not before.finished


def test_a_target_with_more_pieces_than_the_source():
    config = TransformerConfig(9, 16, 1, 2, 24, 12, target_vocab_size=60, share_embeddings=False, end_ids=(59,))
    shapes, rng = param_shapes(get_family("transformer"), config, ("decoder",), pooler=False), np.random.default_rng(0)
    params = nest({path: rng.normal(size=shape).astype(np.float32) for path, shape in shapes.items()})
    model = Translator(config, params, None, "toy")
    found = model.generate(source=[[5, 6], [8]], max_new=4, beams=4, n_best=4)
    assert max(piece for texts in found for text in texts for piece in text.ids) > 9
    with pytest.raises(ValueError, match="outside of the vocabulary: its ids are 0 to 8"):
        model.generate(source=[[9]], max_new=4)
    with pytest.raises(ValueError, match="beams=61 is larger than the vocabulary"):
        model.generate(source=[[5]], max_new=4, beams=61)
