"""ELMo's HDF5: released files, own dumps, words and characters, and everything that can be wrong with them."""

import dataclasses
import json
import shutil

import h5py
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bert_elmo_jax.families.elmo import hdf5_weights as elmo_hdf5
from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.families.elmo.model import elmo_shapes, init_elmo_params
from bert_elmo_jax.inference.read_model import detect, read_weights
from bert_elmo_jax.weights.parameter_tree import flatten, nest

from ...weights.conftest import elmo_datasets as datasets
from ...weights.conftest import elmo_options as options

SMALL = {"char_embedding_size": 3, "filters": ((1, 2), (2, 3), (3, 4)), "num_highways": 1}


CONFIG = ElmoConfig(cell_size=6, projection_size=4, **SMALL)


CELL = "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell"


def random_params(config, lm=False, seed=0):
    rng = np.random.default_rng(seed)
    return nest({name: rng.normal(size=shape).astype(np.float32) for name, shape in elmo_shapes(config, lm).items()})


def assert_same(a, b):
    a, b = flatten(a), flatten(b)
    assert a.keys() == b.keys()
    for name in a:
        assert a[name].dtype == np.float32 and a[name].flags["C_CONTIGUOUS"]
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def test_a_released_file(elmo_folder):
    tensors = datasets()
    params, config, report = read_weights(elmo_folder(tensors, options()))
    assert config == CONFIG
    assert (report.heads, report.unexpected, report.skipped) == ((), [], {})
    flat, last = flatten(params), "RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell"
    assert set(report.mapped) == set(flat) and set(report.mapped.values()) == set(tensors)
    for ours, theirs in {
        "token/embedding": tensors["char_embed"], "token/conv_2/kernel": tensors["CNN/W_cnn_2"][0],
        "token/highway_0/carry/kernel": tensors["CNN_high_0/W_carry"],
        "token/highway_0/transform/bias": tensors["CNN_high_0/b_transform"],
        "token/projection/kernel": tensors["CNN_proj/W_proj"],
        "backward/layer_1/input_kernel": tensors[f"{last}/W_0"][:4],
        "backward/layer_1/state_kernel": tensors[f"{last}/W_0"][4:], "backward/layer_1/bias": tensors[f"{last}/B"],
        "forward/layer_0/projection": tensors[f"{CELL}/W_P_0"],
    }.items():  # fmt: skip
        np.testing.assert_array_equal(flat[f"encoder/{ours}"], theirs, err_msg=ours)


def test_the_tree_is_that_of_fresh_parameters():
    words = {"input": "words", "vocab_size": 7}
    cases = [
        (CONFIG, False),
        (dataclasses.replace(CONFIG, vocab_size=5, num_layers=3), True),
        (dataclasses.replace(CONFIG, cell_size=4, projection=False, num_highways=0), False),
        (dataclasses.replace(CONFIG, projection_size=9, token_projection=False), False),
        (dataclasses.replace(CONFIG, **words), True),
        (dataclasses.replace(CONFIG, **words, tie_softmax=True), True),
    ]
    for config, lm in cases:
        tree = jax.eval_shape(lambda key, c=config, lm=lm: init_elmo_params(c, key, lm=lm), jax.random.key(0))
        assert {name: leaf.shape for name, leaf in flatten(tree).items()} == elmo_shapes(config, lm)
        theirs = [path for name in elmo_hdf5.their_shapes(config, lm) for path in elmo_hdf5.our_paths(name)]
        assert sorted(theirs) == sorted(elmo_shapes(config, lm))


@pytest.mark.parametrize("number", [261, None])
def test_every_number_of_characters(elmo_folder, number):
    model_options = options(n_tokens_vocab=9, batch_size=128, dropout=0.1, n_epochs=10, bidirectional=True)
    model_options["char_cnn"]["n_characters"] = number
    assert read_weights(elmo_folder(datasets(), model_options))[1].vocab_size == 9


def test_a_table_of_262_rows(elmo_folder):
    tensors = datasets()
    rows = tensors["char_embed"]
    zeros, noise = np.zeros((1, 3), np.float32), np.ones((1, 3), np.float32)
    for name, table, skipped_entry in [
        ("mask", np.concatenate([zeros, rows]), ("char_embed, row 0", "zeros of the padding mask")),
        ("unused", np.concatenate([rows, noise]), ("char_embed, row 261", "an unused character")),
    ]:
        folder = elmo_folder(tensors | {"char_embed": table}, options(), folder=name)
        params, _, report = read_weights(folder)
        np.testing.assert_array_equal(params["encoder"]["token"]["embedding"], rows)
        assert report.skipped == dict([skipped_entry])
    with pytest.raises(ValueError, match=r"char_embed: \[263, 3\], expected \[261, 3\]"):
        read_weights(elmo_folder(tensors | {"char_embed": np.ones((263, 3), "f4")}, options(), folder="more"))


def test_released_file_names_and_several_models_in_one_folder(tmp_path, elmo_folder):
    stem = "elmo_2x4096_512_2048cnn_2xhighway"
    folder = elmo_folder(datasets(), None, weights=f"{stem}_weights.hdf5")
    (folder / f"{stem}_options.json").write_text(json.dumps(options()))
    assert detect(folder) == "elmo"
    assert elmo_hdf5.read_config(folder) == CONFIG
    (folder / "elmo_small_options.json").write_text("{}")
    assert elmo_hdf5.read_config(folder) == CONFIG  # named as the weights are
    elmo_folder(datasets(dim=5), None, weights="elmo_small_weights.hdf5")
    (folder / "elmo_small_options.json").write_text(json.dumps(options(dim=5)))
    with pytest.raises(ValueError, match=rf"has 2 ELMos, give the path of one: {stem}_weights.hdf5, elmo_small_"):
        read_weights(folder)
    for name, dim in ((stem, 6), ("elmo_small", 5)):
        path = folder / f"{name}_weights.hdf5"
        assert detect(path) == "elmo"
        assert read_weights(path)[1].cell_size == dim
    (folder / f"{stem}_weights.hdf5").rename(folder / "mine.hdf5")
    with pytest.raises(ValueError, match=r"2 options files .* and none matches the name of mine.hdf5"):
        read_weights(folder / "mine.hdf5")


@pytest.mark.parametrize(
    ("prefix", "small", "layers"), [("", True, 1), ("lm/", True, 2), ("bilm/", False, 1), ("lm/", False, 2)]
)
def test_names_that_training_runs_leave(elmo_folder, prefix, small, layers):
    tensors = datasets(layers=layers, softmax=5)
    expected, _, _ = read_weights(elmo_folder(tensors, options(layers=layers), folder="released"))

    def renamed(name):
        if small and name.startswith("RNN"):
            lower = {"/RNN/": "/rnn/", "MultiRNNCell/Cell": "multi_rnn_cell/cell_", "LSTMCell": "lstm_cell"}
            for old, new in (lower | {"W_P_0": "projection/kernel", "W_0": "kernel"}).items():
                name = name.replace(old, new)
            name = name[:-2] + "/bias" if name.endswith("/B") else name
        if layers == 1:
            name = name.replace("multi_rnn_cell/cell_0/", "").replace("MultiRNNCell/Cell0/", "")
        return prefix + name

    folder = elmo_folder({renamed(name): value for name, value in tensors.items()}, options(layers=layers))
    params, config, report = read_weights(folder)
    assert_same(params, expected)
    assert (config.vocab_size, report.heads, report.unexpected) == (5, ("lm",), [])
    kernel = renamed("RNN_1/RNN/MultiRNNCell/Cell0/LSTMCell/W_0")
    assert report.mapped["encoder/backward/layer_0/state_kernel"] == kernel


def test_names_of_the_inference_graph_and_of_two_kinds(elmo_folder):
    tensors = datasets()
    graph = {name.replace("/LSTMCell/W_0", "/rnn/lstm_cell/kernel"): value for name, value in tensors.items()}
    expected, _, _ = read_weights(elmo_folder(tensors, options(), folder="released"))
    assert_same(read_weights(elmo_folder(graph, options()))[0], expected)
    with pytest.raises(ValueError, match=r"the same dataset under two names: .*W_0, .*kernel|.*kernel, .*W_0"):
        read_weights(elmo_folder(graph | tensors, options(), folder="twice"))
    both = tensors | {f"lm/{name}": value for name, value in tensors.items()}
    with pytest.raises(ValueError, match=r"has 2 ELMos, under '' and 'lm/'"):
        read_weights(elmo_folder(both, options(), folder="both"))


@pytest.mark.parametrize(
    "sizes",
    [
        {"highways": 0}, {"highways": 3}, {"layers": 1}, {"layers": 4}, {"filters": ((1, 4),)}, {"softmax": 7},
        {"width": 9, "token_projection": False}, {"width": 9}, {"dim": 4, "projection": False}, {"dim": 4},
        {"width": 9, "dim": 9, "token_projection": False, "projection": False},
    ],
    ids=str,
)  # fmt: skip
def test_every_build(elmo_folder, sizes):
    fields = {name: value for name, value in sizes.items() if not name.endswith("projection") and name != "softmax"}
    tensors = datasets(**sizes)
    params, config, report = read_weights(elmo_folder(tensors, options(**fields)))
    assert not report.unexpected and set(report.mapped.values()) == set(tensors)
    for name in ("token_projection", "projection"):
        assert getattr(config, name) == sizes.get(name, True)
    assert ("lm" in params) == ("softmax" in sizes)
    assert config.vocab_size == sizes.get("softmax")


@pytest.mark.parametrize("vocab", [11, None], ids=["said", "not said"])
def test_word_input(elmo_folder, vocab):
    tensors = datasets(characters=False, words=11, softmax=11)
    model_options = options(characters=False, **({"n_tokens_vocab": vocab} if vocab else {}))
    params, config, report = read_weights(elmo_folder(tensors, model_options))
    assert (config.input, config.vocab_size, report.heads) == ("words", 11, ("lm",))
    np.testing.assert_array_equal(params["encoder"]["token"]["embedding"], tensors["embedding"])
    np.testing.assert_array_equal(params["lm"]["embedding"], tensors["softmax/W"])


def test_a_shared_softmax(elmo_folder):
    tensors = datasets(characters=False, words=11, softmax=11)
    del tensors["softmax/W"]
    params, config, _ = read_weights(
        elmo_folder(tensors, options(characters=False, share_embedding_softmax=True), folder="tied")
    )
    assert config.tie_softmax and list(params["lm"]) == ["bias"]
    with pytest.raises(ValueError, match=r"missing \(1\): softmax/W"):
        read_weights(elmo_folder(tensors, options(characters=False), folder="lacking"))
    tensors["softmax/W"] = np.ones((11, 4), "f4")
    with pytest.raises(ValueError, match=r"share_embedding_softmax is true, but the weights have a separate softmax/W"):
        read_weights(elmo_folder(tensors, options(characters=False, share_embedding_softmax=True)))


def test_word_vectors_in_a_file_of_their_own(elmo_folder):
    table = {"embedding": np.arange(44, dtype=np.float32).reshape(11, 4)}
    # The weights of a character model, used with vectors that its CNN has made of a vocabulary.
    folder = elmo_folder(datasets(), options(characters=False))
    elmo_folder(table, None, weights="vocab_embedding.hdf5")
    params, config, report = read_weights(folder)
    assert (config.input, config.vocab_size) == ("words", 11)
    np.testing.assert_array_equal(params["encoder"]["token"]["embedding"], table["embedding"])
    assert report.mapped["encoder/token/embedding"] == "embedding in vocab_embedding.hdf5"
    assert report.skipped["CNN/W_cnn_0"] == "for input of characters, the options say words"
    (folder / "options.json").write_text(json.dumps(options()))
    _, config, report = read_weights(folder)
    assert config == CONFIG
    assert report.skipped == {"embedding in vocab_embedding.hdf5": "for input of words, the options say characters"}
    elmo_folder({"lm/embedding": table["embedding"]}, None, weights="another.h5")
    with pytest.raises(
        ValueError, match=r"two tables of word vectors.*: lm/embedding in another.h5, embedding in vocab_emb"
    ):
        read_weights(folder)
    (folder / "another.h5").unlink()
    # A file with a million vectors is not listed one by one, and broken files are ignored.
    elmo_folder({str(n): np.ones((3, 2), "f4") for n in range(50)}, None, weights="vectors.hdf5")
    elmo_folder(b"<html>", None, weights="broken.hdf5")
    assert read_weights(folder)[1] == CONFIG


def test_a_table_in_both_files(elmo_folder):
    tensors = datasets(characters=False, words=11)
    folder = elmo_folder(tensors, options(characters=False))
    elmo_folder({"embedding": np.ones((5, 4), "f4")}, None, weights="others.hdf5")
    params, config, report = read_weights(folder)
    np.testing.assert_array_equal(params["encoder"]["token"]["embedding"], tensors["embedding"])
    assert config.vocab_size == 11
    assert report.skipped == {"embedding in others.hdf5": "weights.hdf5 has its own embedding"}


@pytest.mark.parametrize(
    ("dtype", "how"),
    [
        ("<f2", {}), (">f2", {"chunks": True, "compression": "gzip", "shuffle": True}), (">f4", {"compression": "lzf"}),
        ("<f8", {"chunks": True, "compression": "gzip", "shuffle": True}), (">f8", {}),
    ],
)  # fmt: skip
def test_how_numbers_are_stored(elmo_folder, dtype, how):
    tensors = {name: value.astype(dtype) for name, value in datasets().items()}
    params, _, _ = read_weights(elmo_folder(tensors, options(), **how))
    kernel = params["encoder"]["backward"]["layer_1"]["projection"]
    assert kernel.dtype == np.float32
    stored = tensors["RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/W_P_0"]
    np.testing.assert_array_equal(kernel, stored.astype(np.float32))


# Out and back.


CHOICES = st.fixed_dictionaries({
    "filters": st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4)), min_size=1, max_size=3).map(tuple),
    "projection_size": st.integers(1, 5), "cell_size": st.integers(1, 5), "num_highways": st.integers(0, 3),
    "char_embedding_size": st.integers(1, 4), "num_layers": st.integers(1, 4),
    **dict.fromkeys(("projection", "token_projection", "tie_softmax", "skip_connections"), st.booleans()),
    "vocab_size": st.sampled_from([None, 3, 6]), "input": st.sampled_from(["characters", "words"]),
    "char_activation": st.sampled_from(["relu", "tanh"]), "max_characters": st.sampled_from([10, 50]),
    "cell_clip": st.sampled_from([None, 3.0, 0.5]), "proj_clip": st.sampled_from([None, 3.0]),
    "dropout": st.sampled_from([0.0, 0.1]),
})  # fmt: skip


OF_CHARACTERS = (
    "filters", "num_highways", "char_embedding_size", "char_activation", "max_characters", "token_projection"
)  # fmt: skip


def possible(choices) -> ElmoConfig:
    """Return a valid configuration from choices that may contradict each other."""
    choices = dict(choices)
    if choices["input"] == "words":
        choices = {name: value for name, value in choices.items() if name not in OF_CHARACTERS}
        choices["vocab_size"] = choices["vocab_size"] or 7
    else:
        choices["tie_softmax"] = False
        if not choices["token_projection"]:
            choices["projection_size"] = sum(number for _, number in choices["filters"])
    if not choices["projection"]:
        choices["cell_size"] = choices["projection_size"]
    return ElmoConfig(**choices)


@settings(max_examples=settings.default.max_examples // 15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(choices=CHOICES, lm=st.booleans())
def test_out_and_back_is_exact(tmp_path, choices, lm):
    config = possible(choices)
    params = random_params(config, lm=lm and config.vocab_size is not None)
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    elmo_hdf5.write(tmp_path / "out", jax.tree.map(jnp.asarray, params), config)
    again, loaded_config, report = read_weights(tmp_path / "out")
    assert_same(again, params)
    assert loaded_config == config
    assert not (report.unexpected or report.skipped)


def test_written_datasets_are_named_and_shaped_as_released(tmp_path):
    config = dataclasses.replace(CONFIG, vocab_size=5)
    elmo_hdf5.write(tmp_path / "a", random_params(config, lm=True), config)
    with h5py.File(tmp_path / "a" / "weights.hdf5") as file:
        for name, value in datasets(softmax=5).items():
            assert file[name].shape == value.shape and file[name].dtype == "<f4", name
    model_options = json.loads((tmp_path / "a" / "options.json").read_text())
    assert model_options["char_cnn"] == options()["char_cnn"]
    assert model_options["lstm"] == options()["lstm"]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["options.json", "weights.hdf5"]
    elmo_hdf5.write(tmp_path / "b", random_params(config, lm=True), config)
    for name in ("options.json", "weights.hdf5"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_parameters_that_do_not_fit_are_not_written(tmp_path):
    params = flatten(random_params(CONFIG))
    del params["encoder/forward/layer_1/projection"]
    params["encoder/token/conv_0/bias"] = np.ones(3, "f4")
    params["crf/kernel"] = np.ones(3, "f4")
    with pytest.raises(ValueError) as caught:
        elmo_hdf5.write(tmp_path / "a", nest(params), CONFIG)
    for line in (
        "missing (1): encoder/forward/layer_1/projection",
        "unknown (1): crf/kernel",
        "mis-shaped (1): encoder/token/conv_0/bias [3], expected [2]",
    ):
        assert line in str(caught.value)
    with pytest.raises(ValueError, match="have a head lm, but vocab_size is None"):
        elmo_hdf5.write(tmp_path / "a", random_params(CONFIG) | {"lm": {"bias": np.ones(3, "f4")}}, CONFIG)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("name", ["weights.hdf5", "other.h5", "elmo_options.json"])
def test_existing_files_are_not_overwritten(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(FileExistsError, match=rf"already holds a model \({name}\): write to another folder"):
        elmo_hdf5.write(tmp_path, random_params(CONFIG), CONFIG)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_stopped_write_leaves_nothing_that_loads(tmp_path, monkeypatch):
    original_setitem, count = h5py.Group.__setitem__, 0

    def full(self, name, value):
        nonlocal count
        count += 1
        if count == 9:
            raise OSError(28, "No space left on device")
        original_setitem(self, name, value)

    monkeypatch.setattr(h5py.Group, "__setitem__", full)
    with pytest.raises(OSError, match="No space left"):
        elmo_hdf5.write(tmp_path, random_params(CONFIG), CONFIG)
    assert not list(tmp_path.iterdir())
