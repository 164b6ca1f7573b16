"""ELMo's HDF5 files: every kind of damage to weights or options, and its error message."""

import functools

import h5py
import numpy as np
import pytest

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.elmo import hdf5_weights
from bert_elmo_jax.families.elmo.model import elmo_shapes
from bert_elmo_jax.inference.read_model import detect, read_weights
from bert_elmo_jax.weights.parameter_tree import flatten

from ...weights.conftest import elmo_datasets as datasets
from ...weights.conftest import elmo_options as options
from .test_hdf5_weights import CELL, CONFIG

FILTERS = "char_cnn.filters is {}, but the weights have [[1, 2], [2, 3], [3, 4]]"
WORDS = {"characters": False, "words": 7}


def test_all_that_does_not_fit_is_named(elmo_folder):
    tensors = datasets()
    for name in ("CNN/b_cnn_1", f"{CELL}/W_P_0", "RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/B"):
        del tensors[name]
    tensors["CNN_proj/W_proj"] = np.ones((9, 5), "f4")
    tensors["CNN_high_0/b_carry"] = np.ones(9, "i4")
    tensors["CNN/W_cnn_0"] = tensors["CNN/W_cnn_0"][0]
    tensors["강/word"] = np.ones(2, "f4")
    tensors["global_step"] = np.array(5)
    with pytest.raises(ValueError) as caught:
        read_weights(elmo_folder(tensors, options()))
    for line in (
        f"missing (3): CNN/b_cnn_1, {CELL}/W_P_0, RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/B",
        "mis-shaped (3):",
        "  CNN_proj/W_proj: [9, 5], expected [9, 4]",
        "  CNN_high_0/b_carry: of int32, expected one of bfloat16, float16, float32, float64",
        "  CNN/W_cnn_0: [1, 3, 2], expected [1, 1, 3, 2]",
        "unexpected, not used (2): global_step, 강/word",
    ):
        assert line in str(caught.value).splitlines()
    assert "contradicted" not in str(caught.value)


def test_a_group_where_a_dataset_should_be(elmo_folder):
    tensors = datasets()
    for name in ("char_embed", f"{CELL}/W_0"):
        tensors[f"{name}/values"] = tensors.pop(name)
    with pytest.raises(ValueError) as caught:
        read_weights(elmo_folder(tensors, options()))
    message = str(caught.value)
    assert "  char_embed: a group, expected a dataset [261, 3]" in message
    assert f"  {CELL}/W_0: a group, expected a dataset [8, 24]" in message
    assert f"unexpected, not used (2): {CELL}/W_0/values, char_embed/values" in message
    assert "missing" not in message


@pytest.mark.parametrize(
    ("sizes", "fields", "lines"),
    [
        ({}, {"dim": 4096}, ["lstm.dim is 4096, but the weights have 6"]),
        ({}, {"width": 512}, ["lstm.projection_dim is 512, but the weights have 4"]),
        ({"layers": 1}, {}, ["lstm.n_layers is 2, but the weights have 1 (Cell0)"]),
        ({}, {"highways": 2}, ["char_cnn.n_highway is 2, but the weights have 1 (CNN_high_0)"]),
        ({"highways": 2}, {}, ["char_cnn.n_highway is 1, but the weights have 2 (CNN_high_0, CNN_high_1)"]),
        ({"highways": 0}, {}, ["char_cnn.n_highway is 1, but the weights have 0"]),
        ({}, {"embedding": 16}, ["char_cnn.embedding.dim is 16, but the weights have 3"]),
        ({}, {"filters": ((1, 2), (2, 3))}, [FILTERS.format("[[1, 2], [2, 3]]")]),
        ({}, {"filters": ((1, 2), (2, 3), (4, 4))}, [FILTERS.format("[[1, 2], [2, 3], [4, 4]]")]),
        ({"softmax": 7}, {"n_tokens_vocab": 8}, ["n_tokens_vocab is 8, but the weights have 7"]),
        (WORDS, {"n_tokens_vocab": 8, "characters": False}, ["n_tokens_vocab is 8, but the weights have 7"]),
        (WORDS, {}, ["there is a char_cnn (character input), but the weights have embedding and no char_embed"]),
        ({}, {"characters": False, "n_tokens_vocab": 8},
         ["there is no char_cnn (word input), but the weights have char_embed and no embedding"]),
        ({"projection": False, "dim": 4}, {"dim": 6}, ["lstm.dim is 6, but the weights have 4"]),
        ({"projection": False, "dim": 6, "width": 6}, {}, ["lstm.projection_dim is 4, but the weights have 6"]),
        ({"layers": 3, "dim": 5}, {"dim": 4096, "highways": 4},
         ["lstm.n_layers is 2, but the weights have 3 (Cell0, Cell1, Cell2)",
          "lstm.dim is 4096, but the weights have 5", "char_cnn.n_highway is 4, but the weights have 1 (CNN_high_0)"]),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_options_that_contradict_the_weights(elmo_folder, sizes, fields, lines):
    folder = elmo_folder(datasets(**sizes), options(**fields))
    with pytest.raises(ValueError, match=r"contradicted \(") as caught:
        read_weights(folder)
    error_lines = str(caught.value).splitlines()
    assert error_lines[1] == f"contradicted ({len(lines)}):"
    assert error_lines[2 : 2 + len(lines)] == [f"  {line}" for line in lines]


def test_one_dataset_of_another_shape_contradicts_nothing(elmo_folder):
    tensors = datasets()
    broken = {f"{CELL}/B": (20,), "CNN/W_cnn_1": (1, 2, 3, 9), f"{CELL}/W_P_0": (6, 5)}
    with pytest.raises(ValueError) as caught:
        read_weights(elmo_folder(tensors | {name: np.ones(shape, "f4") for name, shape in broken.items()}, options()))
    assert "contradicted" not in str(caught.value)
    for name, shape in broken.items():
        assert f"  {name}: {list(shape)}, expected {list(tensors[name].shape)}" in str(caught.value)


def test_one_direction_alone(elmo_folder):
    tensors = datasets()
    deeper = {name: value for name, value in tensors.items() if not name.startswith("RNN_1") or "Cell0" in name}
    with pytest.raises(ValueError, match=r"missing \(3\): RNN_1/.*Cell1/LSTMCell/W_0") as caught:
        read_weights(elmo_folder(deeper, options(), folder="deeper"))
    assert "contradicted" not in str(caught.value)
    forward = {name: value for name, value in deeper.items() if not name.startswith("RNN_1")}
    with pytest.raises(ValueError, match=r"missing \(6\): RNN_1/.*Cell0/LSTMCell/W_0, .*RNN_1/.*Cell1/LSTMCell/W_P_0"):
        read_weights(elmo_folder(forward, options()))


def test_unexpected_datasets_alone_are_no_error(elmo_folder):
    extra = {"단어": np.ones(2, "f4"), "global_step": np.array(5), "note": "a text"}
    _, _, report = read_weights(elmo_folder(datasets() | extra, options()))
    assert "unexpected, not used (3): global_step, note, 단어" in str(report)


def test_words_without_any_table(elmo_folder):
    with pytest.raises(ValueError, match=r"word input\), but the weights have no `embedding` but char_embed: add"):
        read_weights(elmo_folder(datasets(), options(characters=False), folder="a"))
    with pytest.raises(ValueError, match=r"word input\), but the weights have no `embedding`$"):
        read_weights(elmo_folder(datasets(characters=False), options(characters=False), folder="b"))


def test_numbers_that_are_none(elmo_folder):
    tensors = {name: array.astype("f8") for name, array in datasets().items()}
    tensors["CNN/b_cnn_0"][1], tensors[f"{CELL}/B"][0], tensors["CNN_high_0/b_carry"][0] = np.nan, np.inf, 1e300
    message = rf"3 tensors in .* hold NaN or infinity .*: CNN/b_cnn_0, CNN_high_0/b_carry, {CELL}/B"
    with pytest.raises(ValueError, match=message):
        read_weights(elmo_folder(tensors, options()))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not an HDF5 file but empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "a git-lfs pointer, not the weights: fetch"),
        (b"<!DOCTYPE html><html>404</html>", "a web page, not the weights: download the file again"),
        (b"\0" * 4096, "full of zero bytes: the download did not finish"),
        (b"PK\x03\x04 rest", "a zip archive"),
        ("안녕하세요".encode(), "is not an HDF5 file but something else"),
    ],
    ids=["empty", "pointer", "page", "zeros", "zip", "text"],
)
def test_no_hdf5_at_all(elmo_folder, content, message):
    folder = elmo_folder(content, options())
    assert detect(folder) == "elmo"
    for path in (folder, folder / "weights.hdf5"):
        with pytest.raises(ValueError, match=message):
            read_weights(path)
    # A folder without any usable file: the error describes each file.
    elmo_folder({"0": np.ones(3, "f4")}, None, weights="vectors.hdf5")
    with pytest.raises(ValueError, match=rf"has no readable ELMo: vectors.hdf5 has no LSTM .*; .*{message}"):
        read_weights(folder)


def test_a_file_cut_short_or_damaged(elmo_folder):
    folder = elmo_folder(datasets(), options())
    content = (folder / "weights.hdf5").read_bytes()
    for size in (8, 100, 800, len(content) // 2, len(content) - 1):
        (folder / "weights.hdf5").write_bytes(content[:size])
        with pytest.raises(ValueError, match=r"is cut short or damaged \(.*\): copy or download it again"):
            read_weights(folder)


@pytest.mark.long  # the tests above damage single places
def test_no_damage_is_silent_or_a_strange_error(elmo_folder, monkeypatch):
    monkeypatch.setattr(hdf5_weights, "elmo_shapes", functools.cache(elmo_shapes))  # tracing takes most of the time
    folder = elmo_folder(datasets(), options())
    content = (folder / "weights.hdf5").read_bytes()
    # The structure comes first in the file; flips among the numbers cannot be seen without a checksum.
    for place in np.random.default_rng(0).integers(0, 6000, 80):
        damaged = bytearray(content)
        damaged[place] ^= 0xFF
        (folder / "weights.hdf5").write_bytes(bytes(damaged))
        try:
            params, _, _ = read_weights(folder)
        except ValueError as error:
            assert "weights.hdf5" in str(error)
        else:
            assert {name: value.shape for name, value in flatten(params).items()} == elmo_shapes(CONFIG)


def test_compressed_numbers_that_are_damaged(elmo_folder):
    folder = elmo_folder(datasets(), options(), compression="gzip", fletcher32=True)
    with h5py.File(folder / "weights.hdf5") as file:
        place = file["char_embed"].id.get_chunk_info(0).byte_offset
    damaged = bytearray((folder / "weights.hdf5").read_bytes())
    damaged[place + 20] ^= 0xFF
    (folder / "weights.hdf5").write_bytes(bytes(damaged))
    with pytest.raises(ValueError, match=r"char_embed in .*weights.hdf5 cannot be read"):
        read_weights(folder)


def test_files_of_other_things(elmo_folder):
    folder = elmo_folder({"model_weights/dense/kernel:0": np.ones((2, 2), "f4")}, options())
    with pytest.raises(ValueError, match=r"has no ELMo: .*It has 1 datasets: model_weights/dense/kernel:0"):
        read_weights(folder)
    (folder / "weights.hdf5").unlink()
    with h5py.File(folder / "weights.hdf5", "w"):
        pass
    with pytest.raises(ValueError, match=r"has no ELMo: .*It has 0 datasets: nothing"):
        read_weights(folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "options.json is not a JSON file but empty"),
        (b"<html>404</html>", "options.json is not a JSON file but a web page, not the weights: download the file aga"),
        (b"[1]", r"JSON object .*it holds a list|holds a JSON list"),
        ("\ud55c".encode("cp949"), "is not a JSON file"),
        (b"{}", r"The options in .*options.json have no char_cnn"),
        (b'{"char_cnn": 3, "lstm": 4}', r"options.json describe no ELMo that can be honoured"),
    ],
)
def test_options_that_are_none(elmo_folder, content, message):
    with pytest.raises(ValueError, match=message):
        read_weights(elmo_folder(datasets(), content))


def test_no_options(elmo_folder):
    folder = elmo_folder(datasets(), None)
    with pytest.raises(FileNotFoundError, match=r"has no options.json .*copy it there, or give config="):
        read_weights(folder, format="elmo")
    params, config, _ = read_weights(folder, format="elmo", config=CONFIG)
    assert config is CONFIG and "token" in params["encoder"]


def test_wrong_configurations_are_refused(elmo_folder, goldens):
    folder = elmo_folder(datasets(softmax=7), None)
    with pytest.raises(ValueError, match="n_tokens_vocab is null, but the weights have 7"):
        read_weights(folder, format="elmo", config=CONFIG)
    with pytest.raises(ValueError, match=r"config= is BertConfig, but the weights in .* need ElmoConfig"):
        read_weights(folder, format="elmo", config=BertConfig())
    with pytest.raises(ValueError, match=r"config= is ElmoConfig, but the weights in .* need BertConfig"):
        read_weights(goldens / "bert_tiny", config=CONFIG)
    with pytest.raises(ValueError, match=r"classifier='tag' was given for .*, but ELMo has no classifier"):
        read_weights(goldens / "elmo_tiny", classifier="tag")
