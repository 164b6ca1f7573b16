"""Texts of a translator: a forced last piece, and vocabularies of different sizes."""

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
    arrays = np.load(folder / "generation.npz")
    return [arrays[f"{n}/prompt"].tolist() for n in range(4)]


@pytest.mark.long
def test_the_last_piece_may_be_forced(model, sources):
    config = dataclasses.replace(model.config, forced_end_id=0)
    forced = Translator(config, model.params, None, "forced")
    for beams in (1, 4):
        options = {"source": sources, "beams": beams, "length_penalty": 0.0}
        texts, shorter = forced.generate(max_new=5, **options), model.generate(max_new=4, **options)
        for [text], [before] in zip(texts, shorter, strict=True):
            # The forced piece has the score 0, so the best text is the best shorter one.
            assert text.ids == [*before.ids, 0] and text.score == pytest.approx(before.score, abs=1e-5)
            assert not text.finished and not before.finished  # the rules ended it, not the model


def test_a_target_with_more_pieces_than_the_source():
    config = TransformerConfig(9, 16, 1, 2, 24, 12, target_vocab_size=60, share_embeddings=False, end_ids=(59,))
    shapes, rng = param_shapes(get_family("transformer"), config, ("decoder",), pooler=False), np.random.default_rng(0)
    params = nest({path: rng.normal(size=shape).astype(np.float32) for path, shape in shapes.items()})
    model = Translator(config, params, None, "toy")
    translations = model.generate(source=[[5, 6], [8]], max_new=4, beams=4, n_best=4)
    assert max(piece for texts in translations for text in texts for piece in text.ids) > 9
    with pytest.raises(ValueError, match="outside of the vocabulary: its ids are 0 to 8"):
        model.generate(source=[[9]], max_new=4)
    with pytest.raises(ValueError, match="beams=61 is larger than the vocabulary"):
        model.generate(source=[[5]], max_new=4, beams=61)
