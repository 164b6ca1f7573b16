"""Models in int8: close to float32, packed, saved and read again; not trained."""

import functools
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.inference.changed_predictions import changed_predictions
from bert_elmo_jax.inference.convert import convert
from bert_elmo_jax.nn.int8_kernels import is_int8, quantise_layers
from bert_elmo_jax.runs.pretraining import start_model
from bert_elmo_jax.runs.with_head import _read_encoder

GOLDENS = Path(__file__).parents[1] / "goldens"
# One of each kind of layer: after and before norms, gated, with relative positions, shared, causal.
OTHER_FOLDERS = ("modernbert_tiny", "mpnet_tiny", "albert_tiny/mlm", "gpt2_tiny")
FOLDERS = ["bert_tiny", *(pytest.param(name, marks=pytest.mark.long) for name in OTHER_FOLDERS)]
load_once = functools.cache(load)


def cosines(a, b):
    return (a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)


@pytest.mark.parametrize("name", FOLDERS)
def test_vectors_are_close_to_float32(name):
    float32, int8 = load_once(GOLDENS / name), load_once(GOLDENS / name, dtype="int8")
    tokens = np.random.default_rng(0).integers(5, float32.config.vocab_size, (3, 12))
    outputs = (
        model.forward(tokens, mask=(np.arange(12)[None, :] < np.array([[12], [9], [4]])).astype(np.int32))
        for model in (float32, int8)
    )
    first, second = (np.asarray(output.last) for output in outputs)
    for row, size in enumerate((12, 9, 4)):
        assert cosines(first[row, :size].mean(0), second[row, :size].mean(0)) > 0.99
    assert not np.array_equal(first, second)
    kernels = [x for x in jax.tree.leaves(int8.params) if x.dtype == jnp.int8]
    assert kernels and all(x.ndim == 2 for x in kernels)


@pytest.mark.long
def test_texts_of_a_packed_row_do_not_mix():
    model = load_once(GOLDENS / "bert_tiny", dtype="int8")
    texts = ["[MASK] [MASK] [MASK]", "[MASK]", "[MASK] [MASK]"] * 4
    together = model.sentences(texts)
    single_vectors = np.concatenate([model.sentences([text]) for text in texts[:3]])
    assert np.abs(together[:3] - single_vectors).max() < 1e-4 * np.abs(single_vectors).max()


def test_predictions_change_in_few_rows():
    folder = GOLDENS / "released_heads" / "roberta_nli3"
    frozen = json.loads((folder / "predictions.json").read_text(encoding="utf-8"))["inputs"]
    inputs = [(text["text"], text["text_pair"]) for text in frozen]
    before, after = (load(folder, dtype=dtype).predict(inputs) for dtype in ("float32", "int8"))
    assert len(changed_predictions(before, after)) <= len(inputs) // 10
    assert max(abs(a.probability - b.probability) for a, b in zip(before, after)) < 0.1


@pytest.mark.usefixtures("as_users_run")
def test_converted_folder_is_smaller_and_computes_the_same(tmp_path):
    source, small, same = GOLDENS / "bert_tiny", tmp_path / "small", tmp_path / "same"
    assert convert(str(source), small, dtype="int8")[0] == "run"
    convert(str(source), same, to_format="run")
    model = load(small)
    texts = ["[MASK] [MASK]", "[MASK]"]
    assert np.array_equal(model.sentences(texts), load_once(source, dtype="int8").sentences(texts))
    assert np.array_equal(load(small, dtype="int8").sentences(texts), model.sentences(texts))
    sizes = [sum(file.stat().st_size for file in folder.rglob("*")) for folder in (small, same)]
    assert sizes[0] < 0.8 * sizes[1]
    again = tmp_path / "again"
    convert(str(small), again, to_format="run")
    assert load(again).fingerprint == model.fingerprint
    refusals = {
        "which only run directories hold": lambda: convert(str(small), tmp_path / "foreign"),
        "leave out dtype='bfloat16'": lambda: load(small, dtype="bfloat16"),
        "which can predict but not be trained": lambda: _read_encoder(str(small), "--init"),
        "--init=.* is an int8 model, which can predict": lambda: start_model(model.family, None, str(small), None),
    }
    for message, call in refusals.items():
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.usefixtures("as_users_run")
def test_other_models_types_and_gradients_are_refused():
    with pytest.raises(ValueError, match="is no transformer"):
        load(GOLDENS / "elmo_tiny", dtype="int8")
    with pytest.raises(ValueError, match="dtype='int4' is not known"):
        load(GOLDENS / "bert_tiny", dtype="int4")
    model = load_once(GOLDENS / "bert_tiny", dtype="int8")
    tokens = jnp.ones((1, 4), jnp.int32)

    def loss(shift):
        words = model.params["encoder"]["embeddings"]["word"] + shift
        params = {**model.params["encoder"], "embeddings": {**model.params["encoder"]["embeddings"], "word": words}}
        return model.module.apply({"params": params}, tokens).last.sum()

    with pytest.raises(TypeError, match="an int8 model has no gradients"):
        jax.grad(loss)(0.0)


def test_quantised_twice_is_the_same():
    once = quantise_layers({"layer_0": {"up": {"kernel": np.eye(3, dtype=np.float32), "bias": np.ones(3)}}})
    assert is_int8(once) and not is_int8({"layer_0": {}})
    twice = quantise_layers(once)
    assert jax.tree.all(jax.tree.map(np.array_equal, once, twice))
    zeros = quantise_layers({"layer_0": {"kernel": np.zeros((2, 2), np.float32)}})
    assert np.isfinite(zeros["layer_0"]["kernel_scale"]).all() and not zeros["layer_0"]["kernel"].any()
