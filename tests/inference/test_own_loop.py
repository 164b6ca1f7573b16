"""A user's own training loop, as on the page: it has the losses of `experiments.finetune`, and its result predicts."""

import dataclasses
import functools
import json
import os
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bert_elmo_jax import load, optim, save
from bert_elmo_jax.data.tasks import labelled_batches, read_examples, task_named
from bert_elmo_jax.data.tasks.batches import TaskBatches
from bert_elmo_jax.data.tasks.task import with_labels
from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.init_params import PARTS, init_params
from bert_elmo_jax.heads import Classify, Tag
from bert_elmo_jax.heads.features import Features, Reader
from bert_elmo_jax.inference import run_directory, write_run_directory
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.inference.task_networks import NETWORKS
from bert_elmo_jax.inference.word_encoder import layer_shape, trained_layers, word_encoder
from bert_elmo_jax.networks import TaggerConfig, init_network, network_coefficients
from bert_elmo_jax.runs.config_files import read_config
from bert_elmo_jax.runs.finetuning import finetune
from bert_elmo_jax.runs.framed import frame_texts
from bert_elmo_jax.runs.with_head import Start
from bert_elmo_jax.runs.with_network import build_lexicon
from bert_elmo_jax.text import train_wordpiece
from bert_elmo_jax.text.lexicon import Lexicon
from bert_elmo_jax.train.checkpoint import load_params, save_params
from bert_elmo_jax.train.metrics import read_metrics

from ..conftest import GOLDENS
from ..experiments.task_files import write_task

STEPS, BATCH, RATE = 6, 8, 1e-3
INPUTS = ("tokens", "types", "positions", "segments", "nsp_positions")
MODELS = ("bert", "modernbert", "gpt", "distilbert")


def write_start(name: str, folder: Path) -> str:
    """Return the path of a tiny model with a tokenizer; a GPT has pieces around its texts, as fine-tuning adds them."""
    if name in ("bert", "distilbert"):
        return str(GOLDENS / f"{name}_tiny")
    if name == "modernbert":
        family, tokenizer = get_family("modernbert"), train_wordpiece(["the a film movie was good bad"] * 9, 60)
        sizes = {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "feed_forward_size": 24, "max_positions": 64}
        config = family.config_for(tokenizer, **sizes)
        params = jax.tree.map(np.asarray, init_params(family, config, jax.random.key(1), ("mlm",)))
        write_run_directory(folder, config, params, tokenizer, run={})
        return str(folder)
    stored = read_model(GOLDENS / "gpt2_tiny")
    start = Start(get_family("gpt"), stored.config, stored.tokenizer, stored)
    framed = frame_texts(start, "classification", seed=0, report=False)
    write_run_directory(folder, framed.model, framed.stored.params, framed.tokenizer, run={})
    return str(folder)


def run_finetune(recipe: str, files: dict, workdir: Path, init: str | None, **fields) -> list[float]:
    """Return the losses of all steps of a fine-tuning."""
    config, _ = read_config(f"experiments/configs/{recipe}.py")
    config.update({**files, "batch_size": BATCH, "epochs": STEPS * BATCH / 24, "log_every": 1})
    config.update_from_flattened_dict(fields)
    config.optimizer.learning_rate = RATE
    assert finetune(config, workdir, init=init) == 0
    return [line["loss"] for line in read_metrics(workdir) if "loss" in line]


def key_of(step: int) -> jax.Array:
    """Return the key of a step of fine-tuning with the seed 0."""
    return jax.random.split(jax.random.fold_in(jax.random.key(0), step))[0]


def own_loop(loss, params, batches, put=jnp.asarray) -> tuple[dict, list[float]]:
    """Train as on the page, with the optimiser of the recipe; return the parameters and the losses."""
    rate = optim.linear_from_start(RATE, round(0.1 * STEPS), STEPS)
    optimizer = optim.bert_adam(rate, decay=0.01, clip=1.0)

    @jax.jit
    def step(params, state, batch, key):
        value, gradients = jax.value_and_grad(loss)(params, batch, key)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    state, losses = optimizer.init(params), []
    for number in range(STEPS):
        batch = {name: put(array) for name, array in next(batches).items()}
        params, state, value = step(params, state, batch, key_of(number))
        losses.append(float(value))
    return params, losses


def classify_loss(encoder, head):
    """Return the loss of the page."""

    def loss(params, batch, key):
        encoder_key, _, head_key = jax.random.split(key, 3)
        inputs = {name: batch[name] for name in INPUTS if name in batch}
        output = encoder.module.apply(
            {"params": params["encoder"]}, **inputs, deterministic=False, rngs={"dropout": encoder_key}
        )
        logits = head.apply(
            {"params": params["classify"]}, output.pooled, deterministic=False, rngs={"dropout": head_key}
        )
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, batch["labels"])
        return (losses * batch["weights"]).sum() / batch["weights"].sum()

    return loss


def train_classifier(name, folder, put=jnp.asarray):
    """Return the losses of a fine-tuning and of the own loop, and the folder with the result of the latter."""
    path = write_start(name, folder / "start")
    files = write_task(folder / "files", "sst2", count=24)
    expected = run_finetune("finetune", files, folder / "finetune", path, max_length=32)
    encoder, examples = load(path), read_examples(files["train"], task_named("sst2"))
    task = dataclasses.replace(with_labels(task_named("sst2"), examples), max_length=32)
    batches = labelled_batches(
        task, examples, encoder.tokenizer, BATCH, packed=True, positions=encoder.config.max_positions,
        parts=len(jax.devices()),
    )  # fmt: skip
    head = Classify(len(task.labels), encoder.config.head_dropout, encoder.config.initializer_range,
                    get_family(name).task_head("classify").bias)  # fmt: skip
    key = jax.random.split(jax.random.key(0), len(PARTS))[PARTS.index("classify")]
    params = {"encoder": encoder.params["encoder"], "classify": head.init(key, jnp.zeros((1, encoder.width)))["params"]}
    if name == "distilbert":
        params["encoder"] = {**params["encoder"], "pooler": encoder.init_pooler(jax.random.key(0))}
    params, losses = own_loop(classify_loss(encoder, head), jax.tree.map(put, params), batches, put)
    return expected, losses, save(folder / "mine", encoder, params, labels=task.labels, task="sst2", length=32)


def put_on_two():
    """Return a function that shares the rows of batches by two devices, and puts parameters on both, as on the page."""
    types = (jax.sharding.AxisType.Auto,)
    mesh = jax.make_mesh((2,), ("data",), axis_types=types, devices=jax.devices()[:2])
    rows, everywhere = (jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes)) for axes in (["data"], []))
    return lambda array: jax.device_put(array, rows if isinstance(array, np.ndarray) else everywhere)


@pytest.mark.long
@pytest.mark.parametrize("name", MODELS)
def test_own_loop_has_the_losses_of_finetune(name, tmp_path):
    expected, losses, folder = train_classifier(name, tmp_path)
    assert len(expected) == STEPS
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert losses[-1] != losses[0]
    predictions = load(folder).predict(["the film was good", "a bad movie"])
    assert {prediction.label for prediction in predictions} <= {"0", "1"}


@pytest.mark.long
@pytest.mark.devices
@pytest.mark.parametrize("name", MODELS)
def test_own_loop_on_two_devices_has_the_losses_of_finetune(name, tmp_path):
    expected, losses, folder = train_classifier(name, tmp_path, put_on_two())
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    assert load(folder).predict(["the film was good"])


def train_tagger(folder, put=jnp.asarray, monkeypatch=None):
    """Return the losses of a fine-tuning and of the own loop for a tagger on an ELMo, and the folder of the latter."""
    path = str(GOLDENS / "elmo_tiny")
    files = write_task(folder / "files", "entities", count=24)
    sizes = {"unknown": "unk", "word_size": 6, "lstm_size": 4, "lstm_layers": 1}
    fields = {**sizes, "encoder": path, "tune_encoder": True, "optimizer.name": "bert_adam", "optimizer.decay": 0.01,
              "optimizer.schedule": "linear_from_start", "optimizer.warmup": 0.1, "optimizer.clip": 1.0}  # fmt: skip
    expected = run_finetune("tagger", files, folder / "finetune", None, **fields)
    config, _ = read_config("experiments/configs/tagger.py")
    config.update(sizes)
    encoder, functions = word_encoder(path), NETWORKS["tagger"]
    examples = read_examples(files["train"], task_named("entities", file=files["train"]))
    task = with_labels(task_named("entities", file=files["train"]), examples)
    lexicon, _ = build_lexicon(config, functions.words(task, examples))
    stored = json.loads((folder / "finetune" / "model.json").read_text(encoding="utf-8"))["config"]
    names = {field.name for field in dataclasses.fields(TaggerConfig)}
    network = TaggerConfig(
        **{name: tuple(v) if isinstance(v, list) else v for name, v in stored.items() if name in names}
    )
    assert (network.encoder_layers, network.encoder_width) == layer_shape(encoder)
    params = init_network(network, jax.random.key(0), *lexicon.table(None))
    params["encoder"] = encoder.params["encoder"]
    rows, _ = functions.training_rows(task, examples, lexicon)
    make = functools.partial(functions.collate, lexicon=lexicon, layers=trained_layers(encoder))
    network_loss, coefficients = functions.loss(network, encoder.word_function()), network_coefficients(network)

    def loss(params, batch, key):
        terms, _, _ = network_loss(params, batch, key, None)
        return sum(coefficients[name] * total / weight for name, (total, weight) in terms.items())

    params, losses = own_loop(loss, jax.tree.map(put, params), TaskBatches(rows, BATCH, 0, make), put)

    def save_network():
        return save(folder / "mine", encoder, params, task=task, network=network, lexicon=lexicon)

    if monkeypatch is not None:
        killed_before("mine", save_network, monkeypatch)
    return expected, losses, save_network()


@pytest.mark.long
def test_own_loop_with_an_elmo_has_the_losses_of_finetune(tmp_path, monkeypatch):
    expected, losses, folder = train_tagger(tmp_path, monkeypatch=monkeypatch)
    assert len(expected) == STEPS
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert load(folder).predict(["the boat 서울 역"])[0].tags


@pytest.mark.long
@pytest.mark.devices
def test_own_loop_with_an_elmo_on_two_devices(tmp_path):
    expected, losses, _ = train_tagger(tmp_path, put_on_two())
    np.testing.assert_allclose(losses, expected, rtol=1e-4)


def test_a_network_is_saved_beside_its_encoder_and_no_trained_one_is_deleted(tmp_path):
    elmo, lexicon = word_encoder(str(GOLDENS / "elmo_tiny")), Lexicon(["boat", "river"], "unk", width=4)
    layers, width = layer_shape(elmo)
    sizes = {"num_words": 2, "word_size": 4, "lstm_size": 3, "encoder_layers": layers, "encoder_width": width}
    network = TaggerConfig(num_tags=2, **sizes)
    params = init_network(network, jax.random.key(0), *lexicon.table())

    def save_network(folder):
        return save(folder, elmo, params, labels=["A", "O"], network=network, lexicon=lexicon)

    assert load(save_network(tmp_path / "one")).task.labels == ("A", "O")
    trained = save(tmp_path / "two" / "encoder", elmo)
    with pytest.raises(FileExistsError, match="encoder already holds a model: write to another folder"):
        save_network(tmp_path / "two")
    assert load(trained).fingerprint == load(GOLDENS / "elmo_tiny").fingerprint


def test_a_model_without_a_pooler_gets_one(tmp_path):
    encoder = load(GOLDENS / "mpnet_tiny")
    inputs = encoder.tokenizer.batch(["a b"], length=8)
    output = encoder.module.apply(encoder.variables, **inputs)
    with pytest.raises(ValueError, match=r"gave no pooled vectors: give its parameters a pooler, of `init_pooler"):
        Classify(2).init(jax.random.key(0), output.pooled)
    params = {"encoder": {**encoder.params["encoder"], "pooler": encoder.init_pooler(jax.random.key(1))},
              "classify": {name: value[: encoder.width] for name, value in HEAD.items()}}  # fmt: skip
    pooled = encoder.module.apply({"params": params["encoder"]}, **inputs).pooled
    loaded = load(save(tmp_path / "mine", encoder, params, labels=["a", "b"]))
    np.testing.assert_allclose(loaded.encode(["a b"]).pooled, pooled, atol=1e-6)
    with pytest.raises(ValueError, match="has what its heads read"):
        load(GOLDENS / "bert_tiny").init_pooler(jax.random.key(0))
    with pytest.raises(ValueError, match="has what its heads read"):
        load(GOLDENS / "gpt2_tiny").init_pooler(jax.random.key(0))


@pytest.mark.parametrize(
    "features", [Features((0, -1), combine="mix"), Features((-1,), lstm_layers=1, lstm_size=4)], ids=["mix", "lstm"]
)
def test_a_reader_with_parameters_is_saved_with_its_head(tmp_path, features):
    encoder = load(GOLDENS / "bert_tiny")
    inputs = jax.tree.map(jnp.asarray, encoder.tokenizer.batch(["a b"]))
    layers = encoder.module.apply(encoder.variables, **inputs, layers=features.layers).layers
    reader = Reader(features).init(jax.random.key(0), layers, inputs["segments"] > 0)
    reader = jax.tree.map(lambda x: x + 0.5, reader)
    read = Reader(features).apply(reader, layers, inputs["segments"] > 0).mean(axis=1)
    head = Classify(2).init(jax.random.key(1), read)
    params = {"encoder": encoder.params["encoder"], "reader": reader["params"], "classify": head["params"]}
    loaded = load(save(tmp_path / "mine", encoder, params, labels=["a", "b"], features=features))
    expected = jax.nn.softmax(Classify(2).apply(head, read))[0]
    np.testing.assert_allclose(list(loaded.predict(["a b"])[0].probabilities.values()), expected, atol=1e-5)
    with pytest.raises(ValueError, match="params has the part 'reader', but load knows"):
        save(tmp_path / "other", encoder, params, labels=["a", "b"])
    with pytest.raises(ValueError, match=r"missing .*reader/"):
        save(tmp_path / "other", encoder, {**params, "reader": {}}, labels=["a", "b"], features=features)
    with pytest.raises(ValueError, match="max_length=0: use 8 to 48"):
        save(tmp_path / "other", encoder, params, labels=["a", "b"], features=features, length=0)


def test_a_packed_gpt_pools_the_last_pieces_as_single_rows_do():
    encoder = load(GOLDENS / "gpt2_tiny")
    texts = ["the river", "a boat was old", "b"]
    packed = encoder.module.apply(encoder.variables, **encoder.tokenizer.batch(texts, length=24, packed=True)).pooled
    single = [encoder.module.apply(encoder.variables, **encoder.tokenizer.batch([text])).pooled[0] for text in texts]
    np.testing.assert_allclose(np.asarray(packed).reshape(-1, encoder.width)[:3], np.stack(single), atol=1e-5)


def bert_params(**parts):
    encoder = load(GOLDENS / "bert_tiny")
    return encoder, {"encoder": encoder.params["encoder"], **parts}


def test_tags_and_spans_are_saved_too(tmp_path):
    encoder, _ = bert_params()
    tag = Tag(3).init(jax.random.key(0), jnp.zeros((1, 1, encoder.width)))["params"]
    _, params = bert_params(tag=tag)
    save(tmp_path / "tags", encoder, params, labels=["A", "B", "O"])
    assert len(load(tmp_path / "tags").predict(["a b"])[0].tags) == 2
    _, params = bert_params(span={"kernel": np.zeros((64, 2), np.float32), "bias": np.zeros(2, np.float32)})
    save(tmp_path / "answers", encoder, params, length=48)
    assert load(tmp_path / "answers").predict([("a b", "c d")])
    save(tmp_path / "encoder", encoder)
    assert load(tmp_path / "encoder").heads == encoder.heads


def killed_before(name, call, monkeypatch):
    """Call a function as a process does that is killed before it writes the description of a folder `name`."""
    write = run_directory.write_description

    def write_or_die(folder, *arguments):
        if folder.name == name:
            raise KeyboardInterrupt
        write(folder, *arguments)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(run_directory, "write_description", write_or_die)
        call()


def test_a_save_that_was_killed_is_no_model_and_can_be_repeated(tmp_path, monkeypatch):
    encoder, _ = bert_params()
    killed_before("mine", lambda: save(tmp_path / "mine", encoder), monkeypatch)
    with pytest.raises(FileNotFoundError, match=r"no model\.json, which is written last"):
        load(tmp_path / "mine")
    save_params(tmp_path / "mine", 5, encoder.params)  # of a loop that goes on in the folder
    with pytest.raises(FileExistsError, match="write to another folder"):
        save(tmp_path / "mine", encoder)
    shutil.rmtree(tmp_path / "mine" / "checkpoints" / "5")
    save(tmp_path / "mine", encoder)
    assert load(tmp_path / "mine").fingerprint == encoder.fingerprint
    form = next(iter(encoder.family.formats))
    broken = encoder.family.formats[form]._replace(write=lambda *arguments: 1 / 0)
    encoder.family = dataclasses.replace(encoder.family, formats={form: broken})
    with pytest.raises(ZeroDivisionError):
        encoder.save_sentences(tmp_path / "sentences")
    with pytest.raises(FileNotFoundError, match="holds no weights"):  # rather than a model with another pooling
        load(tmp_path / "sentences")


def test_checkpoints_of_a_loop_are_neither_deleted_nor_read_in_place_of_what_is_saved(tmp_path):
    encoder, params = bert_params(classify=HEAD)
    for step in (0, 5):
        save_params(tmp_path / f"run_{step}", step, params)
        with pytest.raises(FileExistsError, match="checkpoints exists, and load would read it: write to"):
            save(tmp_path / f"run_{step}", encoder, params, labels=["a", "b"])
        assert load_params(tmp_path / f"run_{step}")[0] == step


@pytest.mark.skipif("TEST_TYPES" in os.environ, reason="an array is no sequence of strings")
def test_labels_may_be_an_array(tmp_path):
    encoder, params = bert_params(classify=HEAD)
    save(tmp_path / "mine", encoder, params, labels=np.unique(["b", "a", "b"]))
    assert load(tmp_path / "mine").task.labels == ("a", "b")


def test_a_task_keeps_its_own_length(tmp_path):
    encoder, params = bert_params(span={"kernel": np.zeros((64, 2), np.float32), "bias": np.zeros(2, np.float32)})
    save(tmp_path / "answers", encoder, params, task=dataclasses.replace(task_named("squad"), max_length=32))
    assert load(tmp_path / "answers").task.max_length == 32


def two_layers():
    _, params = bert_params(classify=HEAD)
    return {**params, "encoder": {k: v for k, v in params["encoder"].items() if k != "layer_2"}}


HEAD = {"kernel": np.zeros((64, 2), np.float32), "bias": np.zeros(2, np.float32)}
REFUSED = {
    "no encoder": (lambda: {"classify": HEAD}, {}, "params has the parts classify; expected {"),
    "another model": (two_layers, {}, "is not of this model, .*layer_2/.* is missing"),
    "too many labels": (None, {"labels": ["a", "b", "c"]}, r"labels has 3 names \(a, b, c\), .* has 2 outputs"),
    "two numbers": (None, {"task": "regression"}, r"one number, and the head classify has 2 outputs: Classify\(1\)"),
    "all of Linen's variables": (
        lambda: {**bert_params()[1], "classify": {"params": HEAD}},
        {"labels": ["a", "b"]},
        "give what is inside",
    ),
    "all variables of the encoder": (
        lambda: {"encoder": {"params": bert_params()[1]["encoder"]}},
        {},
        r'give encoder.variables\["params"\]',
    ),
    "no labels": (None, {}, "needs labels="),
    "a label twice": (None, {"labels": ["a", "a"]}, "expected a list of different strings"),
    "diverged": (
        lambda: bert_params(classify={**HEAD, "bias": np.full(2, np.nan, np.float32)})[1],
        {"labels": ["a", "b"]},
        "params holds NaN or infinity in classify/bias; .* training diverged",
    ),
    "a head of another name": (
        lambda: bert_params(classify=HEAD, topic=HEAD)[1],
        {"labels": ["a", "b"]},
        "params has the part 'topic', but load knows the heads classify, tag, choice, span: save one head in a folder",
    ),
    "another task": (None, {"task": "tags", "labels": ["a", "b"]}, r"needs a head params\['tag'\]"),
    "too long": (None, {"labels": ["a", "b"], "length": 4000}, "use 8 to 48"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_parts_that_do_not_fit_are_refused_in_one_line(case, tmp_path):
    make, options, message = REFUSED[case]
    encoder, params = bert_params(classify=HEAD)
    with pytest.raises(ValueError, match=message) as error:
        save(tmp_path / "mine", encoder, make() if make else params, **options)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "mine").exists()


@pytest.mark.usefixtures("as_users_run")
def test_module_names_parameters_of_another_model():
    encoder, params = bert_params()
    inputs = encoder.tokenizer.batch(["a b"], length=8)
    for variables, message in (
        ({"params": params}, "whole model"),
        ({"params": {**params["encoder"], "adapter": {}}}, "have the part adapter, for which this Bert has no place"),
        ({"params": two_layers()["encoder"]}, "lack layer_2, which this Bert has"),
    ):
        with pytest.raises(ValueError, match=message):
            encoder.module.apply(variables, **inputs)
    with pytest.raises(TypeError, match=r"tokens are a list; give an array of ids, as `tokenizer.batch"):
        encoder.module.apply({"params": params["encoder"]}, ["a b"])


def test_packed_texts_have_the_vectors_of_single_ones():
    encoder, _ = bert_params()
    texts = ["a b", ("c", "d e f"), ["a", "b", "c"], "d"]
    single = encoder.module.apply(encoder.variables, **encoder.tokenizer.batch(texts))
    packed_inputs = encoder.tokenizer.batch(texts, length=12, packed=True, rows=4)
    packed = encoder.module.apply(encoder.variables, **packed_inputs)
    slots = np.arange(packed.pooled.shape[1]) < packed_inputs["segments"].max(axis=1, keepdims=True)
    np.testing.assert_allclose(packed.pooled[slots], single.pooled, atol=1e-5)


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        ("a b", {}, "expected a list of texts"),
        ([], {}, "at least one"),
        (["a", ""], {}, "text 1 is empty"),
        (["a"], {"packed": True}, "needs length"),
        (["a"], {"rows": 2}, "is for packed=True"),
        (["a"], {"length": 3}, "use 5 or more"),
        (["a"], {"length": 49}, "length=49, and the model has 48 positions: give length=48"),
        (["a", "b " * 99], {}, "text 1 has 101 pieces, and the model has 48 positions: give length=48 to cut texts"),
        (["a b c d"] * 9, {"length": 8, "packed": True, "rows": 2}, "and rows=2: give fewer texts"),
    ],
)
@pytest.mark.usefixtures("as_users_run")
def test_batches_of_wrong_texts_are_refused(texts, options, message):
    encoder, _ = bert_params()
    with pytest.raises(ValueError, match=message):
        encoder.tokenizer.batch(texts, **options)
