import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.families.elmo.elmo_layer import ElmoLayer

pytestmark = pytest.mark.usefixtures("strict_dtypes")
LAYERS = np.random.default_rng(0).normal(2, 3, (3, 2, 5, 4)).astype(np.float32)
MASK = np.arange(5)[None, :] < np.array([5, 2])[:, None]


def start(layer):
    return layer.init(jax.random.key(0), LAYERS, MASK)["params"]


def test_it_starts_as_the_mean_of_the_layers():
    layer = ElmoLayer(num_outputs=3)
    params = start(layer)
    assert sorted(params) == ["mix_0", "mix_1", "mix_2"]
    outputs, penalty = layer.apply({"params": params}, LAYERS, MASK)
    assert len(outputs) == 3 and penalty == 0
    for output in outputs:
        np.testing.assert_allclose(output[MASK], LAYERS.mean(0)[MASK], atol=1e-6)
        assert not np.asarray(output)[~MASK].any()


def test_each_output_has_weights_of_its_own_and_their_squares_are_the_penalty():
    layer = ElmoLayer(num_outputs=2, l2=0.1)
    params = start(layer)
    weights = np.array([1.0, -2.0, 0.5], np.float32)
    params["mix_1"] = {"weights": jnp.asarray(weights), "gamma": jnp.asarray(3.0)}
    (first, second), penalty = layer.apply({"params": params}, LAYERS, MASK)
    shares = np.exp(weights) / np.exp(weights).sum()
    np.testing.assert_allclose(first[MASK], LAYERS.mean(0)[MASK], atol=1e-6)
    np.testing.assert_allclose(second[MASK], 3 * np.einsum("l,lbtd->btd", shares, LAYERS)[MASK], atol=1e-5)
    np.testing.assert_allclose(penalty, 0.1 * np.square(weights).sum(), rtol=1e-6)
    gradient = jax.grad(lambda p: layer.apply({"params": p}, LAYERS, MASK)[1])(params)
    np.testing.assert_allclose(gradient["mix_1"]["weights"], 0.2 * weights, rtol=1e-6)
    assert gradient["mix_1"]["gamma"] == 0


def test_layer_norm_measures_real_positions_alone():
    layer = ElmoLayer(layer_norm=True)
    (output,), _ = layer.apply({"params": start(layer)}, LAYERS, MASK)
    normal = [(x - x[MASK].mean()) / np.sqrt(x[MASK].var() + 1e-13) for x in LAYERS.astype(np.float64)]
    np.testing.assert_allclose(output[MASK], np.mean(normal, axis=0)[MASK], atol=1e-5)
    spoilt = np.where(MASK[None, :, :, None], LAYERS, np.float32(1e6))
    np.testing.assert_array_equal(layer.apply({"params": start(layer)}, spoilt, MASK)[0][0], output)


def test_dropout_falls_on_each_output_by_itself_while_training():
    layer = ElmoLayer(num_outputs=2, dropout=0.5)
    params, ones = start(layer), np.ones((3, 20, 30, 8), np.float32)
    mask = np.ones((20, 30), bool)
    (a, b), _ = layer.apply({"params": params}, ones, mask, deterministic=False, rngs={"dropout": jax.random.key(1)})
    for output in (a, b):
        assert abs((np.asarray(output) == 0).mean() - 0.5) < 0.03
        np.testing.assert_allclose(np.unique(np.round(output, 4)), [0, 2])
    assert (a != b).any()
    (quiet, _), _ = layer.apply({"params": params}, ones, mask)
    np.testing.assert_allclose(quiet, 1, atol=1e-6)


@pytest.mark.usefixtures("as_users_run")
def test_wrong_numbers_and_masks_are_refused():
    with pytest.raises(ValueError, match="num_outputs is 0; it must be at least 1"):
        start(ElmoLayer(num_outputs=0))
    with pytest.raises(ValueError, match=r"with a mask of shape \(1, 5\); expected \(2, 5\)"):
        ElmoLayer().init(jax.random.key(0), LAYERS, MASK[:1])


def test_masked_values_reach_no_gradient():
    layers = np.where(MASK[None, :, :, None], LAYERS, np.float32(np.nan))
    params = start(ElmoLayer())
    gradients = jax.grad(lambda p: ElmoLayer().apply({"params": p}, layers, MASK)[0][0].sum())(params)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients))
