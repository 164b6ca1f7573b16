"""A teacher's terms: by hand, equal in every way of computing a step, and refused teachers."""

import dataclasses
import functools
import re

import jax
import numpy as np
import optax
import pytest

from bert_elmo_jax import train
from bert_elmo_jax.data.rows.pieces import PieceExamples
from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.distillation import Teacher, adopt_layers, choose_layers, distil
from bert_elmo_jax.families.family import Objective, Phase
from bert_elmo_jax.families.forward import Request, run
from bert_elmo_jax.families.init_params import init_params, param_shapes
from bert_elmo_jax.families.piece_objective import piece_loss
from bert_elmo_jax.families.pieces import Pieces
from bert_elmo_jax.train.parallel import DEVICES
from bert_elmo_jax.weights.parameter_tree import nest

SIZES = {"vocab_size": 48, "hidden_size": 16, "num_heads": 2, "feed_forward_size": 32, "max_positions": 16}
STUDENT, BERT = get_family("distilbert"), get_family("bert")
MODEL = STUDENT.config(num_layers=1, dropout=0.0, attention_dropout=0.0, **SIZES)
TEACHER = BERT.config(num_layers=3, **SIZES)


def make_teacher(config=TEACHER, family=BERT, heads=("mlm", "nsp"), seed=1):
    """Return a teacher with random parameters, by numpy, which needs no compilation."""
    shapes, random = param_shapes(family, config, heads), np.random.default_rng(seed)
    params = nest({path: random.normal(0, 0.2, shape).astype(np.float32) for path, shape in shapes.items()})
    return Teacher(family, config, params, "runs/teacher")


def make_objective(family=STUDENT, model=MODEL, length=16, sequences=2):
    def extend(compare):
        return piece_loss(family, model, packed=sequences > 1, compare=compare)

    return Objective(
        init=lambda key: init_params(family, model, key, ("mlm",), pooler=False), loss=None, held_out_loss=None,
        coefficients={"mlm": 1.0}, phases=(Phase(2, 8, PieceExamples(length, "documents", sequences=sequences)),),
        work=lambda params, length: 1.0, figures=dict, score="", size=len, extend=extend,
    )  # fmt: skip


def make_batch(rows=16, seed=0):
    rng = np.random.default_rng(seed)
    segments = np.tile(np.repeat([1, 2, 0], [7, 6, 3]), (rows, 1))
    weights = rng.integers(0, 2, (rows, 4)).astype(np.float32)
    return {
        "tokens": rng.integers(1, 48, (rows, 16)), "types": np.zeros((rows, 16), int), "segments": segments,
        "positions": np.tile([*range(7), *range(6), 0, 0, 0], (rows, 1)),
        "mlm_positions": rng.integers(0, 13, (rows, 4)), "mlm_targets": rng.integers(0, 48, (rows, 4)),
        "mlm_weights": weights,
    }  # fmt: skip


@pytest.fixture(scope="module")
def learned():
    """Return an objective with a teacher, and fresh parameters of the student."""
    objective = distil(make_objective(), STUDENT, MODEL, make_teacher(), temperature=2.0)
    return objective, jax.device_get(jax.jit(objective.init)(jax.random.key(0)))


def test_terms_by_hand(learned):
    """Compute the terms with numpy from the outputs of both models."""
    objective, params = learned
    batch, teacher = make_batch(4), make_teacher()
    terms, _, _ = jax.jit(objective.loss)(params, {**batch, **objective.constants}, None, None)
    places = {name: batch[name] for name in ("tokens", "types", "positions", "segments")}
    outputs = []
    for family, model, tree in ((STUDENT, MODEL, params), (BERT, TEACHER, teacher.params)):
        request = Request(head="mlm")
        output = jax.jit(functools.partial(run, family, model, request=request))(tree, **places)
        logits = np.take_along_axis(np.asarray(output.logits), batch["mlm_positions"][..., None], axis=1)
        outputs.append((np.asarray(output.last, np.float64), logits.astype(np.float64)))
    (ours, scores), (theirs, teacher_scores) = outputs
    p, q = (np.exp(side / 2) / np.exp(side / 2).sum(-1, keepdims=True) for side in (teacher_scores, scores))
    soft = 4 * (batch["mlm_weights"] * -(p * np.log(q)).sum(-1)).sum()
    real = batch["segments"] > 0
    norms = np.linalg.norm(ours, axis=-1) * np.linalg.norm(theirs, axis=-1)
    distance = (1 - (ours * theirs).sum(-1) / norms)[real].sum()
    assert set(terms) == {"mlm", "soft", "cosine"} == set(objective.coefficients)
    np.testing.assert_allclose(terms["soft"], (soft, batch["mlm_weights"].sum()), rtol=1e-4)
    np.testing.assert_allclose(terms["cosine"], (distance, real.sum()), rtol=1e-4)
    plain = jax.jit(piece_loss(STUDENT, MODEL))(params, batch, None, None)[0]
    np.testing.assert_allclose(terms["mlm"], plain["mlm"], rtol=1e-6)


def test_a_model_that_is_its_teacher_has_nothing_to_learn_from_it():
    """The gradients of `soft` and `cosine` are zero."""
    same = make_teacher(MODEL, STUDENT, ("mlm",))
    objective = distil(make_objective(), STUDENT, MODEL, same, temperature=1.5)
    params = {**same.params, "encoder": {n: part for n, part in same.params["encoder"].items() if n != "pooler"}}

    def loss(params):
        terms = objective.loss(params, {**make_batch(4), **objective.constants}, None, None)[0]
        return terms["soft"][0] + terms["cosine"][0]

    for leaf in jax.tree.leaves(jax.jit(jax.grad(loss))(params)):
        np.testing.assert_allclose(leaf, 0, atol=1e-4)


WAYS = {"one device": (1, 1), "eight devices, fsdp, parts": (8, 2), "pmap, parts": (0, 2)}


@pytest.fixture(scope="module")
def expected(learned):
    return update(*learned, *WAYS["one device"])


def update(objective, params, devices, accumulate):
    axis = None if devices else DEVICES
    coefficients = {"mlm": 2.0, "soft": 5.0, "cosine": 1.0}
    step = train.make_step(
        objective.loss, optax.sgd(1.0), coefficients, accumulate=accumulate, carry_axis=2, axis=axis, **objective.step
    )
    state = train.new_state(params, optax.sgd(1.0), jax.random.key(0))
    if devices:
        mesh = train.make_mesh(fsdp=4 if devices > 1 else 1, devices=jax.devices()[:devices])
        parallel = train.over_mesh(step, state, mesh, (*STUDENT.sharding, *train.RULES), objective.constants)
    else:
        parallel = train.over_pmap(step, carry_axis=2, constants=objective.constants)
    state, metrics = parallel.step(parallel.place(state), parallel.put(make_batch()))
    return jax.device_get((parallel.gather(state).params, metrics["loss"]))


@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=[pytest.mark.long] if "pmap" in way else []) for way in WAYS if way != "one device"]
)
@pytest.mark.devices
def test_the_same_update(learned, expected, way):
    params, loss = update(*learned, *WAYS[way])
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-6), params, expected[0])
    np.testing.assert_allclose(loss, expected[1], rtol=1e-6)  # a float32 near 86 has steps of 8e-6


def test_the_teacher_is_an_argument_of_the_step_and_not_a_part_of_the_state(learned):
    """No large array is a constant of the program, and a checkpoint holds the student alone."""
    objective, params = learned
    step = train.make_step(objective.loss, optax.adam(1.0), objective.coefficients, **objective.step)
    state = train.new_state(params, optax.adam(1.0), jax.random.key(0))
    program = jax.make_jaxpr(step)(state, {**make_batch(4), **objective.constants})
    assert all(np.size(constant) < 100 for constant in program.consts)
    assert not any("teacher" in jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(state))
    assert "pooler" not in objective.constants["teacher"]["encoder"]
    assert set(objective.constants["teacher"]) == {"encoder", "mlm"}


def test_a_term_is_left_out_and_a_larger_vocabulary_is_cut():
    wide = dataclasses.replace(TEACHER, hidden_size=32, vocab_size=50)
    objective = distil(make_objective(), STUDENT, MODEL, make_teacher(wide), temperature=2.0, terms=("soft",))
    params = jax.eval_shape(objective.init, jax.random.key(0))
    terms = jax.eval_shape(objective.loss, params, {**make_batch(4), **objective.constants}, None, None)[0]
    assert set(terms) == {"mlm", "soft"}
    assert objective.work(params, 16) > 1.0


@pytest.mark.parametrize(
    ("teacher", "layers"), [((12, 6), [0, 2, 4, 7, 9, 11]), ((2, 1), [0]), ((4, 2), [0, 3]), ((3, 3), [0, 1, 2])]
)
def test_layers_are_evenly_spaced(teacher, layers):
    assert choose_layers(*teacher) == layers


def test_layers_and_tables_come_from_the_teacher_where_shapes_agree():
    teacher = make_teacher().params
    model = dataclasses.replace(MODEL, num_layers=2, max_positions=8)
    fresh = jax.jit(lambda: init_params(STUDENT, model, jax.random.key(0), ("mlm",), pooler=False))()
    adopted, left = adopt_layers(fresh, teacher)
    assert left == ["encoder/embeddings/position"]
    assert jax.tree.structure(adopted) == jax.tree.structure(fresh)
    for layer, source in ((0, 0), (1, 2)):
        ours, theirs = adopted["encoder"][f"layer_{layer}"], teacher["encoder"][f"layer_{source}"]
        jax.tree.map(np.testing.assert_array_equal, ours, theirs)
    jax.tree.map(np.testing.assert_array_equal, adopted["mlm"], teacher["mlm"])


CAUSAL = dataclasses.replace(TEACHER, causal=True)
REFUSED = [
    (
        {"teacher": make_teacher(heads=("nsp",))},
        "masked pieces (its heads: nsp): use a pretrained model that reads pieces",
    ),
    ({"teacher": make_teacher(heads=())}, "(its heads: none)"),
    ({"teacher": make_teacher(dataclasses.replace(TEACHER, vocab_size=40))}, "has 40 pieces, and the model 48"),
    ({"teacher": make_teacher(dataclasses.replace(TEACHER, max_positions=8))}, "has 8 positions, and the rows 16"),
    ({"teacher": make_teacher(dataclasses.replace(TEACHER, hidden_size=32))}, "use --config.coefficients.cosine=0"),
    ({"teacher": make_teacher(CAUSAL)}, "sees only the pieces before it, and one of the model all pieces"),
    (
        {"teacher": make_teacher(family=dataclasses.replace(BERT, inputs=Pieces(packs=False)))},
        "use --config.sequences=1",
    ),
    ({"objective": make_objective()._replace(extend=None)}, "only an objective of masked pieces learns from a teacher"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED, ids=[message[:20] for _, message in REFUSED])
def test_wrong_teachers_are_refused(changes, message):
    arguments = {"objective": make_objective(), "teacher": make_teacher(), **changes}
    with pytest.raises(ValueError, match=re.escape(message)):
        distil(arguments["objective"], STUDENT, MODEL, arguments["teacher"], temperature=2.0)
