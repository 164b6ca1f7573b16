"""An attention of one's own: a file outside the package registers it, a run trains with it, and `load` keeps it."""

import dataclasses
import json
import runpy

import jax
import numpy as np
import pytest
from ml_collections import ConfigDict

from bert_elmo_jax import load
from bert_elmo_jax.families import get_family
from bert_elmo_jax.nn import attention
from bert_elmo_jax.nn.attention import BUILT_IN, choose_attention, get_attention, register_attention
from bert_elmo_jax.runs.config_files import parse_values, read_config, set_field
from bert_elmo_jax.runs.initial_state import adopt_config
from bert_elmo_jax.runs.pretraining import pretrain

SIZES = {
    "vocab_size": 20, "hidden_size": 8, "num_layers": 2, "num_heads": 2, "feed_forward_size": 8, "max_positions": 9,
}  # fmt: skip
# The whole file of a user: it registers a function, and is the config of a run.
MINE = '''
import jax.numpy as jnp

from bert_elmo_jax.nn.attention import register_attention, visible
from experiments.configs.bert import get_config

def linear(query, key, value, segments=None, *, lengths=None, causal=False, window=None, dropout=0.0, dropout_key=None):
    """Linear attention: elu(x) + 1 in place of the softmax."""
    query, key = (jnp.where(x > 0, x + 1, jnp.exp(x)) for x in (query, key))
    maps = jnp.einsum("btah,bsah->bats", query, key)
    sees = visible(query.shape[1], segments, lengths, causal, window)
    maps = maps if sees is None else jnp.where(sees[:, None], maps, 0)
    return jnp.einsum("bats,bsah->btah", maps / maps.sum(-1, keepdims=True), value)

register_attention("mine", linear)
'''


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.setattr(attention, "REGISTERED", {})
    file = tmp_path / "my_attention.py"
    file.write_text(MINE)
    runpy.run_path(str(file))
    return file


def test_a_run_trains_with_it_and_load_keeps_it(mine, tmp_path):
    config, _ = read_config(f"{mine}:tiny")
    set_field(config, "model.attention", "mine")
    config.update(data="toyworld", steps=2, batch_size=4, length=16, checkpoint_every=2, eval_every=2, eval_batches=1)
    config.model.update(num_layers=1, hidden_size=16, num_heads=2, feed_forward_size=16)
    config.toyworld.update(topics=2, documents=30, vocab_size=300, language="en")
    assert pretrain(config, tmp_path / "run") == 0
    assert json.loads((tmp_path / "run" / "model.json").read_text())["config"]["attention"] == "mine"
    model = load(tmp_path / "run")
    assert model.config.attention == "mine"
    reference = dataclasses.replace(model.config, attention="reference")
    outputs = [
        jax.jit(get_family("bert").build(c).apply)({"params": model.params["encoder"]}, np.array([[5, 6, 7]])).last
        for c in (model.config, reference)
    ]
    assert not np.allclose(*outputs)
    attention.REGISTERED.clear()
    with pytest.raises(
        ValueError, match=r"'mine'; it is one of reference, fused, splash.*import the file that registers"
    ):
        load(tmp_path / "run")


@pytest.mark.parametrize(
    "name",
    ["bert", "roberta", "distilbert", "electra", "gpt", "modernbert", "mpnet", "albert", "eurobert", "transformer"],
)
def test_every_family_computes_with_it(name, monkeypatch):
    calls = []

    def attend(query, key, value, segments=None, **options):
        calls.append(query.shape)
        return value

    monkeypatch.setattr(attention, "REGISTERED", {})
    register_attention("mine", attend)
    family = get_family(name)
    module, tokens = family.build(family.config(**SIZES, attention="mine")), np.array([[5, 6, 7, 8]])
    params = jax.eval_shape(module.init, jax.random.key(0), tokens)
    calls.clear()
    jax.eval_shape(module.apply, params, tokens)
    assert calls == [(1, 4, 2, 4)] * 2  # in each layer


def test_packed_sequences_stay_apart(mine):
    q, k, v = jax.random.normal(jax.random.key(0), (3, 1, 5, 2, 4))
    packed = get_attention("mine")(q, k, v, np.array([[1, 1, 2, 2, 2]]))
    np.testing.assert_allclose(packed[:, :2], get_attention("mine")(q[:, :2], k[:, :2], v[:, :2]), rtol=1e-6)


def test_names_of_the_package_are_refused():
    for name in (*BUILT_IN, "causal"):
        with pytest.raises(ValueError, match=f"attention '{name}' is a name of this package"):
            register_attention(name, attention.reference)


def test_a_function_without_the_arguments_is_refused_when_it_is_registered():
    with pytest.raises(TypeError, match=r"attention 'plain': got an unexpected .*'lengths'; it is called as .*options"):
        register_attention("plain", lambda query, key, value, segments=None: value)


@pytest.mark.parametrize(
    ("stored", "requested", "chosen"),
    [
        ("reference", None, "reference"), ("fused", None, "reference"), ("reference", "fused", "fused"),
        ("mine", None, "mine"), ("mine", "reference", "mine"), ("mine", "other", "other"),
    ],
)  # fmt: skip
def test_a_registered_function_stays_with_its_weights(stored, requested, chosen, mine):
    register_attention("other", attention.reference)
    assert choose_attention(stored, requested) == chosen
    if requested is not None:
        config = get_family("bert").config(**SIZES, attention=stored)
        assert adopt_config(config, {"attention": requested}).attention == chosen


def test_earlier_names_of_the_fields():
    bert = get_family("bert").config
    assert bert(implementation="fused") == bert(attention="fused")
    assert bert(attention="causal", implementation="fused") == bert(causal=True, attention="fused")
    assert dataclasses.replace(bert(attention="fused"), implementation="reference") == bert()
    config = ConfigDict({"model": {"attention": "reference", "causal": False}, "attention": "reference"})
    for name, text in (("model.implementation", "fused"), ("model.attention", "causal"), ("implementation", "splash")):
        set_field(config, name, text)
    assert config.to_dict() == {"model": {"attention": "fused", "causal": True}, "attention": "splash"}
    assert parse_values(config, "model.implementation", "reference,fused") == ["reference", "fused"]
