"""Tests of each optimiser over many steps against float64 numpy code from the papers."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bert_elmo_jax.optim import adagrad, adamw, bert_adam, lamb, linear_from_start

STEPS = 25
SCHEDULE = linear_from_start(0.05, warmup=5, steps=40)
SHAPES = {
    "encoder": {
        "layer_0": {"up": {"kernel": (4, 3), "bias": (3,)}, "norm": {"scale": (4,), "bias": (4,)}},
        "layer_1": {"up": {"kernel": (4, 3), "bias": (3,)}, "norm": {"scale": (4,), "bias": (4,)}},
        "embeddings": {"word": (7, 4)},
    }
}
is_shape = lambda x: isinstance(x, tuple)  # noqa: E731


def rate(step):
    return 0.05 * (step / 5 if step < 5 else 1 - step / 40)


def draw_params():
    rng = np.random.default_rng(0)
    return jax.tree.map(lambda shape: rng.normal(size=shape).astype(np.float32), SHAPES, is_leaf=is_shape)


def draw_gradients(step):
    """Return gradients of very different sizes, so that clipping and eps matter; a third of the words have none."""
    rng = np.random.default_rng(100 + step)
    scale = 10.0 ** rng.uniform(-4, 1)
    gradients = jax.tree.map(
        lambda shape: (scale * rng.normal(size=shape)).astype(np.float32), SHAPES, is_leaf=is_shape
    )
    gradients["encoder"]["embeddings"]["word"][step % 3 :: 3] = 0
    return gradients


def names(tree):
    return {
        jax.tree_util.keystr(p, simple=True, separator="/"): x for p, x in jax.tree_util.tree_leaves_with_path(tree)
    }


def no_decay(name):
    return name.endswith("bias") or "/norm/" in name


def run(optimizer, params, arranged=lambda tree: tree):
    params = jax.tree.map(jnp.asarray, arranged(params))
    state = optimizer.init(params)

    @jax.jit
    def step(params, state, gradients):
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    for number in range(STEPS):
        params, state = step(params, state, arranged(draw_gradients(number)))
    return names(params)


def global_norm(gradients):
    return np.sqrt(sum(np.square(g, dtype=np.float64).sum() for g in gradients.values()))


def by_hand(params, prepare, direction):
    """Run plain loops: `prepare` the gradients, compute each tensor's `direction`, take a step."""
    weights = {name: x.astype(np.float64) for name, x in names(params).items()}
    memory = {
        name: {"m": np.zeros(x.shape), "v": np.zeros(x.shape), "sum": np.ones(x.shape)} for name, x in weights.items()
    }
    for step in range(STEPS):
        gradients = {name: g.astype(np.float64) for name, g in names(draw_gradients(step)).items()}
        gradients = prepare(gradients)
        for name, w in weights.items():
            weights[name] = w - rate(step) * direction(name, w, gradients[name], memory[name], step + 1)
    return weights


def clip_at(limit):
    def clip(gradients):
        norm = global_norm(gradients)
        return {name: g * min(1, limit / norm) for name, g in gradients.items()}

    return clip


def moments(g, memory):
    memory["m"] = 0.9 * memory["m"] + 0.1 * g
    memory["v"] = 0.999 * memory["v"] + 0.001 * g * g
    return memory["m"], memory["v"]


def bert_direction(name, w, g, memory, t):
    m, v = moments(g, memory)
    return m / (np.sqrt(v) + 1e-6) + (0 if no_decay(name) else 0.01 * w)


def adamw_direction(name, w, g, memory, t):
    m, v = moments(g, memory)
    return (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-6) + (0 if no_decay(name) else 0.01 * w)


def lamb_direction(name, w, g, memory, t):
    u = adamw_direction(name, w, g, memory, t)
    return u if no_decay(name) else u * np.linalg.norm(w) / np.linalg.norm(u)


def adagrad_direction(name, w, g, memory, t):
    memory["sum"] += g * g
    return g / np.sqrt(memory["sum"])


def divide_by_norm(gradients):
    norm = global_norm(gradients)
    return {name: g / norm for name, g in gradients.items()}


OPTIMIZERS = {
    "bert_adam": (bert_adam(SCHEDULE), clip_at(1.0), bert_direction),
    "adamw": (adamw(SCHEDULE), clip_at(1.0), adamw_direction),
    "lamb": (lamb(SCHEDULE), divide_by_norm, lamb_direction),
    "adagrad": (adagrad(SCHEDULE), clip_at(10.0), adagrad_direction),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_match_numpy(name):
    optimizer, prepare, direction = OPTIMIZERS[name]
    expected = by_hand(draw_params(), prepare, direction)
    for path, ours in run(optimizer, draw_params()).items():
        np.testing.assert_allclose(ours, expected[path], atol=5e-6, rtol=2e-5, err_msg=path)


def test_options_match_numpy():
    params = draw_params()

    def direction(name, w, g, memory, t):
        memory["m"] = 0.8 * memory["m"] + 0.2 * g
        memory["v"] = 0.9 * memory["v"] + 0.1 * g * g
        return memory["m"] / (np.sqrt(memory["v"]) + 1e-3) + (0 if no_decay(name) else 0.1 * w)

    ours = run(bert_adam(SCHEDULE, b1=0.8, b2=0.9, eps=1e-3, decay=0.1, clip=0.5), params)
    for path, expected in by_hand(params, clip_at(0.5), direction).items():
        np.testing.assert_allclose(ours[path], expected, atol=5e-6, rtol=2e-5)


def test_lamb_with_zero_tensors_and_gradients():
    params = {"kernel": jnp.zeros((2, 2)), "other": jnp.ones((2, 2))}
    optimizer = lamb(0.1)
    updates, _ = optimizer.update(
        {"kernel": jnp.ones((2, 2)), "other": jnp.zeros((2, 2))}, optimizer.init(params), params
    )
    assert np.isfinite(updates["kernel"]).all() and np.any(updates["kernel"])
    updates, _ = optimizer.update(jax.tree.map(jnp.zeros_like, params), optimizer.init(params), params)
    assert all(np.isfinite(u).all() for u in jax.tree.leaves(updates))


def test_elmos_recipe():
    """Loss times 20 (10 for each direction), clipping at a global norm of 10, Adagrad from 1 at rate 0.2."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 6, 4)).astype(np.float32)
    params = {"forward": jnp.asarray(rng.normal(size=4), jnp.float32), "shared": jnp.float32(0.5)}
    w = {name: np.asarray(p, np.float64) for name, p in params.items()}
    total = {name: np.ones(p.shape) for name, p in params.items()}

    def terms(params):
        errors = [jnp.square(x[k] @ params["forward"] * params["shared"] - k).sum() for k in (0, 1)]
        return {"forward": (errors[0], 6.0), "backward": (errors[1], 6.0)}

    def objective(params):
        return sum(10.0 * total / weight for total, weight in terms(params).values())

    optimizer = adagrad(0.2)
    state = optimizer.init(params)
    clipped = 0
    for _ in range(20):
        updates, state = optimizer.update(jax.grad(objective)(params), state, params)
        params = optax.apply_updates(params, updates)
        # The mean of both directions' mean losses, times 20.
        residual = [x[k] @ w["forward"] * w["shared"] - k for k in (0, 1)]
        g = {
            "forward": 20
            * np.mean([2 * (r[:, None] * x[k]).mean(0) * w["shared"] for k, r in enumerate(residual)], axis=0),
            "shared": 20 * np.mean([2 * (r * (x[k] @ w["forward"])).mean() for k, r in enumerate(residual)]),
        }
        norm = np.sqrt(sum(np.square(v).sum() for v in g.values()))
        clipped += norm > 10
        for name in w:
            scaled = g[name] * min(1, 10 / norm)
            total[name] = total[name] + scaled**2
            w[name] = w[name] - 0.2 * scaled / np.sqrt(total[name])
    assert 0 < clipped < 20
    for name in w:
        np.testing.assert_allclose(params[name], w[name], rtol=1e-4, atol=1e-5)


def test_example_of_scale_by_uncorrected_adam():
    import jax.numpy as jnp

    from bert_elmo_jax.optim.optimizers import scale_by_uncorrected_adam

    adam = scale_by_uncorrected_adam(0.9, 0.99, 0.0)
    assert adam.update(jnp.array(2.0), adam.init(jnp.array(0.0)))[0].round(4).item() == 1.0


def test_example_of_normalise_by_global_norm():
    import jax.numpy as jnp
    import optax

    from bert_elmo_jax.optim.optimizers import normalise_by_global_norm

    assert (
        repr(
            normalise_by_global_norm().update({"a": jnp.array([3.0]), "b": jnp.array([4.0])}, optax.EmptyState())[0][
                "b"
            ]
        )
        == "Array([0.8], dtype=float32)"
    )


def test_example_of_scale_by_trust_ratio():
    import jax.numpy as jnp
    import optax

    from bert_elmo_jax.optim.optimizers import scale_by_trust_ratio

    params, updates = {"kernel": jnp.array([[3.0, 4.0]])}, {"kernel": jnp.array([[0.0, 2.0]])}
    assert scale_by_trust_ratio().update(updates, optax.EmptyState(), params)[0]["kernel"].tolist() == [[0.0, 5.0]]
