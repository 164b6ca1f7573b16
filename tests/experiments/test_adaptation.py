"""An ELMo that reads a task's texts as a language model before it goes into a network."""

import dataclasses
import functools
import importlib
import json
from pathlib import Path

import jax
import numpy as np
import pytest

from bert_elmo_jax import load, train
from bert_elmo_jax.data.corpora.store import open_store
from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.families.elmo.model import init_elmo_params
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.inference.run_directory import write_run_directory
from bert_elmo_jax.inference.word_encoder import word_encoder
from bert_elmo_jax.runs.adaptation import adapt_encoder, check_adaptation
from bert_elmo_jax.runs.field_ranges import check_fields
from bert_elmo_jax.runs.finetuning import finetune
from bert_elmo_jax.runs.task_data import read_data
from bert_elmo_jax.runs.with_network import start_network
from bert_elmo_jax.text import WordVocabulary
from bert_elmo_jax.train.metrics import read_metrics

from .task_files import BAD, GOOD, OTHER, write_task

pytestmark = pytest.mark.usefixtures("one_device")

ROOT = Path(__file__).parents[2]
ELMO = str(ROOT / "tests" / "goldens" / "elmo_tiny")
SIZES = {"cell_size": 8, "projection_size": 4, "char_embedding_size": 4, "filters": ((1, 4), (2, 4))}
WORDS = ["<S>", "</S>", "<UNK>", *dict.fromkeys((*OTHER, *GOOD, *BAD, ",", "really"))]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_task(tmp_path_factory.mktemp("files") / "texts", "classification", count=96)


@pytest.fixture(scope="module")
def elmo(tmp_path_factory):
    """Return a language model with a vocabulary of its own."""
    folder = tmp_path_factory.mktemp("elmo") / "run"
    config = ElmoConfig(vocab_size=len(WORDS), **SIZES)
    params = init_elmo_params(config, jax.random.key(0), lm=True)
    write_run_directory(folder, config, params, WordVocabulary(WORDS), run={})
    return str(folder)


def config_of(files, encoder, epochs=3.0, changes=None):
    config = importlib.import_module("experiments.configs.bcn").get_config()
    config.update({"lstm_size": 4, "feed_size": 4, "epochs": 1.0, "unknown": "unk", "word_size": 6, **files})
    config.encoder = encoder
    config.adapt.update({"epochs": epochs, "learning_rate": 0.02, "batch_size": 16})
    config.update_from_flattened_dict(changes or {})
    return config


def adapt(config, workdir):
    return adapt_encoder(config, workdir, read_data(config), start_network(config, None, None))


@pytest.fixture(scope="module")
def full_run(files, elmo, tmp_path_factory):
    """Return the result without a stop, compiled with optimisation, as outside of tests."""
    folder = tmp_path_factory.mktemp("alone")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "make_mesh", functools.partial(train.make_mesh, devices=jax.devices()[:1]))
        return folder, adapt(config_of(files, elmo), folder)


@pytest.mark.long
def test_it_learns_the_tasks_text_in_its_own_words(files, elmo, full_run):
    folder, (start, status) = full_run
    assert status == 0
    lines = read_metrics(folder / "adapted")
    after = [line["held_out/perplexity"] for line in lines if "held_out/perplexity" in line]
    assert [line["step"] for line in lines] == list(range(1, len(lines) + 1))
    assert after[-1] < 0.9 * after[0]
    assert start.source == elmo  # a grid finds that it has what its config names
    assert start.encoder.fingerprint != word_encoder(elmo).fingerprint
    adapted = read_model(str(folder / "adapted"))
    assert list(adapted.tokenizer.words) == WORDS
    assert open_store(folder / "adapted" / "corpus").manifest["counts"]["train"]["unknown"] == 0


@pytest.mark.long
def test_released_weights_without_a_softmax_get_the_words_of_the_text(files, tmp_path, capsys):
    start, _ = adapt(config_of(files, ELMO, epochs=1.0), tmp_path)
    assert "new, and untrained at the start, because the weights have none: lm" in capsys.readouterr().err
    adapted = read_model(str(tmp_path / "adapted"))
    assert set(GOOD) < set(adapted.tokenizer.words)
    assert adapted.params["lm"]["embedding"].shape == (len(adapted.tokenizer), adapted.config.width)
    assert start.encoder.fingerprint != word_encoder(ELMO).fingerprint


@pytest.mark.long
def test_stopped_it_goes_on_to_the_same_weights(files, elmo, full_run, tmp_path, monkeypatch, capsys):
    folder, (full_start, _) = full_run
    config = config_of(files, elmo)
    run = train.train

    def stopped(state, parallel, batches, **options):
        short = type(options["schedule"])(3, log_every=1, eval_every=3, checkpoint_every=3)
        return run(state, parallel, batches, **{**options, "schedule": short})[0], 15

    monkeypatch.setattr(train, "train", stopped)
    start, status = adapt(config, tmp_path)
    monkeypatch.undo()
    assert (status, start.encoder.fingerprint) == (75, word_encoder(elmo).fingerprint)
    messages = capsys.readouterr().err
    assert "first trained as a language model on 96 texts" in messages
    before = float(messages.partition("before the first step: ")[2].partition("held_out/perplexity ")[2].split(",")[0])
    start, status = adapt(config, tmp_path)
    assert status == 0
    for array, expected in zip(*(jax.tree.leaves(of.encoder.params) for of in (start, full_start)), strict=True):
        np.testing.assert_allclose(array, expected, rtol=1e-3, atol=1e-5)  # compiled otherwise, see the fixture
    lines = read_metrics(tmp_path / "adapted")
    assert [line["step"] for line in lines] == [line["step"] for line in read_metrics(folder / "adapted")]
    saved_metrics = json.loads((tmp_path / "adapted" / "before.json").read_text(encoding="utf-8"))
    assert saved_metrics["held_out/perplexity"] == pytest.approx(before, rel=1e-3)
    assert lines[-1]["held_out/perplexity"] < before


@pytest.mark.long
def test_a_network_is_trained_on_what_came_out(files, elmo, tmp_path):
    assert finetune(config_of(files, elmo, epochs=1.0), tmp_path) == 0
    adapted = word_encoder(str(tmp_path / "adapted"))
    assert word_encoder(str(tmp_path / "encoder")).fingerprint == adapted.fingerprint
    assert load(tmp_path).predict([f"{GOOD[0]} film"])[0].label in ("재미", "노잼")


@pytest.mark.parametrize(
    ("changes", "settings", "message"),
    [
        ({"encoder": ""}, [], r"config.adapt.epochs=3.0 needs an encoder: give --config.encoder"),
        ({"adapt.epochs": -1.0}, [], r"config.adapt.epochs=-1.0: expected a number from 0"),
        ({"adapt.batch_size": 0}, [], r"config.adapt.batch_size=0: expected a whole number from 1"),
        ({}, [{"encoder": "a"}], r"--grid names encoder, but all runs of a grid share one adapted encoder"),
        ({"adapt.epochs": 0.0}, [{"adapt.epochs": 1.0}], r"--grid names adapt.epochs"),
    ],
)
def test_wrong_settings_are_refused(files, changes, settings, message):
    config = config_of(files, ELMO, changes=changes)
    with pytest.raises(ValueError, match=message):
        check_fields(config)
        check_adaptation(config, settings)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"transfer": "top_down"}, "config.transfer=top_down is for the layers of a fine-tuned encoder"),
        ({"tune_encoder": True, "transfer": "topdown"}, "config.transfer='topdown' is not known"),
        ({"tune_encoder": True, "transfer": "upper", "upper_layers": 9}, "config.upper_layers=9: expected 1 to"),
        ({"optimizer.name": "adamwx"}, "config.optimizer.name='adamwx' is not known"),
    ],
)
def test_wrong_fields_of_the_network_are_refused_before_the_encoder_is_adapted(files, changes, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        adapt(config_of(files, ELMO, changes=changes), tmp_path)
    config = config_of(files, ELMO)
    data = read_data(config)._replace(task=dataclasses.replace(read_data(config).task, kind="regression"))
    with pytest.raises(ValueError, match="is for classification, and --task="):
        adapt_encoder(config, tmp_path, data, start_network(config, None, None))
    assert not list(tmp_path.iterdir())


def test_not_asked_for(files):
    check_adaptation(config_of(files, ELMO, epochs=0.0), [{"encoder": "a"}])
    check_adaptation(importlib.import_module("experiments.configs.finetune").get_config(), [])


def test_a_bert_and_too_little_text(files, elmo, tmp_path):
    with pytest.raises(
        ValueError,
        match=r"encoders that read words, and .*bert_tiny is of the kind bert: adapt it with `python -m exper",
    ):
        adapt(config_of(files, str(ROOT / "tests/goldens/bert_tiny")), tmp_path)
    (tmp_path / "few.csv").write_text("text,label\nfilm,a\nreally,b\n", encoding="utf-8")
    few = {"task": "classification", "text": "text", "label": "label"}
    few |= {part: str(tmp_path / "few.csv") for part in ("train", "dev")}
    with pytest.raises(ValueError, match=r"has 2 texts, too few to hold some out"):
        adapt(config_of(few, elmo), tmp_path)
