"""Parameters of modules: made once, then read without tracing their initialisation."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import pytest

from bert_elmo_jax.nn.parameter import parameter


class Scale(nn.Module):
    draw: object = jax.random.normal

    @nn.compact
    def __call__(self, x):
        return x * parameter(self, "scale", self.draw, (x.shape[-1],))


class PlainFlax(nn.Module):
    @nn.compact
    def __call__(self, x):
        return x * self.param("scale", jax.random.normal, (x.shape[-1],))


def test_a_new_parameter_is_the_one_that_flax_makes():
    ours, theirs = (m.init(jax.random.key(1), jnp.ones(3))["params"]["scale"] for m in (Scale(), PlainFlax()))
    assert ours.tolist() == theirs.tolist()


def test_a_parameter_that_exists_is_read_without_its_initialisation():
    def never(key, shape):
        raise AssertionError("initialised again")

    scale = {"params": {"scale": jnp.array([2.0, 3.0])}}
    assert Scale(never).apply(scale, jnp.ones(2)).tolist() == [2.0, 3.0]


def test_a_parameter_of_another_shape_is_refused_by_name_and_shapes():
    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            return Scale(name="inner")(x)

    expected = r"the parameter inner/scale has shape \(3,\); this model expects \(2,\)"
    with pytest.raises(ValueError, match=expected):
        Model().apply({"params": {"inner": {"scale": jnp.ones(3)}}}, jnp.ones(2))
