import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.family import FAMILY
from bert_elmo_jax.families.init_params import init_params, init_task_params
from bert_elmo_jax.heads.modules import Choice, Classify, Span, Tag
from bert_elmo_jax.heads.task_head import TaskHead
from bert_elmo_jax.nn.transformer import MaskedLM, NextSentence

from ..families.logits import pretraining_logits

pytestmark = pytest.mark.usefixtures("strict_dtypes")

CONFIG = BertConfig(
    vocab_size=50, hidden_size=16, num_layers=1, num_heads=2, feed_forward_size=20, max_positions=9, dropout=0.5,
    initializer_range=0.2,
)  # fmt: skip
logits_of = jax.jit(functools.partial(pretraining_logits, CONFIG))
TASKS = [TaskHead(kind, 3, initializer_range=0.2) for kind in ("classification", "choice", "tags", "questions")]


@functools.partial(jax.jit, static_argnums=(1, 2))
def make(key, heads, tasks):
    """Return fresh parameters of the encoder and of pretraining heads, and of task heads."""
    return init_params(FAMILY, CONFIG, key, heads), [init_task_params(FAMILY, CONFIG, head, key) for head in tasks]


@pytest.fixture(scope="module")
def params():
    params, of_tasks = jax.device_get(make(jax.random.key(0), ("mlm", "nsp"), tuple(TASKS)))
    return {**params, **{head.name: head_params[head.name] for head, head_params in zip(TASKS, of_tasks)}}


def test_the_tree_is_the_one_that_was_agreed(params):
    d, f, v, c = 16, 20, 50, 3

    def dense(i, o):
        return {"kernel": (i, o), "bias": (o,)}

    norm = {"scale": (d,), "bias": (d,)}
    layer = {
        "attention": {name: dense(d, d) for name in ("query", "key", "value", "output")} | {"norm": norm},
        "feed_forward": {"up": dense(d, f), "down": dense(f, d), "norm": norm},
    }
    assert jax.tree.map(np.shape, params) == {
        "encoder": {
            "embeddings": {"word": (v, d), "position": (9, d), "type": (2, d), "norm": norm},
            "layer_0": layer,
            "pooler": dense(d, d),
        },
        "mlm": {"dense": dense(d, d), "norm": norm, "bias": (v,)},
        "nsp": dense(d, 2),
        "classify": dense(d, c),
        "choice": dense(d, 1),
        "tag": dense(d, c),
        "span": dense(d, 2),
    }
    assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {jnp.dtype("float32")}


def test_a_part_does_not_depend_on_the_other_heads(params):
    nsp_params, [other] = make(jax.random.key(0), ("nsp",), (TASKS[3],))
    assert sorted(nsp_params) == ["encoder", "nsp"]
    jax.tree.map(np.testing.assert_array_equal, nsp_params, {name: params[name] for name in nsp_params})
    assert sorted(other) == ["encoder", "span"]
    without = {name: leaf for name, leaf in params["encoder"].items() if name != "pooler"}  # a span does not read it
    jax.tree.map(np.testing.assert_array_equal, other["encoder"], without)
    jax.tree.map(np.testing.assert_array_equal, other["span"], params["span"])
    _, [another] = make(jax.random.key(1), ("nsp",), (TASKS[3],))
    assert (another["span"]["kernel"] != other["span"]["kernel"]).all()


def test_an_unknown_head_names_those_there_are():
    with pytest.raises(ValueError, match="a BERT has no head 'ner'; it has mlm, nsp"):
        init_params(FAMILY, CONFIG, jax.random.key(0), ("ner",))


def apply(head, params, *inputs, **options):
    compute = jax.jit(functools.partial(head.apply, **{n: v for n, v in options.items() if n == "deterministic"}))
    arrays = {name: value for name, value in options.items() if name != "deterministic"}
    return jax.device_get(compute({"params": params}, *inputs, **arrays))


def test_heads_are_dense_layers_in_float32(params):
    hidden = np.random.default_rng(1).normal(size=(4, 7, 16)).astype(np.float32)
    pooled = hidden[:, 0]

    def dense(name, x):
        return x @ params[name]["kernel"] + params[name]["bias"]

    pairs = [
        (apply(NextSentence(CONFIG), params["nsp"], pooled), dense("nsp", pooled)),
        (apply(Classify(3), params["classify"], pooled), dense("classify", pooled)),
        (apply(Tag(3), params["tag"], hidden), dense("tag", hidden)),
        (apply(Choice(), params["choice"], pooled.reshape(2, 2, 16)), dense("choice", pooled).reshape(2, 2)),
        (np.stack(apply(Span(), params["span"], hidden), -1), dense("span", hidden)),
    ]
    for ours, expected in pairs:
        np.testing.assert_allclose(ours, expected, atol=1e-5)
    half, words = jnp.asarray(hidden, jnp.bfloat16), params["encoder"]["embeddings"]["word"]
    rough = MaskedLM(dataclasses.replace(CONFIG, dtype="bfloat16"))
    for head, name, *inputs in ((Tag(3), "tag"), (Span(), "span"), (rough, "mlm", words)):
        shapes = jax.eval_shape(head.apply, {"params": params[name]}, half, *inputs)
        assert {leaf.dtype for leaf in jax.tree.leaves(shapes)} == {jnp.dtype("float32")}


def test_dropout_before_the_dense_layer_and_none_in_span_and_nsp(params):
    hidden = jnp.ones((4, 7, 16))
    random = {"rngs": {"dropout": jax.random.key(0)}}
    for head, name, x in [
        (Classify(3, 0.5), "classify", hidden[:, 0]),
        (Tag(3, 0.5), "tag", hidden),
        (Choice(0.5), "choice", hidden),
    ]:
        quiet = apply(head, params[name], x)
        noisy = apply(head, params[name], x, deterministic=False, **random)
        assert (quiet != noisy).mean() > 0.9
        none = head.clone(rate=0.0)
        np.testing.assert_array_equal(quiet, apply(none, params[name], x, deterministic=False, **random))


def test_mlm_at_positions_is_mlm_everywhere_gathered(params):
    hidden = np.random.default_rng(1).normal(size=(2, 7, 16)).astype(np.float32)
    words = params["encoder"]["embeddings"]["word"]
    positions = np.array([[0, 6, 6], [3, 1, 0]])
    everywhere = apply(MaskedLM(CONFIG), params["mlm"], hidden, words)
    at_positions = apply(MaskedLM(CONFIG), params["mlm"], hidden, words, positions)
    np.testing.assert_allclose(at_positions, np.take_along_axis(everywhere, positions[..., None], 1), atol=1e-5)


def test_the_embeddings_learn_from_both_ends(params):
    tokens = np.array([[2, 40, 4, 3]])

    def total(params):
        logits = logits_of(params, tokens, mlm_positions=np.array([[2]]), nsp_positions=np.zeros((1, 1), int))
        return logits.mlm[0, 0, 17]

    gradient = np.asarray(jax.jit(jax.grad(total))(params)["encoder"]["embeddings"]["word"])
    assert (np.abs(gradient).max(1) > 0).nonzero()[0].tolist() == [2, 3, 4, 17, 40]


def test_several_pairs_a_row(params):
    tokens = np.array([[2, 40, 3, 2, 9, 3]])
    segments, positions = np.array([[1, 1, 1, 2, 2, 2]]), np.array([[0, 1, 2, 0, 1, 2]])
    places = {"mlm_positions": np.array([[1, 4]]), "nsp_positions": np.array([[0, 3]])}
    both = jax.device_get(logits_of(params, tokens, None, positions, segments, **places))
    places = {"mlm_positions": np.array([[1], [1]]), "nsp_positions": np.zeros((2, 1), int)}
    separate_logits = jax.device_get(logits_of(params, tokens.reshape(2, 3), **places))
    np.testing.assert_allclose(both.nsp[0], separate_logits.nsp[:, 0], atol=1e-5)
    np.testing.assert_allclose(both.mlm[0], separate_logits.mlm[:, 0], atol=1e-5)
