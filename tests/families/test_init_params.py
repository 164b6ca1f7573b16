"""Fresh parameters and their shapes, for any family."""

import jax

from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.init_params import init_params, init_task_params, param_shapes
from bert_elmo_jax.heads.features import Features
from bert_elmo_jax.heads.task_head import TaskHead

FAMILY = get_family("bert")
CONFIG = FAMILY.config(vocab_size=50, hidden_size=8, num_layers=2, num_heads=2, feed_forward_size=16)


def test_parts_of_a_model():
    params = jax.eval_shape(lambda: init_params(FAMILY, CONFIG, jax.random.key(0), ("mlm",)))
    assert sorted(params) == ["encoder", "mlm"]
    head = TaskHead("tags", 3, Features((1, 2)))
    params = jax.eval_shape(lambda: init_task_params(FAMILY, CONFIG, head, jax.random.key(0)))
    assert sorted(params) == ["encoder", "tag"] and params["tag"]["kernel"].shape == (16, 3)


def test_shapes_of_a_model():
    config = FAMILY.config(**FAMILY.presets["tiny"])
    shapes = param_shapes(FAMILY, config, ("classify",), outputs={"classify": 3})
    assert (shapes["encoder/layer_1/feed_forward/up/kernel"], shapes["classify/bias"]) == ((128, 512), (3,))
    assert set(shapes) - set(param_shapes(FAMILY, config)) == {"classify/kernel", "classify/bias"}


def test_keys_of_parts_never_change():
    """Runs that began earlier must resume: these keys are frozen."""
    from bert_elmo_jax.families.init_params import PARTS, _key_of

    key = jax.random.key(0)
    for name, expected_key in zip(PARTS, jax.random.split(key, 7), strict=True):
        assert (_key_of(name, key) == expected_key).all()
    assert (_key_of("replaced", key) == jax.random.fold_in(key, 2657575671)).all()
