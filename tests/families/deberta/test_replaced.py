"""Replaced-token pretraining of DeBERTa: the generator's tables learn from its own term alone, and files."""

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families.deberta.config import DebertaConfig
from bert_elmo_jax.families.deberta.family import FAMILY
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.families.replaced import take_generator
from bert_elmo_jax.families.replaced_objective import replaced_loss
from bert_elmo_jax.inference.convert import convert
from bert_elmo_jax.inference.run_directory import write_run_directory
from bert_elmo_jax.text import load_tokenizer

CONFIG = DebertaConfig(
    261, 16, 2, 2, 24, 16, position_buckets=8, initializer_range=0.5, dropout=0.0, attention_dropout=0.0,
    embedding_difference=True,
)  # fmt: skip


@pytest.fixture(scope="module")
def params():
    heads = ("generator", "replaced")
    fresh = jax.jit(lambda: init_params(FAMILY, CONFIG, jax.random.key(0), heads, pooler=False))()
    return jax.device_get(fresh)


def batch():
    tokens = np.random.default_rng(0).integers(5, 261, (4, 10)).astype(np.int32)
    positions = np.tile(np.array([1, 3, 5], np.int32), (4, 1))
    targets = np.take_along_axis(tokens, positions, axis=1)
    np.put_along_axis(tokens, positions, 260, axis=1)
    return {
        "tokens": tokens, "types": np.zeros_like(tokens), "segments": np.ones_like(tokens),
        "positions": np.tile(np.arange(10, dtype=np.int32), (4, 1)), "mlm_positions": positions,
        "mlm_targets": targets, "mlm_weights": np.ones((4, 3), np.float32),
    }  # fmt: skip


def test_each_network_trains_its_own_table(params):
    """The generator has half of the layers, and a norm of its own below them."""
    assert set(params["encoder"]["embeddings"]) == {"word", "difference", "norm"}
    assert not params["encoder"]["embeddings"]["difference"].any()
    generator = params["generator"]["encoder"]
    assert set(generator) == {"embeddings", "layer_0", "relative"} and set(generator["embeddings"]) == {"norm"}

    @jax.jit
    def gradients(params):
        loss = replaced_loss(FAMILY, CONFIG)
        return [jax.grad(lambda p, term=term: loss(p, batch(), None, None)[0][term][0])(params)
                for term in ("mlm", "replaced")]  # fmt: skip

    of_generator, of_discriminator = jax.device_get(gradients(params))
    for gradient, trained, still in ((of_generator, "word", "difference"), (of_discriminator, "difference", "word")):
        assert gradient["encoder"]["embeddings"][trained].any()
        assert not gradient["encoder"]["embeddings"][still].any()
    assert not any(leaf.any() for leaf in jax.tree.leaves(of_discriminator["generator"]))


@pytest.mark.long
def test_a_run_is_its_discriminator_and_converts_to_both(params, goldens, tmp_path):
    tree = jax.tree.map(np.copy, params)
    tables = tree["encoder"]["embeddings"]
    tables["difference"] = np.random.default_rng(1).normal(size=tables["word"].shape).astype(np.float32)
    tokenizer = load_tokenizer(goldens / "deberta_v3_tiny")
    write_run_directory(tmp_path / "run", CONFIG, tree, tokenizer, run={})
    ids = np.arange(4, 14, dtype=np.int32)[None]
    run = load(tmp_path / "run")
    assert run.heads == ("generator", "replaced") and run.forward(ids).logits.shape == ids.shape
    convert(str(tmp_path / "run"), tmp_path / "out")
    discriminator, generator = load(tmp_path / "out"), load(tmp_path / "out" / "generator")
    np.testing.assert_allclose(discriminator.forward(ids).last, run.forward(ids).last, atol=1e-5)
    jax.tree.map(np.testing.assert_array_equal, generator.params, take_generator(CONFIG, tree)[1])
