"""The fields of BERT that later papers changed: whole models, run directories from before them, and Hugging Face."""

import dataclasses
import functools
import json

import jax
import numpy as np
import pytest

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.family import FAMILY
from bert_elmo_jax.families.bert.formats import WEIGHTS
from bert_elmo_jax.families.bert.model import Bert
from bert_elmo_jax.families.init_params import init_params, param_shapes
from bert_elmo_jax.families.piece_objective import piece_loss
from bert_elmo_jax.inference.model_kinds import read_config
from bert_elmo_jax.train.parallel import kept_whole, make_mesh, shardings

from ..huggingface_models import Model, random_params

pytestmark = pytest.mark.usefixtures("strict_dtypes")

CONFIG = BertConfig(
    vocab_size=60, hidden_size=16, num_layers=3, num_heads=4, feed_forward_size=24, max_positions=12,
    initializer_range=0.3,
)  # fmt: skip
CHANGES = {
    "pre": {"norm": "pre"}, "gated": {"feed_forward": "gated"}, "rotary": {"position": "rotary", "rotary_theta": 100.0},
    "no bias": {"layer_bias": False},
}  # fmt: skip
ALL = {name: value for change in CHANGES.values() for name, value in change.items()}
TOKENS = np.random.default_rng(0).integers(5, 59, (2, 9)).astype(np.int32)


@functools.cache
def compiled(config, layers):
    return jax.jit(functools.partial(Bert(config).apply, layers=layers))


def apply(config, params, tokens=TOKENS, layers=None, **arrays):
    return compiled(config, layers)({"params": params}, tokens, **arrays)


@functools.cache
def fresh(config):
    return jax.jit(lambda: init_params(FAMILY, config, jax.random.key(0), ("mlm",)))()


def replace(**changes):
    return dataclasses.replace(CONFIG, **changes)


def test_packed_scanned_and_recomputed():
    """With all changes; `tests/nn/test_layer_parts.py` computes each by hand."""
    params = fresh(replace(**ALL))["encoder"]
    padded_rows = apply(replace(**ALL), params, layers="all", lengths=np.array([9, 4]))
    # The nine pieces of the first row and the four of the second share a row.
    row = np.concatenate([TOKENS[0], TOKENS[1, :4]])[None]
    places, segments = np.array([[*range(9), *range(4)]]), np.array([[1] * 9 + [2] * 4])
    config = replace(**ALL, scan=True, remat=True)
    packed = apply(config, params, row, positions=places, segments=segments, layers=(-1, 0, 1, 3))
    for number, layer in enumerate((3, 0, 1, 3)):
        np.testing.assert_allclose(packed.layers[number, 0, :9], padded_rows.layers[layer, 0], atol=2e-5)
        np.testing.assert_allclose(packed.layers[number, 0, 9:], padded_rows.layers[layer, 1, :4], atol=2e-5)
    np.testing.assert_array_equal(packed.layers[0], packed.last)


def test_the_parameters_of_each_choice():
    shapes = {name: param_shapes(FAMILY, replace(**change), ("mlm",)) for name, change in CHANGES.items()}
    original = param_shapes(FAMILY, CONFIG, ("mlm",))
    assert shapes["pre"].keys() - original.keys() == {"encoder/norm/scale", "encoder/norm/bias"}
    assert original.keys() - shapes["rotary"].keys() == {"encoder/embeddings/position"}
    gates = {f"encoder/layer_{i}/feed_forward/gate/{part}" for i in range(3) for part in ("kernel", "bias")}
    assert shapes["gated"].keys() - original.keys() == gates
    gone = original.keys() - shapes["no bias"].keys()
    assert len(gone) == 3 * 8 and all("layer_" in path and path.endswith("/bias") for path in gone)
    assert FAMILY.depth_of("norm/scale") is None and FAMILY.depth_of("layer_1/feed_forward/gate/kernel") == 2


def test_the_last_layer_is_normalised_and_the_others_are_not():
    config = replace(norm="pre")
    params = fresh(config)["encoder"]
    layers = np.asarray(apply(config, params, layers="all").layers)
    spread = layers.std(-1)
    np.testing.assert_allclose(spread[-1], 1.0, atol=1e-3)
    assert np.abs(spread[1:-1] - 1).max() > 0.1


def test_rotary_positions_see_distances_and_not_places():
    config = replace(position="rotary")
    params = fresh(config)["encoder"]
    first = apply(config, params, positions=np.broadcast_to(np.arange(9), (2, 9))).last
    moved = apply(config, params, positions=np.broadcast_to(np.arange(9) + 3, (2, 9))).last
    np.testing.assert_allclose(first, moved, atol=2e-5)
    assert not np.allclose(first, apply(config, params, positions=np.broadcast_to(2 * np.arange(9), (2, 9))).last)


@pytest.mark.devices
def test_a_mesh_splits_the_gates():
    params = fresh(replace(**ALL))
    mesh = make_mesh(data=2, fsdp=2, tensor=2)
    gate = shardings(params, mesh, FAMILY.sharding)["encoder"]["layer_0"]["feed_forward"]["gate"]["kernel"]
    assert gate.spec == jax.sharding.PartitionSpec("fsdp", "tensor")
    assert not kept_whole(params, mesh, FAMILY.sharding)


def test_a_batch_of_next_pieces_is_causal():
    batch = {
        "tokens": TOKENS, "types": TOKENS * 0, "segments": TOKENS * 0 + 1,
        "positions": np.broadcast_to(np.arange(9, dtype=np.int32), (2, 9)),
        "mlm_positions": np.broadcast_to(np.arange(8, dtype=np.int32), (2, 8)), "mlm_targets": TOKENS[:, 1:],
        "mlm_weights": np.ones((2, 8), np.float32),
    }  # fmt: skip
    causal, params = replace(causal=True), fresh(CONFIG)

    def total(config, **more):
        loss = jax.jit(piece_loss(FAMILY, config))
        return float(loss(params, {**batch, **more}, None, None)[0]["mlm"][0])

    mark = {"causal": np.ones((2, 1), np.int32)}
    expected = total(causal)
    assert total(CONFIG, **mark) == expected
    assert total(CONFIG) != pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    "changes", [{"norm": "pre"}, {"feed_forward": "gated"}, {"position": "rotary"}, CHANGES["no bias"]]
)
def test_transformers_has_no_such_bert(changes, tmp_path):
    config = replace(**changes)
    (name, value), *_ = changes.items()
    with pytest.raises(ValueError, match=rf"cannot say {name}={value!r}; only models with {name}="):
        config.to_huggingface(("mlm",))
    with pytest.raises(ValueError, match=rf"cannot say {name}={value!r}"):
        WEIGHTS.write(tmp_path / "out", random_params(Model(config, "", ("mlm",))), config)
    assert replace(rotary_theta=5.0).to_huggingface() == CONFIG.to_huggingface()


def test_a_model_json_from_before_these_fields_is_the_original():
    then = {name: value for name, value in dataclasses.asdict(CONFIG).items() if name not in BertConfig.ADDED}
    assert read_config(json.loads(json.dumps(then)), "bert", "model.json") == CONFIG
    assert not CONFIG.changed and replace(norm="pre").changed == {"norm": "pre"}
    del then["num_heads"]
    with pytest.raises(ValueError, match="lacks num_heads; copy it again"):
        read_config(then, "bert", "model.json")
