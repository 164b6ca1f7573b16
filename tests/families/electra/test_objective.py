"""Replaced-token pretraining: terms, samples, gradients, and equal updates from every way to compute them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bert_elmo_jax import train
from bert_elmo_jax.families import replaced_objective as objective
from bert_elmo_jax.families.electra.config import ElectraConfig
from bert_elmo_jax.families.electra.family import FAMILY
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.families.replaced import take_generator
from bert_elmo_jax.families.replaced_objective import SAMPLING, copied_cross_entropy, replaced_loss, sample
from bert_elmo_jax.runs.config_files import read_config
from bert_elmo_jax.runs.pretraining import build_objective, build_step
from bert_elmo_jax.train.parallel import DEVICES

VOCABULARY = 40
CONFIG = ElectraConfig(
    VOCABULARY, 24, 1, 2, 32, embedding_size=16, dropout=0.0, attention_dropout=0.0, initializer_range=0.5,
    generator_size=0.5,
)  # fmt: skip
loss, OPTIMIZER = jax.jit(replaced_loss(FAMILY, CONFIG)), optax.sgd(0.01)


def batch(rows=8, length=12, places=4):
    random = np.random.default_rng(0)
    original = random.integers(5, VOCABULARY, (rows, length)).astype(np.int32)
    segments = (np.arange(length) < random.integers(6, length + 1, rows)[:, None]).astype(np.int32)
    positions = np.tile(np.array([1, 3, 5, 0], np.int32), (rows, 1))
    weights = np.tile(np.array([1, 1, 1, 0], np.float32), (rows, 1))  # the last place is empty
    targets = np.take_along_axis(original, positions, axis=1)
    tokens = original.copy()
    np.put_along_axis(tokens, positions[:, :3], 4, axis=1)
    return {
        "tokens": tokens, "types": np.zeros_like(tokens), "segments": segments,
        "positions": np.tile(np.arange(length, dtype=np.int32), (rows, 1)),
        "mlm_positions": positions, "mlm_targets": targets, "mlm_weights": weights,
    }  # fmt: skip


@pytest.fixture(scope="module")
def params():
    """Return parameters on the host, because a step consumes parameters on a device."""
    tree = jax.jit(lambda: init_params(FAMILY, CONFIG, jax.random.key(0), ("generator", "replaced"), pooler=False))()
    return jax.device_get(tree)


@functools.partial(jax.jit, static_argnums=(0, 1))
def run(config, head, params, tokens, segments, words, *positions):
    """Return the logits of one network."""
    last = FAMILY.build(config).apply({"params": params["encoder"]}, tokens, None, None, segments).last
    return FAMILY.head(head, config).apply({"params": params[head]}, last, words, *positions)


def test_the_terms_are_those_of_both_networks(params):
    inputs, key = batch(), jax.random.key(3)
    terms, metrics, carry = loss(params, inputs | {SAMPLING: key}, None, np.float32(7))
    small, generator = take_generator(CONFIG, params)
    words, segments = params["encoder"]["embeddings"]["word"], inputs["segments"]
    logits = run(small, "mlm", generator, inputs["tokens"], segments, words, inputs["mlm_positions"])
    counted = inputs["mlm_weights"] > 0
    chosen = np.take_along_axis(np.asarray(jax.nn.log_softmax(logits)), inputs["mlm_targets"][..., None], -1)[..., 0]
    np.testing.assert_allclose(terms["mlm"], (-chosen[counted].sum(), counted.sum()), rtol=1e-5)

    sampled = np.asarray(sample(logits, jnp.asarray(inputs["tokens"]), key))
    tokens, changed = inputs["tokens"].copy(), np.zeros(inputs["tokens"].shape, bool)
    np.put_along_axis(tokens, inputs["mlm_positions"][:, :3], sampled[:, :3], axis=1)
    np.put_along_axis(changed, inputs["mlm_positions"][:, :3], (sampled != inputs["mlm_targets"])[:, :3], axis=1)
    scores = np.asarray(run(CONFIG, "replaced", params, tokens, segments, words), np.float64)
    real = segments > 0
    expected = np.logaddexp(0, np.where(changed, -scores, scores))[real].sum()
    np.testing.assert_allclose(terms["replaced"], (expected, real.sum()), rtol=1e-5)
    right = (scores > 0) == changed
    np.testing.assert_allclose(metrics["replaced_accuracy"], (right[real].sum(), real.sum()))
    masked = np.isin(np.arange(12), (1, 3, 5))[None] & np.ones_like(real)
    np.testing.assert_allclose(metrics["replaced_accuracy_masked"], (right[masked].sum(), 24))
    assert carry == 7


def test_a_sample_that_equals_the_original_is_no_replacement(params):
    """With a generator that always finds the original, every piece counts as original."""
    inputs = batch()
    inputs["mlm_targets"][:] = 9
    sure = jax.tree.map(np.asarray, params)
    sure["generator"]["mlm"]["bias"] = jnp.full(VOCABULARY, -1e4).at[9].set(1e4)
    never = params["replaced"]["out"] | {"kernel": 0 * params["replaced"]["out"]["kernel"], "bias": -jnp.ones(1)}
    sure["replaced"] = {**params["replaced"], "out": never}
    _, metrics, _ = loss(sure, inputs, None, None)
    assert all(total == weight > 0 for total, weight in metrics.values())
    sure["generator"]["mlm"]["bias"] = jnp.full(VOCABULARY, -1e4).at[8].set(1e4)
    _, metrics, _ = loss(sure, inputs, None, None)
    assert metrics["replaced_accuracy_masked"][0] == metrics["mlm_accuracy"][0] == 0


def test_no_gradient_passes_through_the_samples(params):
    """The generator and the discriminator learn only from their own terms, the embeddings from both."""
    inputs = batch()
    for term, still in (("replaced", ("generator",)), ("mlm", ("replaced",))):
        gradients = jax.jit(jax.grad(lambda p, term=term: loss(p, inputs, None, None)[0][term][0]))(params)
        moved = {name: any(np.asarray(leaf).any() for leaf in jax.tree.leaves(gradients[name])) for name in gradients}
        assert moved == {name: name not in still for name in params}
        layers = any(np.asarray(leaf).any() for leaf in jax.tree.leaves(gradients["encoder"]["layer_0"]))
        assert layers == (term == "replaced")
        assert np.asarray(gradients["encoder"]["embeddings"]["word"]).any()


def test_samples_follow_the_softmax_and_not_the_place_of_a_row():
    rows = np.random.default_rng(1).integers(0, 1_000, (2_000, 6)).astype(np.int32)
    logits = jnp.broadcast_to(jnp.log(jnp.array([0.5, 0.3, 0.2])), (2_000, 2, 3))
    draw = jax.jit(sample)
    drawn = np.asarray(draw(logits, rows, jax.random.key(0)))
    shares = [[(column == piece).mean() for piece in range(3)] for column in drawn.T]
    np.testing.assert_allclose(shares, [[0.5, 0.3, 0.2]] * 2, atol=0.04)
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.06
    np.testing.assert_array_equal(draw(logits, rows[::-1], jax.random.key(0)), drawn[::-1])
    assert (np.asarray(draw(logits, rows, jax.random.key(1))) != drawn).mean() > 0.5
    swapped = np.asarray(draw(logits, rows[:, ::-1], jax.random.key(0)))
    assert (swapped != drawn).mean() > 0.5, "the order of a row's pieces counts"


def update(params, devices=1, accumulate=1, pmap=False, mesh=None):
    step = train.make_step(
        replaced_loss(FAMILY, CONFIG), OPTIMIZER, {"mlm": 1.0, "replaced": 50.0}, accumulate=accumulate,
        draw=objective.draw_sampling_key, axis=DEVICES if pmap else None,
    )  # fmt: skip
    state = train.new_state(params, OPTIMIZER, jax.random.key(0))
    over = train.make_mesh(**(mesh or {}), devices=jax.devices()[:devices])
    rules = (*FAMILY.sharding, *train.RULES)
    parallel = train.over_pmap(step) if pmap else train.over_mesh(step, state, over, rules)
    state, metrics = parallel.step(parallel.place(state), parallel.put(batch()))
    return jax.device_get((parallel.gather(state).params, metrics["loss"]))


@pytest.fixture(scope="module")
def plain_update(params):
    return update(params)


@pytest.mark.parametrize(
    "way",
    [
        {"accumulate": 2, "devices": 8, "mesh": {"data": 2, "fsdp": 2, "tensor": 2}},
        pytest.param({"pmap": True}, marks=pytest.mark.long),
    ],
    ids=["accumulation over a mesh", "pmap"],
)
@pytest.mark.devices
def test_the_same_update(params, plain_update, way):
    outcome = update(params, **way)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=4e-6), outcome, plain_update)


def test_dropout_and_samples_follow_the_key(params):
    config = ElectraConfig(**{**vars(CONFIG), "dropout": 0.3})
    losses = jax.jit(replaced_loss(FAMILY, config))
    values = [
        float(losses(params, batch(), key, None)[0][term][0])
        for term in ("mlm", "replaced")
        for key in (*jax.random.split(jax.random.key(0)), jax.random.split(jax.random.key(0))[0])
    ]
    for one, other, again in (values[:3], values[3:]):
        assert one == again != other


@pytest.mark.long
def test_rows_of_one_text_may_be_read_by_their_lengths(params):
    unpacked = jax.jit(replaced_loss(FAMILY, CONFIG, packed=False))
    for ours, theirs in zip(*(jax.tree.leaves(f(params, batch(), None, None)) for f in (loss, unpacked)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize(("predict", "places"), [("replaced_masked", 24), ("masked", 24), ("all", None)])
def test_the_papers_other_tasks(predict, places):
    heads, inputs, names = ("generator", *objective.PREDICTS[predict]), batch(), []

    @jax.jit
    def weights():  # without the totals, little is compiled
        params = init_params(FAMILY, CONFIG, jax.random.key(0), heads, pooler=False)
        terms, metrics, _ = replaced_loss(FAMILY, CONFIG, predict)(params, inputs, None, None)
        names.extend([*terms, *metrics])
        return {name: weight for name, (_, weight) in (terms | metrics).items()}

    counts, term = weights(), "replaced" if predict == "replaced_masked" else "original"
    assert counts["mlm"] == 24 and counts[term] == (places or inputs["segments"].sum())
    right = ["original_accuracy"] if predict == "masked" else ["replaced_accuracy", "replaced_accuracy_masked"]
    assert names == ["mlm", term, "mlm_accuracy", *right]


def test_a_gate_that_copies():
    logits, targets = jnp.log(jnp.array([[[0.5, 0.3, 0.2]] * 4])), jnp.array([[0, 1, 2, -100]])
    changed, weights = jnp.array([[False, True, False, False]]), jnp.array([[True, True, True, False]])
    gate = jnp.log(jnp.array([[1.0, 3.0, 1 / 3, jnp.nan]]))  # read with 1/2, 3/4 and 1/4, else copied
    total, weight = copied_cross_entropy(logits, gate, targets, changed, weights)
    by_hand = -np.log([0.5 + 0.5 * 0.5, 0.75 * 0.3, 0.75 + 0.25 * 0.2]).sum()
    np.testing.assert_allclose((total, weight), (by_hand, 3), rtol=1e-6)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"predict": "replace"},
            "config.predict='replace' is not known; it is one of replaced, .*; did you mean replaced",
        ),
        ({"masking.kind": "next"}, "masks nothing to replace"),
        ({"coefficients": {"mlm": 1.0}}, "the loss has the terms mlm, replaced"),
    ],
)
def test_impossible_configurations_are_refused(fields, message):
    config, _ = read_config("experiments/configs/electra.py:toy")
    with config.unlocked():
        config.update_from_flattened_dict({name: value for name, value in fields.items() if name != "coefficients"})
        if "coefficients" in fields:
            config.coefficients = fields["coefficients"]
    with pytest.raises(ValueError, match=message):
        build_step(config, build_objective(config, None)[1])


@pytest.mark.parametrize("predict", objective.PREDICTS)
def test_the_work_of_a_step(predict):
    """Counted by hand for `toy` with rows of 20 pieces, three of them masked."""
    config, _ = read_config("experiments/configs/electra.py:toy")
    config.update(length=20, predict=predict)
    _, built_objective = build_objective(config, 1_000)
    work = built_objective.work(jax.eval_shape(built_objective.init, jax.random.key(0)), 20)
    generator = 2 * (4 * 64**2 + 2 * 64 * 256 + 2 * 64 * 20) + 128 * 64 + 3 / 20 * (64 * 128 + 1_000 * 128)
    layers = 2 * (4 * 128**2 + 2 * 128 * 512 + 2 * 128 * 20)
    detect, words = 128 * 128 + 128, 128 * 128 + 1_000 * 128
    second = {"masked": 3 / 20 * words, "all": detect + words}.get(predict, detect)
    assert work == pytest.approx(6 * (generator + layers + second))


@pytest.mark.parametrize(
    ("recipe", "fields", "texts"),
    [("base", {}, "sentences"), ("base", {"objective": "documents"}, "documents"),
     ("toy", {}, "documents"), ("toy", {"objective": "sentences"}, "sentences")],
)  # fmt: skip
def test_masked_words_without_a_generator_read_the_rows_that_the_objective_names(recipe, fields, texts):
    config, _ = read_config(f"electra:{recipe}")
    config.update(fields)
    assert build_objective(config, VOCABULARY)[1].phases[0].examples.objective == texts
