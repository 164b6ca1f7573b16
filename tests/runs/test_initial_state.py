"""The schedule and the optimizer of a config: Adam's fields, and the width that `noam` needs."""

import jax.numpy as jnp
import optax
import pytest
from ml_collections import ConfigDict

from bert_elmo_jax import optim
from bert_elmo_jax.runs.field_ranges import check_fields
from bert_elmo_jax.runs.initial_state import build_optimizer, build_schedule
from experiments.configs import pretraining


def options(**changed):
    c = pretraining.fields("bert", optim_model())
    c.optimizer.update(changed)
    return c.optimizer


def optim_model():
    from bert_elmo_jax.families.bert.config import BertConfig

    return BertConfig(hidden_size=8, num_heads=2)


def first_update(method):
    params = {"kernel": jnp.ones(2)}
    return method.update({"kernel": jnp.array([0.1, 1e-8])}, method.init(params), params)[0]["kernel"]


@pytest.mark.parametrize("name", ["bert_adam", "adamw", "lamb"])
def test_fields_of_adam(name):
    clip = {} if name == "lamb" else {"clip": 5.0}
    o = options(name=name, b1=0.7, b2=0.98, eps=1e-3, **clip)
    same = {"b1": 0.7, "b2": 0.98, "eps": 1e-3, "decay": 0.01} | clip
    expected = first_update(getattr(optim, name)(0.1, **same))
    assert first_update(build_optimizer(o, optax.constant_schedule(0.1))).tolist() == expected.tolist()
    default = first_update(build_optimizer(options(name=name, **clip), optax.constant_schedule(0.1)))
    assert default.tolist() != expected.tolist()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"b2": 1.0}, r"config.optimizer.b2=1.0: expected a number from 0 to below 1"),
        ({"eps": 0.0}, r"config.optimizer.eps=0.0: expected a number above 0"),
        ({"name": "adagrad", "b1": 0.9}, r"config.optimizer has b1, which adagrad does not have"),
        ({"name": "adagrad", "decay": 0.1}, r"config.optimizer.decay=0.1: adagrad decays no weights; set it to 0"),
        ({"name": "row_sgd", "decay": 0.1}, r"config.optimizer.decay=0.1: row_sgd decays no weights; set it to 0"),
        ({"name": "lamb", "clip": 0.5}, r"config.optimizer.clip=0.5: lamb divides gradients by their norm; set it to"),
    ],
)
def test_wrong_fields(changed, message):
    with pytest.raises(ValueError, match=message):
        check_fields(ConfigDict({"optimizer": options(**changed)}))
        build_optimizer(options(**changed), optax.constant_schedule(0.1))


@pytest.mark.parametrize(("name", "fields"), [("adagrad", {}), ("adagrad", {"decay": 0.0}), ("lamb", {"clip": 1e9})])
def test_fields_of_other_optimizers_may_mean_nothing(name, fields):
    build_optimizer(options(name=name, **fields), optax.constant_schedule(0.1))


@pytest.mark.parametrize("warmup", [0.0, 20.0])
def test_a_triangle_without_a_rise_or_fall_names_the_field(warmup):
    o = options(schedule="slanted_triangular", warmup=warmup)
    with pytest.raises(ValueError, match=rf"config.optimizer.warmup={warmup:g} in a run of 20 steps: slanted_tri"):
        build_schedule(o, 20)


def test_noam_takes_the_width_of_the_model():
    o = options(schedule="noam", learning_rate=2.0, warmup=4000.0)
    rate = build_schedule(o, 100_000, width=512)
    assert float(rate(4000 - 1)) == pytest.approx(2 * 512**-0.5 * 4000**-0.5, rel=1e-6)
    assert float(build_schedule(options(schedule="noam", learning_rate=1.0, warmup=0.1), 1000, width=64)(99)) == (
        pytest.approx((64 * 100) ** -0.5, rel=1e-6)  # a tenth of the steps
    )
    with pytest.raises(ValueError, match=r"schedule='noam' scales with the width .*: use inverse_square_root"):
        build_schedule(o, 100_000)
