import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_elmo_jax.nn import SelfAttention, attention_maps, fused, reference
from bert_elmo_jax.nn.attention import visible

pytestmark = pytest.mark.usefixtures("strict_dtypes")

IMPLEMENTATIONS = [reference, fused]


@functools.partial(jax.jit, static_argnums=0, static_argnames=("causal", "window"))
def compute(attend, query, key, value, segments=None, **options):
    return attend(query, key, value, segments, **options)


def inputs(b=2, t=6, a=3, h=4, seed=0, dtype=jnp.float32):
    return tuple(jax.random.normal(jax.random.key(seed), (3, b, t, a, h), dtype))


def by_hand(query, key, value, segments, causal, window=None):
    """Compute attention by four loops in float64."""
    query, key, value = (np.asarray(x, np.float64) for x in (query, key, value))
    out = np.zeros_like(query)
    for b, i, a in np.ndindex(query.shape[:3]):
        places = [j for j in range(query.shape[1]) if segments[b][i] == segments[b][j] and (j <= i or not causal)]
        places = places if window is None else [j for j in places if abs(i - j) <= window]
        scores = np.array([query[b, i, a] @ key[b, j, a] for j in places]) / np.sqrt(query.shape[-1])
        weights = np.exp(scores - scores.max())
        out[b, i, a] = sum(w * value[b, j, a] for w, j in zip(weights / weights.sum(), places, strict=True))
    return out


@pytest.mark.parametrize("attend", IMPLEMENTATIONS)
@given(
    segments=st.lists(st.lists(st.integers(0, 3), min_size=6, max_size=6), min_size=2, max_size=2), causal=st.booleans()
)
@settings(max_examples=15)
def test_matches_loops_with_any_segments(attend, segments, causal):
    q, k, v = inputs()
    ours = compute(attend, q, k, v, np.array(segments), causal=causal)
    np.testing.assert_allclose(ours, by_hand(q, k, v, segments, causal), atol=2e-6)


@pytest.mark.parametrize("attend", IMPLEMENTATIONS)
@pytest.mark.parametrize("causal", [False, True])
def test_a_window_equals_loops(attend, causal):
    """It holds both ends; without segments, with them, and with lengths."""
    q, k, v = inputs()
    full, packed, short = [[1] * 6] * 2, [[1, 1, 1, 2, 2, 0]] * 2, [[1] * 6, [1] * 4 + [0] * 2]
    for segments, how in (
        (full, {}),
        (packed, {"segments": jnp.array(packed)}),
        (short, {"lengths": jnp.array([6, 4])}),
    ):
        for window in (1, 2):
            ours = compute(attend, q, k, v, **how, causal=causal, window=window)
            np.testing.assert_allclose(ours, by_hand(q, k, v, segments, causal, window), atol=2e-6)


def test_masks_by_hand():
    mask = visible(5, np.array([[1, 1, 2, 2, 0], [1, 1, 1, 0, 0]]), None, causal=False)
    assert mask.astype(int).tolist() == [
        [[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1]],
        [[1, 1, 1, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 0, 0], [0, 0, 0, 1, 1], [0, 0, 0, 1, 1]],
    ]
    mask = visible(3, np.array([[1, 1, 0]]), None, causal=True)
    assert mask.astype(int).tolist() == [[[1, 0, 0], [1, 1, 0], [0, 0, 1]]]
    assert visible(3, None, None, causal=False) is None
    assert visible(2, None, None, causal=True).astype(int).tolist() == [[[1, 0], [1, 1]]]


@pytest.mark.parametrize("attend", IMPLEMENTATIONS)
@pytest.mark.parametrize("causal", [False, True])
def test_lengths_equal_segments_and_padding_does_not_affect_real_tokens(attend, causal):
    q, k, v = inputs()
    segments = np.array([[1, 1, 1, 1, 0, 0], [1, 1, 0, 0, 0, 0]])
    by_lengths = compute(attend, q, k, v, lengths=np.array([4, 2]), causal=causal)
    by_segments = compute(attend, q, k, v, segments, causal=causal)
    np.testing.assert_array_equal(by_lengths, by_segments)
    loud = (np.where(segments[..., None, None] == 0, np.float32(1e9), x) for x in (q, k, v))
    np.testing.assert_array_equal(
        np.asarray(compute(attend, *loud, segments, causal=causal))[segments > 0], np.asarray(by_segments)[segments > 0]
    )


@functools.partial(jax.jit, static_argnums=(0, 5))
def value_and_gradients(attend, query, key, value, segments=None, causal=False):
    def total(*qkv):
        return jnp.square(attend(*qkv, segments, causal=causal)).sum()

    return jax.value_and_grad(total, argnums=(0, 1, 2))(query, key, value)


@pytest.mark.parametrize("causal", [False, True])
def test_fused_equals_reference_values_and_gradients(causal):
    for segments in (None, np.array([[1, 1, 2, 2, 2, 0], [1, 1, 1, 1, 1, 1]])):
        ours, theirs = (value_and_gradients(attend, *inputs(), segments, causal) for attend in IMPLEMENTATIONS)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), ours, theirs)


@pytest.mark.parametrize("attend", IMPLEMENTATIONS)
def test_rows_of_padding_have_finite_values_and_gradients(attend):
    outputs = value_and_gradients(attend, *inputs(), np.array([[0] * 6, [1, 1, 1, 0, 0, 0]]))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(outputs))


def test_maps_sum_to_one_in_float32():
    q, k, _ = inputs(dtype=jnp.bfloat16)
    maps = attention_maps(q, k, jnp.array([[1, 1, 1, 2, 2, 0]] * 2))
    assert maps.dtype == jnp.float32
    np.testing.assert_allclose(maps.sum(-1), 1, rtol=1e-6)
    assert (maps[0, :, 0, 3:] == 0).all()


@pytest.mark.parametrize("attend", IMPLEMENTATIONS)
def test_bf16_is_close_to_float32(attend):
    exact, rough = inputs(), [x.astype(jnp.bfloat16) for x in inputs()]
    output = compute(attend, *rough)
    assert output.dtype == jnp.bfloat16
    np.testing.assert_allclose(output.astype(jnp.float32), compute(attend, *exact), atol=0.03)


def test_attention_dropout_keeps_the_mean():
    q, k, v = inputs(b=1, t=4)
    keys = jax.random.split(jax.random.key(1), 4000)
    drawn = jax.jit(jax.vmap(lambda key: reference(q, k, v, dropout=0.3, dropout_key=key)))(keys)
    np.testing.assert_allclose(drawn.mean(0), reference(q, k, v), atol=0.06)
    assert drawn.std(0).min() > 0.05


def test_fused_raises_on_unsupported_options():
    q, k, v = inputs()
    with pytest.raises(ValueError, match=r"no dropout on the attention maps.*0\.1.*attention_dropout=0.*'reference'"):
        fused(q, k, v, dropout=0.1, dropout_key=jax.random.key(0))
    with pytest.raises(ValueError, match=r"16 bits.*float32.*dtype='bfloat16'"):
        fused(q, k, v, platform="gpu")
    layer = SelfAttention(num_heads=2, attention="fused")
    with pytest.raises(ValueError, match="cannot return the attention maps"):
        layer.init(jax.random.key(0), jnp.ones((1, 3, 8)), maps=True)


def test_fused_uses_cudnn_on_a_gpu(monkeypatch):
    calls = []

    def spy(query, key, value, **options):
        calls.append(options)
        return query

    monkeypatch.setattr(jax.nn, "dot_product_attention", spy)
    q, k, v = inputs(dtype=jnp.bfloat16)
    segments, lengths = jnp.array([[1, 1, 1, 2, 2, 0]] * 2), jnp.array([6, 3])
    fused(q, k, v, platform="gpu")
    fused(q, k, v, causal=True, platform="gpu")
    padded = fused(q, k, v, lengths=lengths, platform="gpu")
    fused(q, k, v, segments, causal=True, platform="gpu")
    assert [o["implementation"] for o in calls] == ["cudnn"] * 4
    assert [o["is_causal"] for o in calls] == [False, True, False, False]
    assert [o.get("mask") is None for o in calls] == [True, True, True, False]
    assert calls[2]["query_seq_lengths"].tolist() == calls[2]["key_value_seq_lengths"].tolist() == [6, 3]
    assert calls[3]["mask"].shape == (2, 1, 6, 6)
    # The spy returns the queries. What cuDNN leaves undefined at padding reaches neither outputs nor gradients.
    np.testing.assert_array_equal(padded[0], q[0])
    np.testing.assert_array_equal(padded[1, :3], q[1, :3])
    assert not padded[1, 3:].any()
    gradient = jax.grad(lambda x: fused(x, k, v, lengths=lengths, platform="gpu").sum().astype(jnp.float32))(q)
    assert gradient[1, :3].all() and not gradient[1, 3:].any()


def test_segments_with_lengths_raise():
    q, k, v = inputs()
    for attend in IMPLEMENTATIONS:
        for platform in {reference: [{}], fused: [{}, {"platform": "gpu"}]}[attend]:
            rough = [x.astype(jnp.bfloat16) for x in (q, k, v)]
            with pytest.raises(ValueError, match="both segments and lengths"):
                attend(*rough, jnp.ones((2, 6), jnp.int32), lengths=jnp.array([1, 2]), **platform)


def test_a_scale_multiplies_the_scores():
    x = jax.random.normal(jax.random.key(0), (1, 4, 6))
    module = SelfAttention(num_heads=2, stddev=0.5)
    variables = jax.jit(module.init)(jax.random.key(1), x)
    apply = jax.jit(functools.partial(module.apply, maps=True))
    plain, maps = apply(variables, x)
    same, _ = apply(variables, x, scale=jnp.float32(1.0))
    np.testing.assert_allclose(plain, same, rtol=1e-6)
    _, doubled = apply(variables, x, scale=jnp.float32(2.0))
    np.testing.assert_allclose(doubled, maps**2 / (maps**2).sum(-1, keepdims=True), atol=1e-6)
