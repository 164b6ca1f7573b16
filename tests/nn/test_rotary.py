import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.nn import SelfAttention, rotary_angles, rotate

pytestmark = pytest.mark.usefixtures("strict_dtypes")


def scores(positions, theta=100.0):
    """Return the products of one query and one key at two positions, in 6 dimensions."""
    q, k = jax.random.normal(jax.random.key(0), (2, 1, 1, 1, 6))
    at = [rotary_angles(np.array([[place]]), 6, theta) for place in positions]
    return float((rotate(q, at[0]) * rotate(k, at[1])).sum())


def test_products_depend_on_the_distance_alone():
    assert scores((0, 3)) == pytest.approx(scores((17, 20)), abs=1e-5)
    assert abs(scores((0, 3)) - scores((0, 4))) > 1e-3
    assert abs(scores((0, 3)) - scores((3, 0))) > 1e-3
    assert abs(scores((0, 3)) - scores((0, 3), theta=1e4)) > 1e-3


def test_by_hand():
    """Element i turns with element i + H/2, the first pair by the position itself."""
    x = jnp.arange(1.0, 5.0).reshape(1, 1, 1, 4)
    turned = rotate(x, rotary_angles(np.array([[2]]), 4, theta=100.0))[0, 0, 0]
    c, s, d, t = np.cos(2), np.sin(2), np.cos(0.2), np.sin(0.2)
    np.testing.assert_allclose(turned, [c - 3 * s, 2 * d - 4 * t, 3 * c + s, 4 * d + 2 * t], rtol=1e-6)


def test_lengths_stay_and_so_does_the_type():
    x = jax.random.normal(jax.random.key(0), (2, 5, 3, 8))
    angles = rotary_angles(np.arange(10).reshape(2, 5), 8)
    np.testing.assert_allclose(jnp.linalg.norm(rotate(x, angles), axis=-1), jnp.linalg.norm(x, axis=-1), rtol=1e-5)
    assert rotate(x.astype(jnp.bfloat16), angles).dtype == jnp.bfloat16


def test_a_head_of_odd_size():
    with pytest.raises(ValueError, match="a head of 5 elements cannot be rotated in pairs: use an even size"):
        rotary_angles(np.zeros((1, 1), np.int32), 5)


def test_attention_that_rotates_reads_positions():
    x = jnp.ones((1, 4, 8)) * jnp.arange(1.0, 5.0)[None, :, None]
    layer = SelfAttention(num_heads=2, stddev=0.5)
    variables = layer.init(jax.random.key(0), x)
    near, far = (layer.apply(variables, x, angles=rotary_angles(np.arange(4)[None] * step, 4))[0] for step in (1, 9))
    moved, _ = layer.apply(variables, x, angles=rotary_angles(np.array([[5, 6, 7, 8]]), 4))
    np.testing.assert_allclose(moved, near, atol=1e-4)
    assert np.abs(far - near).max() > 1e-3
