"""Low-rank adapters: their effect, the parameters that a gradient reaches, and adapters or targets that do not fit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.optim import count_params, list_adapters, lora

SIZES = {"query": (6, 4), "key": (6, 4), "up": (6, 8)}


def make_params(width=6):
    keys = iter(jax.random.split(jax.random.key(1), 20))
    layers = {}
    for number in range(2):
        layers[f"layer_{number}"] = {
            "attention": {name: dense(next(keys), SIZES[name], width) for name in ("query", "key")},
            "feed_forward": {"up": dense(next(keys), SIZES["up"], width)},
            "norm": {"scale": jnp.ones(width)},
        }
    return {"encoder": {"embeddings": {"word": jnp.ones((9, width))}, **layers}, "classify": {"bias": jnp.zeros(2)}}


def dense(key, shape, width):
    return {"kernel": jax.random.normal(key, (width, shape[1])), "bias": jnp.zeros(shape[1])}


def test_fresh_adapters_change_nothing_and_name_their_layers():
    params = make_params()
    adapters, merge = lora(params, 2, ["attention/query", "up"])
    merged = merge(params, adapters)
    assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), merged, params))
    assert [path for path, _ in list_adapters(adapters)] == [
        f"encoder/layer_{n}/{name}" for n in (0, 1) for name in ("attention/query", "feed_forward/up")
    ]
    assert count_params(adapters) == 2 * (2 * (6 + 4) + 2 * (6 + 8))
    assert len(list(list_adapters(lora(params, 2, "all").adapters))) == 6


@pytest.mark.parametrize(("rslora", "scale"), [(False, 16 / 4), (True, 16 / 4**0.5)])
def test_merged_kernels_and_gradients_are_those_of_the_formula(rslora, scale):
    params = make_params()
    adapters, merge = lora(params, 4, ["query"], alpha=16.0, rslora=rslora, key=jax.random.key(3))
    adapters = jax.tree.map(lambda x: x + 0.1, adapters)
    pair = adapters["encoder"]["layer_1"]["attention"]["query"]
    x = jax.random.normal(jax.random.key(5), (3, 6))

    def outputs(params):
        layer = params["encoder"]["layer_1"]["attention"]["query"]
        return x @ layer["kernel"]

    def value(adapters):
        return (outputs(merge(params, adapters)) ** 2).sum()

    expected = outputs(params) + scale * (x @ pair["down"]) @ pair["up"]
    np.testing.assert_allclose(outputs(merge(params, adapters)), expected, rtol=1e-5)
    gradients = jax.grad(value)(adapters)["encoder"]
    by_hand = scale * x.T @ (2 * expected @ pair["up"].T), scale * (x @ pair["down"]).T @ (2 * expected)
    for name, gradient in zip(("down", "up"), by_hand):
        np.testing.assert_allclose(gradients["layer_1"]["attention"]["query"][name], gradient, rtol=1e-4)
    assert not any(jax.tree.leaves(jax.tree.map(jnp.any, gradients["layer_0"])))


def test_a_table_of_embeddings_is_adapted_only_when_it_is_named():
    params = make_params()
    adapters, merge = lora(params, 2, ["query", "embeddings/word"], alpha=4.0)
    pair = adapters["encoder"]["embeddings"]["word"]
    assert (pair["down"].shape, pair["up"].shape) == ((9, 2), (2, 6)) and bool(pair["up"].all())
    assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), merge(params, adapters), params))
    pair["down"] = jnp.eye(9, 2)
    table = merge(params, adapters)["encoder"]["embeddings"]["word"]
    np.testing.assert_allclose(table[:2], 1 + 2 * pair["up"], rtol=1e-6)
    np.testing.assert_array_equal(table[2:], 1)
    assert "embeddings" not in lora(params, 2, "all").adapters["encoder"]


def test_heads_have_no_adapters():
    params = {**make_params(), "classify": {"kernel": jnp.ones((6, 2))}}
    assert lora(params, 2, "all").adapters.keys() == {"encoder"}
    with pytest.raises(ValueError, match="the target 'classify' names no layer"):
        lora(params, 2, ["classify"])


def test_an_adapter_does_not_depend_on_the_others():
    few, _ = lora(make_params(), 2, ["query"], key=jax.random.key(7))
    many, _ = lora(make_params(), 2, ["query", "key", "up"], key=jax.random.key(7))
    ours, theirs = (tree["encoder"]["layer_1"]["attention"]["query"]["down"] for tree in (few, many))
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"targets": ["qurey"]},
            "the target 'qurey' names no layer .* there are query, key, up, word, and all; did you mean",
        ),
        ({"targets": ["embeddings"]}, "names no layer with a kernel"),
        ({"targets": []}, "targets is empty"),
        ({"rank": 0}, "rank=0: expected a whole number from 1"),
        ({"rank": 7, "targets": ["word"]}, "rank=7: the encoder/embeddings/word is 9 x 6, so use 6"),
        ({"rank": 5, "targets": ["query"]}, "rank=5: the kernel of encoder/layer_0/attention/query is 6 x 4, so use 4"),
        ({"alpha": 0.0, "targets": ["query"]}, "alpha=0.0: expected a number above 0"),
    ],
)
@pytest.mark.usefixtures("as_users_run")
def test_impossible_adapters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        lora(make_params(), **{"rank": 2, **options})


def test_adapters_of_another_model_are_refused():
    params = make_params()
    wide, merge = lora(make_params(width=8), 2, ["query"])
    with pytest.raises(ValueError, match=r"layer_0/attention/query is for a matrix of 8 x 4 .* the model's is 6 x 4"):
        merge(params, wide)
    adapters, merge = lora(params, 2, ["query"])
    with pytest.raises(ValueError, match="query has numbers of the type int8: merge adapters before"):
        merge(jax.tree.map(lambda x: x.astype(np.int8), params), adapters)
    deep = {"encoder": {"layer_9": wide["encoder"]["layer_0"]}}
    with pytest.raises(ValueError, match="an adapter for encoder/layer_9, which the parameters do not have"):
        merge(params, deep)
