"""Each choice of the layer against a few lines of numpy, and the defaults against the original layer."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from bert_elmo_jax.nn import rotary_angles
from bert_elmo_jax.nn.modern_layer import ModernLayer
from bert_elmo_jax.nn.transformer import Layer

pytestmark = pytest.mark.usefixtures("strict_dtypes")
ORIGINAL = {"norm": "post", "feed_forward": "dense", "layer_bias": True}
X = jax.random.normal(jax.random.key(0), (2, 5, 8))
POSITIONS = np.array([[0, 1, 2, 3, 4], [0, 1, 2, 0, 1]])
SEGMENTS = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 2, 2]])


def config(**changes):
    return SimpleNamespace(
        **ORIGINAL | {"hidden_size": 8, "num_heads": 2, "feed_forward_size": 12, "activation": "relu", "norm_eps": 1e-5}
        | {"dropout": 0.3, "attention_dropout": 0.0, "initializer_range": 0.5, "causal": False, "dtype": "float32"}
        | {"implementation": "reference"} | changes
    )  # fmt: skip


def random_params(c):
    """Return parameters without zeros and ones, so that a bias or a scale that is not read shows."""
    shapes = jax.eval_shape(ModernLayer(c).init, jax.random.key(0), X)["params"]
    leaves, tree = jax.tree.flatten(shapes)
    keys = jax.random.split(jax.random.key(1), len(leaves))
    return tree.unflatten([0.5 * jax.random.normal(key, leaf.shape) for key, leaf in zip(keys, leaves, strict=True)])


def dense(x, p):
    return x @ np.asarray(p["kernel"]) + np.asarray(p.get("bias", 0.0))


def norm(x, p):
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return x * np.asarray(p["scale"]) + np.asarray(p.get("bias", 0.0))


def turn(x, theta):
    """Rotate [B, T, 4]: the pairs are (0, 2) and (1, 3)."""
    out = np.empty_like(x)
    for pair in (0, 1):
        angle = POSITIONS * theta ** (-pair / 2)
        a, b = x[..., pair], x[..., pair + 2]
        out[..., pair], out[..., pair + 2] = (
            a * np.cos(angle) - b * np.sin(angle),
            b * np.cos(angle) + a * np.sin(angle),
        )
    return out


def attend(x, p, theta):
    query, key, value = (dense(x, p[name]) for name in ("query", "key", "value"))
    out = np.zeros_like(x)
    for head in (slice(0, 4), slice(4, 8)):
        q, k = query[..., head], key[..., head]
        if theta:
            q, k = turn(q, theta), turn(k, theta)
        scores = np.exp(q @ k.transpose(0, 2, 1) / 2) * (SEGMENTS[:, :, None] == SEGMENTS[:, None, :])
        out[..., head] = scores / scores.sum(-1, keepdims=True) @ value[..., head]
    return dense(out, p["output"])


def feed(x, p):
    if "gate" in p:
        return dense(np.maximum(dense(x, p["gate"]), 0) * dense(x, p["up"]), p["down"])
    return dense(np.maximum(dense(x, p["up"]), 0), p["down"])


def by_hand(x, params, pre, theta):
    for part, function in (("attention", lambda x, p: attend(x, p, theta)), ("feed_forward", feed)):
        p = params[part]
        x = x + function(norm(x, p["norm"]), p) if pre else norm(x + function(x, p), p["norm"])
    return x


@pytest.mark.parametrize(
    ("changes", "theta"),
    [
        ({}, None), ({"norm": "pre"}, None), ({"feed_forward": "gated"}, None), ({"layer_bias": False}, None),
        ({}, 100.0), ({"norm": "pre", "feed_forward": "gated", "layer_bias": False}, 10_000.0),
    ],
)  # fmt: skip
def test_a_layer_by_hand(changes, theta):
    c = config(**changes)
    params = random_params(c)
    angles = rotary_angles(POSITIONS, 4, theta) if theta else None
    found, _ = ModernLayer(c).apply({"params": params}, X, SEGMENTS, angles=angles)
    np.testing.assert_allclose(found, by_hand(np.asarray(X), params, c.norm == "pre", theta), atol=2e-5)
    assert all(("bias" in leaf) == c.layer_bias for part in params.values() for leaf in part.values())


def test_by_default_it_is_the_original_layer():
    c, key = config(attention_dropout=0.2), jax.random.key(3)
    params = Layer(c).init(jax.random.key(2), X)
    jax.tree.map(np.testing.assert_array_equal, params, ModernLayer(c).init(jax.random.key(2), X))
    for dropout_key in (None, key):
        ours, theirs = (kind(c).apply(params, X, SEGMENTS, None, dropout_key, True) for kind in (ModernLayer, Layer))
        jax.tree.map(np.testing.assert_array_equal, ours, theirs)
    gated = config(feed_forward="gated", norm="pre")
    params = ModernLayer(gated).init(jax.random.key(2), X)
    dropped, _ = ModernLayer(gated).apply(params, X, key=key)
    assert not np.allclose(dropped, ModernLayer(gated).apply(params, X)[0])
