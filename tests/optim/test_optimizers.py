"""Tests of each optimiser over many steps against float64 numpy code from the papers."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bert_elmo_jax.optim import adagrad, adamw, bert_adam, lamb, linear_from_start, row_sgd
from bert_elmo_jax.optim.optimizers import normalise_by_global_norm, scale_by_trust_ratio, scale_by_uncorrected_adam

STEPS = 25
SCHEDULE = linear_from_start(0.05, warmup=5, steps=40)
LAYER = {"up": {"kernel": (4, 3), "bias": (3,)}, "norm": {"scale": (4,), "bias": (4,)}}
SHAPES = {"encoder": {"layer_0": LAYER, "layer_1": LAYER, "embeddings": {"word": (7, 4)}}}


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


def run(optimizer, params):
    """Return the parameters after some steps, which one compiled loop takes."""
    gradients = jax.tree.map(lambda *steps: np.stack(steps), *map(draw_gradients, range(STEPS)))

    @jax.jit
    def train(params):
        def step(carry, gradients):
            params, state = carry
            updates, state = optimizer.update(gradients, state, params)
            return (optax.apply_updates(params, updates), state), None

        return jax.lax.scan(step, (params, optimizer.init(params)), gradients)[0][0]

    return names(train(params))


def global_norm(gradients):
    return np.sqrt(sum(np.square(g, dtype=np.float64).sum() for g in gradients.values()))


def by_hand(params, prepare, direction):
    """Run plain loops: `prepare` the gradients, compute each tensor's `direction`, take a step."""
    weights = {name: x.astype(np.float64) for name, x in names(params).items()}
    start = {"m": np.zeros, "v": np.zeros, "sum": np.ones}
    memory = {name: {key: make(x.shape) for key, make in start.items()} for name, x in weights.items()}
    for step in range(STEPS):
        gradients = prepare({name: g.astype(np.float64) for name, g in names(draw_gradients(step)).items()})
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
    zeros, ones = np.zeros((2, 2), np.float32), np.ones((2, 2), np.float32)
    params = {"kernel": zeros, "other": ones}
    optimizer = lamb(0.1)
    update = jax.jit(lambda gradients, params: optimizer.update(gradients, optimizer.init(params), params)[0])
    updates = update({"kernel": ones, "other": zeros}, params)
    assert np.isfinite(updates["kernel"]).all() and np.any(updates["kernel"])
    assert all(np.isfinite(u).all() for u in jax.tree.leaves(update({"kernel": zeros, "other": zeros}, params)))


def test_elmos_recipe():
    """Loss times 20 (10 for each direction), clipping at a global norm of 10, Adagrad from 1 at rate 0.2."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 6, 4)).astype(np.float32)
    params = {"forward": rng.normal(size=4).astype(np.float32), "shared": np.float32(0.5)}
    w = {name: np.asarray(p, np.float64) for name, p in params.items()}
    total = {name: np.ones(p.shape) for name, p in params.items()}

    def objective(params):
        """Return the sum of both directions' mean losses, times 10."""
        errors = [jnp.square(x[k] @ params["forward"] * params["shared"] - k).mean() for k in (0, 1)]
        return 10.0 * (errors[0] + errors[1])

    optimizer = adagrad(0.2)
    state = optimizer.init(params)

    @jax.jit
    def step(params, state):
        updates, state = optimizer.update(jax.grad(objective)(params), state, params)
        return optax.apply_updates(params, updates), state

    clipped = 0
    for _ in range(20):
        params, state = step(params, state)
        # The mean of both directions' mean losses, times 20.
        residual = [x[k] @ w["forward"] * w["shared"] - k for k in (0, 1)]
        forward = [2 * (r[:, None] * x[k]).mean(0) * w["shared"] for k, r in enumerate(residual)]
        shared = [2 * (r * (x[k] @ w["forward"])).mean() for k, r in enumerate(residual)]
        g = {"forward": 20 * np.mean(forward, axis=0), "shared": 20 * np.mean(shared)}
        norm = np.sqrt(sum(np.square(v).sum() for v in g.values()))
        clipped += norm > 10
        for name in w:
            scaled = g[name] * min(1, 10 / norm)
            total[name] = total[name] + scaled**2
            w[name] = w[name] - 0.2 * scaled / np.sqrt(total[name])
    assert 0 < clipped < 20
    for name in w:
        np.testing.assert_allclose(params[name], w[name], rtol=1e-4, atol=1e-5)


def test_parts_of_optimizers_by_hand():
    adam = scale_by_uncorrected_adam(0.9, 0.99, 0.0)
    update, _ = jax.jit(lambda g: adam.update(g, adam.init(jnp.array(0.0))))(np.float32(2.0))
    assert float(update) == pytest.approx(1.0, abs=1e-4)
    normalise = jax.jit(lambda tree: normalise_by_global_norm().update(tree, optax.EmptyState())[0])
    assert normalise({"a": np.float32([3]), "b": np.float32([4])})["b"].item() == pytest.approx(0.8)
    params, updates = {"kernel": np.float32([[3, 4]])}, {"kernel": np.float32([[0, 2]])}
    ratios = jax.jit(lambda tree, params: scale_by_trust_ratio().update(tree, optax.EmptyState(), params)[0])
    assert ratios(updates, params)["kernel"].tolist() == [[0.0, 5.0]]


def test_row_sgd_without_a_limit_is_gradient_descent():
    optimizer, params = row_sgd(0.5, longest=float("inf")), {"table": jnp.zeros((2, 2)), "bias": jnp.zeros(2)}
    gradients = {"table": jnp.array([[3.0, 4.0], [0.0, 0.0]]), "bias": jnp.array([1e6, 0.0])}
    updates, _ = optimizer.update(gradients, optimizer.init(params), params)
    assert updates["table"].tolist() == [[-1.5, -2.0], [0.0, 0.0]] and updates["bias"].tolist() == [-5e5, 0.0]
