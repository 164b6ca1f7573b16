"""Splash attention, whose kernel runs here in Pallas' interpreter; on a TPU, `experiments.plan` compiles it."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from bert_elmo_jax import train
from bert_elmo_jax.nn import SelfAttention, attention, reference
from bert_elmo_jax.nn.splash import splash

pytestmark = pytest.mark.usefixtures("strict_dtypes")

PACKED = np.array([[1] * 40 + [2] * 50 + [3] * 30 + [0] * 10, [0] * 130])  # the second row is padding


def inputs(b=2, t=130, a=2, h=8):
    return jax.random.normal(jax.random.key(0), (4, b, t, a, h))


def gradients(attend, q, k, v, weights, **options):
    """Return the output and the gradients of a random function of it."""
    out, pull = jax.vjp(lambda *x: attend(*x, **options), q, k, v)
    return out, *pull(weights)


def assert_equal_to_reference(arrays, **options):
    ours, theirs = (
        jax.jit(partial(gradients, attend, **options))(*arrays)
        for attend in (partial(splash, interpret=True), reference)
    )
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, atol=3e-6, rtol=3e-6)


@pytest.mark.parametrize(
    ("sizes", "options"),
    [
        ({"t": 128, "h": 64}, {"lengths": np.array([4, 128])}),  # BERT's heads, and a row that is one block
        ({}, {"segments": PACKED, "causal": True}),
        ({"t": 200}, {"window": 5, "lengths": np.array([140, 200])}),
        pytest.param({"t": 6}, {"lengths": np.array([4, 6])}, marks=pytest.mark.long),
        pytest.param({}, {"segments": PACKED}, marks=pytest.mark.long),
        pytest.param({"t": 640, "h": 64}, {"window": 64, "causal": True}, marks=pytest.mark.long),
        pytest.param({"t": 640, "h": 64}, {"causal": True}, marks=pytest.mark.long),  # five blocks, some skipped
        pytest.param({"t": 100}, {}, marks=pytest.mark.long),
    ],
)
def test_values_and_gradients_equal_the_reference(sizes, options):
    assert_equal_to_reference(inputs(**sizes), **options)


@pytest.mark.parametrize(("rows", "axes"), [(4, (2, 2, 2)), pytest.param(3, (4, 2, 1), marks=pytest.mark.long)])
@pytest.mark.devices
def test_each_device_of_a_mesh_computes_its_rows_and_heads(rows, axes):
    mesh = train.make_mesh(*axes)
    split = P(None, ("data", "fsdp") if rows == 4 else None)
    assert_equal_to_reference(jax.device_put(inputs(b=rows, t=7), NamedSharding(mesh, split)))


def test_bf16_is_close_to_float32():
    q, k, v, _ = inputs(t=9)
    rough = splash(*(x.astype(jnp.bfloat16) for x in (q, k, v)), interpret=True)
    assert rough.dtype == jnp.bfloat16
    np.testing.assert_allclose(rough.astype(jnp.float32), reference(q, k, v), atol=0.03)


def test_a_layer_computes_with_it(monkeypatch):
    monkeypatch.setitem(attention.BUILT_IN, "splash", partial(splash, interpret=True))
    x, lengths = jax.random.normal(jax.random.key(1), (2, 5, 8)), jnp.array([5, 2])
    plain = SelfAttention(num_heads=2)
    variables = jax.jit(plain.init)(jax.random.key(0), x)
    ours, theirs = (
        jax.jit(layer.apply)(variables, x, lengths=lengths)[0]
        for layer in (SelfAttention(num_heads=2, attention="splash"), plain)
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_errors_name_the_remedy():
    q, k, v, _ = inputs(t=3)
    with pytest.raises(ValueError, match=r"no dropout on the attention maps.*0\.1.*attention_dropout=0.*'reference'"):
        splash(q, k, v, dropout=0.1, dropout_key=jax.random.key(0), interpret=True)
    with pytest.raises(ValueError, match=r"kernel for TPUs, but the platform is cpu: use .*'reference'"):
        splash(q, k, v)
    with pytest.raises(ValueError, match="both segments and lengths"):
        splash(q, k, v, jnp.ones((2, 3), jnp.int32), lengths=jnp.array([1, 2]), interpret=True)
    layer = SelfAttention(num_heads=2, attention="splash")
    with pytest.raises(ValueError, match="splash attention cannot return the attention maps"):
        layer.init(jax.random.key(0), jnp.ones((1, 3, 8)), maps=True)
