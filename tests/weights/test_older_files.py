"""`flax_model.msgpack` and `tf_model.h5`: equal to the same weights as safetensors; errors for damaged files."""

import json
import re
import shutil

import h5py
import msgpack
import numpy as np
import pytest
from flax.serialization import to_bytes
from flax.traverse_util import unflatten_dict

from bert_elmo_jax import load
from bert_elmo_jax.inference.read_model import read_weights
from bert_elmo_jax.weights.flax_msgpack import read_flax
from bert_elmo_jax.weights.huggingface_files import read_folder
from bert_elmo_jax.weights.keras_hdf5 import read_keras
from bert_elmo_jax.weights.parameter_tree import flatten

FAMILIES = ("roberta_tiny", "distilbert_tiny", "electra_tiny/discriminator", "electra_tiny/generator", "gpt2_tiny",
            "transformer_tiny")  # fmt: skip
TABLES = ("wte", "wpe", "embed_tokens", "embed_positions", "shared")


def turned(folder, kinds):
    """Yield a folder's tensors as Flax or Keras would store them; `kinds` are their words for weights."""
    kernel, table, norm, bias = kinds
    for name, tensor in read_folder(folder)[1].items():
        *modules, kind = name.split(".")
        array = np.array(tensor.read())
        if kind == "weight" and array.ndim == 1:
            yield [*modules, norm], array
        elif kind == "weight" and (modules[-1] in TABLES or modules[-1].endswith("embeddings")):
            yield [*modules, table], array
        elif kind == "weight":
            yield [*modules, kernel], array.T
        else:
            yield [*modules, bias if modules and modules[-1].lower().endswith("norm") else kind], array


def flax_tree(folder):
    arrays = turned(folder, ("kernel", "embedding", "scale", "bias"))
    return {"/".join(parts): array for parts, array in arrays}


def keras_weights(folder):
    """Return weights by full name; GPT-2's layers have other names in TensorFlow."""
    weights = {}
    for parts, array in turned(folder, ("kernel", "embeddings", "gamma", "beta")):
        name = re.sub(r"/(layer|layers|h)/(\d+)/", r"/\1_._\2/", "/" + "/".join(parts))
        if "/c_" in name:
            array = array.T if name.endswith("kernel") else array[None]
            name = name.replace("/kernel", "/weight")
        weights[f"tf_model_1{name}:0"] = array
    return weights


def write_flax(folder, tree, shards=0):
    if not shards:
        (folder / "flax_model.msgpack").write_bytes(to_bytes(unflatten_dict(tree, sep="/")))
        return
    places = {name: f"flax_model-{1 + n % shards:05}-of-{shards:05}.msgpack" for n, name in enumerate(tree)}
    for file in set(places.values()):
        part = {name: array for name, array in tree.items() if places[name] == file}
        (folder / file).write_bytes(to_bytes(unflatten_dict(part, sep="/")))
    (folder / "flax_model.msgpack.index.json").write_text(json.dumps({"weight_map": places}))


def write_keras(folder, weights, shards=0):
    if not shards:
        with h5py.File(folder / "tf_model.h5", "w") as file:
            for name, array in weights.items():
                file[f"{name.split('/')[1]}/{name}"] = array
        return
    places = {name: f"tf_model-{1 + n % shards:05}-of-{shards:05}.h5" for n, name in enumerate(weights)}
    for name, place in places.items():
        with h5py.File(folder / place, "a") as file:
            file[name.partition("/")[2]] = weights[name]
    (folder / "tf_model.h5.index.json").write_text(json.dumps({"weight_map": places}))


@pytest.mark.parametrize("folder", ["flax_msgpack", "tf_h5"])
def test_equal_to_the_same_weights_as_safetensors(goldens, folder):
    params, config, report = read_weights(goldens / folder)
    expected, expected_config, _ = read_weights(goldens / "bert_tiny")
    assert config == expected_config
    assert flatten(params).keys() == flatten(expected).keys()
    assert all(np.array_equal(array, flatten(expected)[path]) for path, array in flatten(params).items())
    assert not (report.missing or report.unexpected or report.initialised)
    assert load(goldens / folder).fingerprint == load(goldens / "bert_tiny").fingerprint


@pytest.mark.parametrize("shards", [0, 3])
@pytest.mark.parametrize("framework", ["flax", "keras"])
@pytest.mark.parametrize("golden", FAMILIES)
def test_other_families_and_shards(goldens, tmp_path, golden, framework, shards):
    source = goldens / golden
    for file in source.glob("*.json"):
        shutil.copy(file, tmp_path)
    if framework == "flax":
        write_flax(tmp_path, flax_tree(source), shards)
    else:
        write_keras(tmp_path, keras_weights(source), shards)
    params, _, report = read_weights(tmp_path)
    expected = flatten(read_weights(source)[0])
    assert not report.unexpected
    assert flatten(params).keys() == expected.keys()
    assert all(np.array_equal(array, expected[path]) for path, array in flatten(params).items())


def test_better_files_are_preferred(goldens, tmp_path):
    for name in ("bert_tiny/config.json", "flax_msgpack/flax_model.msgpack", "tf_h5/tf_model.h5"):
        shutil.copy(goldens / name, tmp_path)
    source = read_folder(tmp_path)[0]
    assert source == f"{tmp_path / 'flax_model.msgpack'} (not read: tf_model.h5)"
    shutil.copy(goldens / "bert_tiny/model.safetensors", tmp_path)
    assert read_folder(tmp_path)[0].startswith(str(tmp_path / "model.safetensors"))


def array_of(sizes, dtype="float32", numbers=b"\0" * 8, code=1):
    return msgpack.ExtType(code, msgpack.packb([sizes, dtype, numbers]))


def test_large_arrays_in_parts_and_half_precision(tmp_path, monkeypatch):
    import flax.serialization as flax
    import ml_dtypes

    monkeypatch.setattr(flax, "MAX_CHUNK_SIZE", 16)
    large = np.arange(30, dtype=np.float32).reshape(5, 6)
    tree = {"params": {"wte": {"embedding": large}, "ln": {"scale": np.ones(3, ml_dtypes.bfloat16)}}}
    (tmp_path / "flax_model.msgpack").write_bytes(to_bytes(tree))
    tensors = read_flax(tmp_path / "flax_model.msgpack")
    assert np.array_equal(tensors["wte.weight"].read(), large)
    assert tensors["ln.weight"].dtype == "bfloat16"


DAMAGED = [  # the content of a file, and the message
    (b"", "is not a msgpack file of Flax but empty"),
    (b"<!DOCTYPE html>", "is not a msgpack file of Flax but a web page"),
    (b"version https://git-lfs.github.com/spec/v1", "a git-lfs pointer"),
    (msgpack.packb([1]), "holds a list instead of a tree"),
    (msgpack.packb({"a": {"kernel": 3}}), "a/kernel is a int; a parameter is an array"),
    (msgpack.packb({"a": [1] * 33}), "cut short or damaged .*33 exceeds max_array_len"),
    (msgpack.packb({"a": array_of([2, 2])}), r"an array of the shape \[2, 2\] with 2 numbers"),
    (msgpack.packb({"a": array_of([-1, -2])}), r"an array of the shape \[-1, -2\] with 2"),
    (msgpack.packb({"a": array_of([2**40, 2**40, 2**40])}), r"an array of the shape .* with 2 numbers"),
    (msgpack.packb({"a": array_of([True, 2])}), "an array of the shape"),
    (msgpack.packb({"a": array_of([2], numbers=b"\0" * 7)}), "damaged .*buffer size must be a multiple"),
    (msgpack.packb({"a": array_of([1], dtype="object")}), "an array of the type 'object'; expected one of bool"),
    (msgpack.packb({"a": array_of([1], code=2)}), "an extension of type 2, where only arrays"),
    (msgpack.packb({"a": msgpack.ExtType(1, msgpack.packb([2, [2]]))}), "an array that is not"),
    (msgpack.packb({"a": msgpack.ExtType(1, b"\xdd\xff\xff\xff\xff")}), "cut short or damaged"),
    (
        msgpack.packb({"a": {"scale": array_of([2]), "kernel": array_of([2])}}),
        "two tensors that PyTorch calls a.weight",
    ),
    (b"\x81" + msgpack.packb("a") * 2 + b"\x00", "cut short or damaged"),
    (b"\x81\xa1a" * 2000, "cut short or damaged"),
    (
        msgpack.packb({"a": {"__msgpack_chunked_array__": True, "shape": {"0": 9}, "chunks": {"0": array_of([2])}}}),
        "the parts of a do not make up an array",
    ),
]


@pytest.mark.parametrize(("content", "message"), DAMAGED)
def test_damaged_msgpack(tmp_path, content, message):
    (tmp_path / "flax_model.msgpack").write_bytes(content)
    with pytest.raises(ValueError, match=f"flax_model.msgpack.*{message}"):
        read_flax(tmp_path / "flax_model.msgpack")


@pytest.mark.parametrize(("folder", "name"), [("flax_msgpack", "flax_model.msgpack"), ("tf_h5", "tf_model.h5")])
def test_truncated_files(goldens, tmp_path, folder, name):
    content = (goldens / folder / name).read_bytes()
    shutil.copy(goldens / folder / "config.json", tmp_path)
    (tmp_path / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=rf"{name} of {len(content) // 2:,} bytes is cut short or damaged"):
        load(tmp_path)


def test_refused_hdf5_files(tmp_path):
    path = tmp_path / "tf_model.h5"
    with h5py.File(path, "w") as file:
        file["bert/tf/bert/pooler/dense/kernel:0"] = h5py.ExternalLink("/etc/passwd", "/x")
    with pytest.raises(ValueError, match="A file of a model may not name another file"):
        read_keras(path)
    with h5py.File(path, "w") as file:
        file["bert/tf/bert/pooler/dense/kernel:0"] = np.ones((2, 2))
        file["copy/tf/bert/pooler/dense/kernel:0"] = np.zeros((2, 2))
    with pytest.raises(ValueError, match=r"holds bert\.pooler\.dense\.weight twice, with different numbers"):
        read_keras(path)


def test_a_shard_that_lacks_a_tensor(goldens, tmp_path):
    shutil.copy(goldens / "roberta_tiny/config.json", tmp_path)
    tree = flax_tree(goldens / "roberta_tiny")
    write_flax(tmp_path, tree, 2)
    index = tmp_path / "flax_model.msgpack.index.json"
    places = json.loads(index.read_text())["weight_map"]
    index.write_text(json.dumps({"weight_map": places | {"roberta/x/kernel": next(iter(places.values()))}}))
    with pytest.raises(ValueError, match=r"not in their files: roberta\.x\.weight in flax_model-"):
        read_weights(tmp_path)
