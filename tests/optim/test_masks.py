"""Tests of rules on paths: weight decay, freezing, layer-wise learning rates."""

import jax
import numpy as np
import optax
import pytest

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.family import FAMILY as BERT
from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.families.elmo.family import FAMILY as ELMO
from bert_elmo_jax.families.elmo.model import init_elmo_params
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.optim import adamw, bert_adam, decayed, depths, freeze, matches, scale_by_depth
from bert_elmo_jax.optim.paths import path_name


def by_name(tree):
    return {path_name(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def filled(make):
    """Return a tree with the shapes of `make`, all ones."""
    return jax.tree.map(lambda leaf: np.ones(leaf.shape, np.float32), jax.eval_shape(make))


@pytest.fixture(scope="module")
def bert():
    config = BertConfig(vocab_size=20, hidden_size=4, num_layers=11, num_heads=2, feed_forward_size=8)
    return filled(lambda: init_params(BERT, config, jax.random.key(0), ("mlm", "nsp")))


@pytest.fixture(scope="module")
def elmo():
    config = ElmoConfig.preset("toy", vocab_size=20, num_layers=2)
    return filled(lambda: init_elmo_params(config, jax.random.key(0), lm=True))


def test_biases_with_a_name_before_do_not_decay_and_the_table_of_mpnet_does():
    names = ("decoder/output_bias", "context/word_bias", "actions_bias", "relative_bias", "bias_table")
    assert by_name(decayed(dict.fromkeys(names, 0))) == {name: name in names[-2:] for name in names}


def test_bert_decays_only_matrices_and_embeddings(bert):
    mask = by_name(decayed(bert))
    assert all(mask[f"encoder/embeddings/{table}"] for table in ("word", "position", "type"))
    assert mask["encoder/layer_3/attention/query/kernel"] and mask["encoder/pooler/kernel"] and mask["mlm/dense/kernel"]
    excluded = {name for name, decays in mask.items() if not decays}
    assert {"mlm/bias", "mlm/norm/scale", "encoder/embeddings/norm/scale"} <= excluded
    assert excluded == {name for name in mask if name.endswith(("bias", "norm/scale"))}


def test_elmo_decays_no_biases_and_mixtures(elmo):
    elmo = {**elmo, "mix": {"mix_0": {"weights": np.zeros(3), "gamma": np.ones(())}}}
    excluded = {name for name, decays in by_name(decayed(elmo)).items() if not decays}
    assert {"lm/bias", "mix/mix_0/weights", "mix/mix_0/gamma", "encoder/forward/layer_0/bias"} <= excluded
    assert all(name.endswith("bias") or "mix" in name for name in excluded)
    assert "encoder/token/highway_0/carry/bias" in excluded or "highway" not in str(elmo)


def test_patterns_match_whole_paths(bert):
    chosen = by_name(matches(bert, ["encoder/layer_1/.*", ".*/word"]))
    assert chosen["encoder/layer_1/feed_forward/up/kernel"] and chosen["encoder/embeddings/word"]
    assert not chosen["encoder/layer_10/feed_forward/up/kernel"] and not chosen["mlm/bias"]
    with pytest.raises(ValueError, match=r"'encoder/embedding/\.\*' matches no parameter.*encoder/embeddings/"):
        matches(bert, ["encoder/.*", "encoder/embedding/.*"], each_must=True)


def odd_numbers(array):
    """Return values that adding 0.0 would change."""
    odd = np.full_like(array, -0.0)
    odd[..., :1] = 1e-37
    return odd


def bits(tree):
    return {name: np.asarray(leaf).view(np.uint32) for name, leaf in by_name(tree).items()}


@pytest.mark.parametrize("make", [lambda: adamw(0.1), lambda: bert_adam(0.1), lambda: optax.sgd(0.1, momentum=0.9)])
def test_frozen_parameters_are_unchanged_without_state(bert, make):
    encoder = {name: bert["encoder"][name] for name in ("embeddings", "layer_0", "layer_5", "layer_6", "pooler")}
    params = jax.tree.map(odd_numbers, {"encoder": encoder, "mlm": bert["mlm"]})
    patterns = ["encoder/embeddings/.*", "encoder/layer_[0-5]/.*"]
    optimizer = freeze(make(), patterns)
    frozen = by_name(matches(params, patterns))
    state = jax.jit(optimizer.init)(params)
    assert not any("embeddings" in path_name(path) for path, _ in jax.tree_util.tree_leaves_with_path(state))

    @jax.jit
    def step(params, state, gradients):
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    after = params
    gradients = jax.tree.map(np.ones_like, params)
    gradients["encoder"]["embeddings"]["word"] *= np.nan  # never read
    for _ in range(3):
        after, state = step(after, state, gradients)
    for name, before in bits(params).items():
        assert np.array_equal(before, bits(after)[name]) == frozen[name], name
        assert np.isfinite(by_name(after)[name]).all()


def test_global_norm_excludes_frozen_gradients():
    params = {"a": np.ones(2, np.float32), "b": np.ones(2, np.float32)}
    gradients = {"a": np.full(2, 100.0, np.float32), "b": np.array([0.3, 0.4], np.float32)}
    optimizer = freeze(optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(1.0)), ["a"])
    updates, _ = jax.jit(lambda grads, params: optimizer.update(grads, optimizer.init(params), params))(
        gradients, params
    )
    np.testing.assert_allclose(updates["b"], [-0.3, -0.4])
    with pytest.raises(ValueError, match=r"'c/\.\*' matches no parameter"):
        freeze(optax.sgd(1.0), ["c/.*"]).init(params)


def test_depths_of_bert_and_elmo(bert, elmo):
    of = by_name(depths(bert, BERT.depth_of))
    assert of["encoder/embeddings/word"] == of["encoder/embeddings/norm/scale"] == 0
    assert of["encoder/layer_0/feed_forward/up/kernel"] == 1 and of["encoder/layer_10/attention/norm/bias"] == 11
    assert of["encoder/pooler/kernel"] == of["mlm/bias"] == of["nsp/kernel"] == 12
    updates, _ = jax.jit(lambda tree: scale_by_depth(0.5, BERT.depth_of).update(tree, optax.EmptyState()))(bert)
    for name, update in by_name(updates).items():
        np.testing.assert_array_equal(update, 0.5 ** (12 - of[name]))
    of = by_name(depths({**elmo, "tagger": {"layer_0": {"kernel": np.ones(2)}}}, ELMO.depth_of))
    assert {depth for name, depth in of.items() if "/token/" in name} == {0}
    assert of["encoder/forward/layer_1/projection"] == of["encoder/backward/layer_1/bias"] == 2
    assert of["lm/bias"] == of["tagger/layer_0/kernel"] == 3
    with pytest.raises(ValueError, match=r"the first paths are a/b"):
        depths({"a": {"b": 1}}, BERT.depth_of)
