"""Each part of a layer against a few lines of numpy."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from bert_elmo_jax.nn import rotary_angles
from bert_elmo_jax.nn.transformer import Layer, LayerParts

pytestmark = pytest.mark.usefixtures("strict_dtypes")
CONFIG = SimpleNamespace(
    hidden_size=8, num_heads=2, feed_forward_size=12, activation="relu", norm_eps=1e-5, dropout=0.3,
    attention_dropout=0.0, initializer_range=0.5, causal=False, dtype="float32", attention="reference",
)  # fmt: skip
NO_BIAS = {"attention_bias": False, "feed_forward_bias": False, "norm_bias": False}
X = jax.random.normal(jax.random.key(0), (2, 5, 8))
POSITIONS = np.array([[0, 1, 2, 3, 4], [0, 1, 2, 0, 1]])
SEGMENTS = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 2, 2]])


def random_params(layer):
    """Return parameters without zeros and ones, so that a bias or a scale that is not read shows."""
    shapes = jax.eval_shape(layer.init, jax.random.key(0), X)["params"]
    leaves, tree = jax.tree.flatten(shapes)

    random = np.random.default_rng(1)
    return tree.unflatten([random.normal(0, 0.5, leaf.shape).astype(np.float32) for leaf in leaves])


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
    ("parts", "theta"),
    [
        ({}, None), ({"norm_first": True}, None), ({"gated": True}, None), (NO_BIAS, None), ({}, 100.0),
        ({"norm_first": True, "gated": True, **NO_BIAS}, 10_000.0),
    ],
)  # fmt: skip
def test_a_layer_by_hand(parts, theta):
    layer = Layer(CONFIG, LayerParts(**parts))
    params = random_params(layer)
    angles = rotary_angles(POSITIONS, 4, theta) if theta else None
    outputs, _ = jax.jit(layer.apply)({"params": params}, X, SEGMENTS, angles=angles)
    np.testing.assert_allclose(outputs, by_hand(np.asarray(X), params, "norm_first" in parts, theta), atol=2e-5)
    biases = parts.get("norm_bias", True)
    assert all(("bias" in leaf) == biases for part in params.values() for leaf in part.values())


def test_dropout_rates_of_the_parts():
    key, params = jax.random.key(3), jax.jit(Layer(CONFIG).init)(jax.random.key(2), X)

    def run(dropout_key=None, **parts):
        return np.asarray(jax.jit(Layer(CONFIG, LayerParts(**parts)).apply)(params, X, key=dropout_key)[0])

    none = {"attention_rate": 0.0, "output_rate": 0.0}
    np.testing.assert_array_equal(run(key, **none), run())
    for rate in ({"attention_rate": 0.3}, {"output_rate": 0.3}, {"hidden_rate": 0.3}):
        assert not np.allclose(run(key, **(none | rate)), run())
    np.testing.assert_array_equal(run(key, attention_rate=0.3, output_rate=0.3), run(key))


def test_a_first_layer_has_no_norm_before_attention():
    layer = Layer(CONFIG, LayerParts(norm_first=True, first_norm=False))
    params = jax.eval_shape(layer.init, jax.random.key(2), X)["params"]
    assert "norm" not in params["attention"] and "norm" in params["feed_forward"]
