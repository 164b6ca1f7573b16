"""The second stage of ULMFiT from other models: fastai's, pieces, none; and refused inputs."""

import dataclasses
import functools
import json
from pathlib import Path

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families.awd_lstm.config import AwdLstmConfig
from bert_elmo_jax.families.awd_lstm.model import init_awd_lstm_params
from bert_elmo_jax.inference.convert import convert
from bert_elmo_jax.inference.predictions import softmax
from bert_elmo_jax.inference.run_directory import write_run_directory
from bert_elmo_jax.runs.config_files import read_config
from bert_elmo_jax.runs.field_ranges import check_fields
from bert_elmo_jax.runs.finetuning import finetune
from bert_elmo_jax.runs.language_model import add_new_words, check_stages, prepare_texts, tune, tune_language_models
from bert_elmo_jax.runs.task_data import read_data
from bert_elmo_jax.runs.with_documents import check_documents, prepare_documents, read_unlabelled, start_documents
from bert_elmo_jax.text import FastaiVocabulary, WordVocabulary, train_sentencepiece

from ..experiments.task_files import BAD, GOOD, OTHER, write_task
from ..families.awd_lstm.conftest import draw_tensors, save_tensors
from .test_with_documents import WORDS, config_of, write_lm

pytestmark = pytest.mark.usefixtures("one_device", "as_users_run")

GOLDENS = Path(__file__).parents[1] / "goldens"
FASTAI = ["xxunk", "xxpad", "xxbos", "xxmaj", "the", "film", "good", "bad", "\n", "영화"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_task(tmp_path_factory.mktemp("files") / "texts", "classification", count=32)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Return models of both directions, one with another vocabulary, and one of fastai."""
    folder = tmp_path_factory.mktemp("models")
    paths = {direction: write_lm(folder / direction, direction) for direction in ("forward", "backward")}
    paths["same words"] = write_lm(folder / "same words")
    paths["other"] = write_lm(folder / "other", "backward", [*WORDS, "one", "more"])
    paths["fastai"] = str(save_tensors(folder / "fastai", draw_tensors(len(FASTAI), 6, 10, 2)))
    (folder / "fastai" / "itos.json").write_text(json.dumps(FASTAI), encoding="utf-8")
    paths["bert"] = str(GOLDENS / "bert_tiny")
    paths["no words"] = str(save_tensors(folder / "none", draw_tensors(len(FASTAI), 6, 10, 2)))
    return paths


def small(files, **changes):
    return config_of(files, **{"epochs": 1.0, "checkpoint_every": 0, "lm.epochs": 0.2, "lm.spread": 0, **changes})


@pytest.mark.long
def test_weights_of_fastai(files, models, tmp_path):
    """All stages read words in lower case, and new words get rows of their own."""
    assert finetune(small(files), tmp_path / "run", init=models["fastai"]) == 0
    start = load(tmp_path / "run" / "adapted" / "start")
    assert start.vocabulary.words[:4] == ("<UNK>", "</S>", "<S>", "xxmaj")
    assert start.vocabulary.words[8] == "<unused 8>"
    table = start.params["encoder"]["embeddings"]["word"]
    old = load(models["fastai"]).params["encoder"]["embeddings"]["word"]
    np.testing.assert_array_equal(table[: len(FASTAI)], old)
    mean = np.asarray(old).mean(axis=0)
    np.testing.assert_allclose(table[len(FASTAI) :], np.tile(mean, (len(table) - len(FASTAI), 1)), rtol=1e-5)
    model = load(tmp_path / "run")
    assert isinstance(model.encoder.vocabulary, FastaiVocabulary)
    assert model.encoder.vocabulary.words[: len(FASTAI)] == tuple(FASTAI) and "really" in model.encoder.vocabulary
    assert model.encoder.config.layer_sizes == (10, 6)
    one, other = model.predict(["GOOD film", "good film"])
    assert one.probabilities == pytest.approx(other.probabilities)
    convert(str(tmp_path / "run"), tmp_path / "out", to_format="fastai")
    again = load(tmp_path / "out")
    ids = model.family.inputs.documents.read(model.config, model.encoder.vocabulary, "good film")
    logits = again.classify(words=ids[None])[0]
    odds = other.probabilities["재미"] / other.probabilities["노잼"]
    assert np.exp(logits[1] - logits[0]) == pytest.approx(odds, rel=1e-3)


@pytest.mark.long
def test_pieces_of_a_korean_tokenizer(files, tmp_path):
    texts = [" ".join((*GOOD, *BAD, *OTHER))] * 9
    tokenizer = train_sentencepiece(texts, 60)
    config = AwdLstmConfig(vocab_size=tokenizer.vocab_size, embedding_size=8, cell_size=12, num_layers=2)
    params = init_awd_lstm_params(config, jax.random.key(0), lm=True)
    write_run_directory(tmp_path / "lm", config, params, tokenizer, run={})
    (tmp_path / "more.txt").write_text("배가 있다\n\n강가에 배우 영화\n", encoding="utf-8")
    changes = {"unlabelled": str(tmp_path / "more.txt"), "class_weights": "balanced"}
    config = small(files, **changes)
    data, start = read_data(config), start_documents(config, str(tmp_path / "lm"), None)
    tuned, status = tune_language_models(config, tmp_path / "run", data, start)
    assert status == 0 and tuned.vocabulary.fingerprint == tokenizer.fingerprint  # no words are added
    assert "강가에 배우 영화" in (tmp_path / "run" / "adapted" / "texts.txt").read_text(encoding="utf-8")
    ready = prepare_documents(config, data, tuned)
    assert len(ready.rows) == len(data.train) and all(row.ids.max() < tokenizer.vocab_size for row in ready.rows)


@pytest.mark.long
def test_from_scratch_with_the_words_of_the_texts(files, models, tmp_path):
    """The language model has no initial weights; its words are the most frequent words of the task."""
    config = small(files, vocab_size=20, preset=models["forward"])
    assert finetune(config, tmp_path / "run") == 0
    model = load(tmp_path / "run")
    assert model.encoder.vocabulary.vocab_size == 20 and "," in model.encoder.vocabulary
    assert model.config.layer_sizes == (12, 8)
    assert not (tmp_path / "run" / "adapted" / "before.json").exists()
    assert "–" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    # Without the second stage, with the vocabulary of another model.
    config = small(files, **{"lm.epochs": 0.0, "preset": "toy"})
    start = start_documents(config, None, str(tmp_path / "run"))
    assert start.vocabulary.words == model.encoder.vocabulary.words and start.model.layer_sizes == (96, 48)
    same, status = tune_language_models(config, tmp_path / "alone", read_data(config), start)
    assert (same, status) == (start, 0) and not (tmp_path / "alone").exists()


@pytest.mark.long
def test_grids_share_the_language_model(files, models, tmp_path):
    """The run directory gets the best of both directions."""
    config = small(files, backward=models["backward"], transfer="frozen")
    assert finetune(config, tmp_path, init=models["forward"], seeds=["0", "1"]) == 0
    grid = json.loads((tmp_path / "grid.json").read_text(encoding="utf-8"))
    assert len(grid["runs"]) == 2 and not list(tmp_path.glob("runs/*/adapted"))
    prediction = load(tmp_path).predict(["a film"])[0]
    best = max(result["dev"]["accuracy"] for result in grid["runs"])
    data = read_data(config)
    labels = load(tmp_path).predict_examples(data.dev)
    right = [label.label == example.label for label, example in zip(labels, data.dev)]
    assert np.mean(right) == pytest.approx(best)
    assert 0 <= prediction.probability <= 1 and load(tmp_path).others


@pytest.mark.long
def test_a_document_of_100_000_words(files, models, tmp_path):
    """It is trained on and predicted; with all words in memory, the layers alone would need gigabytes."""
    lines = (Path(files["train"])).read_text(encoding="utf-8").splitlines()
    long = " ".join(["really film"] * 50_000)
    (tmp_path / "train.csv").write_text("\n".join([*lines[:6], f'"{long}",노잼']) + "\n", encoding="utf-8")
    changes = {"lm.epochs": 0.0, "documents.part": 70, "batch_size": 2, "documents.gradient_words": 140}
    config = small({**files, "train": str(tmp_path / "train.csv")}, **changes)
    assert finetune(config, tmp_path / "run", init=models["forward"]) == 0
    model = load(tmp_path / "run")
    [label] = model.predict([long])
    # The same in parts of another size.
    ids = model.family.inputs.documents.read(model.config, model.encoder.vocabulary, long)
    assert len(ids) == 100_001
    logits = model.encoder.classify(words=ids[None], part=1_000)
    np.testing.assert_allclose(softmax(logits)[0], list(label.probabilities.values()), atol=1e-4)


def refused(config, message, init=None, tokenizer=None):
    with pytest.raises(ValueError, match=message):
        check_fields(config)
        check_stages(config, [])
        data = read_data(config)
        check_documents(config, data.task)
        read_unlabelled(config, data.task)
        prepare_documents(config, data, start_documents(config, init, tokenizer))


@pytest.mark.parametrize(
    ("changes", "init", "message"),
    [
        ({}, "bert", r"--init=.* is a BERT, and this config trains a classifier of whole documents on an AWD-LSTM"),
        ({}, "no words", r"has no vocabulary: put its list of words"),
        ({"backward": "other"}, "forward", r"backward=.* has another vocabulary \(\d+ words\) than --init"),
        ({"backward": "forward"}, "forward", r"config.backward=.* is a forward model, expected a backward one"),
        ({"backward": "backward"}, "backward", r"--init=.* is a backward model, expected a forward one"),
        ({"backward": "backward"}, None, r"config.backward=.* needs --init"),
        ({"preset": "orginal"}, None, r"neither a preset .*did you mean original"),
        ({"transfer": "upper", "upper_layers": 5}, "forward", r"config.upper_layers=5: expected 1 to 2"),
        ({"accumulate": 2}, "forward", r"config.accumulate=2: batch norm needs"),
        ({"batch_size": 1}, "forward", r"batch norm needs two documents"),
        ({"documents.part": 0}, "forward", r"config.documents.part=0: expected a whole number from 1"),
        ({"documents.dropout": (0.1,)}, "forward", r"expected 2 rates, one for each"),
        ({"drop_factor": -1.0}, "forward", r"config.drop_factor=-1.0: expected a number from 0"),
        ({"drop_factor": 10.0}, "forward", r"a dropout rate is at least 0 and below 1"),
        ({"lm.epochs": -1.0}, "forward", r"config.lm.epochs=-1.0: expected a number from 0"),
        ({"lm.epochs": 0.0, "unlabelled": "more.txt"}, "forward", r"read by the language model only"),
    ],
)
def test_wrong_inputs(files, models, changes, init, message):
    changes = {name: models.get(value, value) if name == "backward" else value for name, value in changes.items()}
    refused(small(files, **changes), message, init and models[init])


def test_other_tasks(files):
    config = small(files)
    task = read_data(config).task
    with pytest.raises(ValueError, match=r"classification of single texts, and --task=\w+ has regression"):
        check_documents(config, dataclasses.replace(task, kind="regression"))
    pairs = dataclasses.replace(task, layout=dataclasses.replace(task.layout, pair="other"))
    with pytest.raises(ValueError, match=r"--task=\w+ has pairs of texts: choose another config"):
        check_documents(config, pairs)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"class_weights": "evil"}, "config.class_weights='evil': expected balanced"),
        ({"eval_every": 5, "checkpoint_every": 3}, "let config.checkpoint_every divide config.eval_every"),
        ({"transfer": "topdown"}, "config.transfer='topdown' is not known"),
        ({"transfer": "upper", "upper_layers": 9}, "config.upper_layers=9: expected 1 to 2"),
        ({"transfer": "top_down", "head_epochs": 0.01}, "config.head_epochs=0.01 is less than a step"),
        ({"optimizer.name": "adamwx"}, "config.optimizer.name='adamwx' is not known"),
        ({"optimizer.schedule": "slant"}, "config.optimizer.schedule='slant' is not known"),
        ({"accumulate": 2}, "config.accumulate=2: batch norm needs"),
    ],
)
@pytest.mark.parametrize("in_grid", [False, True])
def test_wrong_classifier_fields_are_refused_before_the_language_model_is_trained(
    files, models, tmp_path, changes, message, in_grid
):
    config, wrong = small(files), small(files, **changes)
    start, configs = start_documents(config, models["forward"], None), [config, wrong] if in_grid else []
    with pytest.raises(ValueError, match=message):
        base = config if in_grid else wrong
        tune_language_models(base, tmp_path, read_data(config), start, configs=configs)
    assert not list(tmp_path.iterdir())


def test_files_without_texts(files, tmp_path):
    for name, text, message in (
        ("empty.txt", "", "an empty file"),
        ("blank.txt", "\n \n", "an empty file"),
        ("none.csv", "review,verdict\n", "no row|has no texts|no examples|without rows"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        config = small(files, unlabelled=str(tmp_path / name))
        with pytest.raises(ValueError, match=message):
            read_unlabelled(config, read_data(config).task)
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        config = small(files, unlabelled=str(tmp_path / "lost.txt"))
        read_unlabelled(config, read_data(config).task)


def test_an_empty_text_is_named_by_its_line(files, tmp_path):
    (tmp_path / "train.csv").write_text('review,verdict\na film,재미\n" ",노잼\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"train.csv:3: the text in review is empty"):
        read_data(small({**files, "train": str(tmp_path / "train.csv")}))


def test_a_task_of_one_word(files, models, tmp_path):
    """A language model cannot be tuned on it; the classifier reads it, after the mark of its begin."""
    (tmp_path / "train.csv").write_text("review,verdict\nfilm,재미\nfilm,노잼\n", encoding="utf-8")
    config = small({**files, "train": str(tmp_path / "train.csv")})
    data, start = read_data(config), start_documents(config, models["forward"], None)
    with pytest.raises(ValueError, match=r"has 1 different texts, too few to tune a language model on: set config.lm"):
        tune_language_models(config, tmp_path / "run", data, start)
    ready = prepare_documents(config, data, start)
    assert [row.ids.tolist() for row in ready.rows] == [[0, WORDS.index("film")]] * 2


def test_a_model_that_was_tuned_on_other_texts(files, models, tmp_path):
    start = start_documents(small(files), models["forward"], None)
    texts = [f"film {n}" for n in range(12)]
    prepare_texts(tmp_path, texts, start, "train.csv")
    for other_texts, other_start in (([*texts, "film"], start), (texts, add_new_words(start, ["once"], 1))):
        with pytest.raises(ValueError, match=r"was tuned on other texts, or with other words: restore the files"):
            prepare_texts(tmp_path, other_texts, other_start, "train.csv")
    assert prepare_texts(tmp_path, texts, start, "train.csv")["counts"]["train"]["sentences"] > 0


@pytest.mark.long
def test_a_tuned_model_is_not_used_for_another_seed_rate_or_start(files, models, tmp_path):
    """Without a run.json of the classifier, that of the language model says what it was."""
    config = small(files)
    texts = [f"film {n}" for n in range(40)]
    forward, other = (start_documents(config, models[name], None) for name in ("forward", "same words"))
    tuned, _ = tune(config, tmp_path, texts, forward)
    metrics = (tmp_path / "metrics.jsonl").read_bytes()
    again, _ = tune(small(files, batch_size=4), tmp_path, texts, forward)  # the classifier's batches
    jax.tree.map(np.testing.assert_array_equal, again.stored.params, tuned.stored.params)
    assert (tmp_path / "metrics.jsonl").read_bytes() == metrics
    for changes, start, message in (
        ({"seed": 1}, forward, r"seed: 0 then, 1 now"),
        ({"lm.optimizer.learning_rate": 0.5}, forward, r"optimizer.learning_rate: .* then, 0.5 now"),
        ({}, other, r"init: .*forward\" then, .*same words\" now"),
    ):
        with pytest.raises(ValueError, match=message):
            tune(small(files, **changes), tmp_path, texts, start)


def test_grids_do_not_vary_the_language_model(files):
    for name in ("lm.epochs", "backward", "unlabelled", "drop_factor", "dtype"):
        with pytest.raises(ValueError, match=rf"--grid names {name}, but all runs of a grid share one tuned"):
            check_stages(small(files), [{name: 1}])


def test_new_words_by_their_number(files, models):
    config = small(files)
    start = start_documents(config, models["forward"], None)
    texts = ["new new words", "words once film"]
    assert add_new_words(start, texts, 2).vocabulary.words[len(WORDS) :] == ("new", "words")
    assert add_new_words(start, texts, 1).vocabulary.words[len(WORDS) :] == ("new", "words", "once")
    assert add_new_words(start, texts, 0) is start
    with pytest.raises(ValueError, match=r"config.add_words=-1"):
        check_fields(small(files, add_words=-1))


def test_texts_are_written_in_the_words_of_the_model(files, models, tmp_path):
    start = start_documents(small(files), models["fastai"], None)
    texts = [f"The GOOD Film {n}, 영화" for n in range(12)]
    prepare_texts(tmp_path, texts, start, "train.csv")
    assert (tmp_path / "texts.txt").read_text(encoding="utf-8").splitlines()[0] == "the good film 0 , 영화"
    assert WordVocabulary.load(tmp_path / "corpus" / "tokenizer").words[3:7] == tuple(FASTAI[3:7])


def test_the_recipe_is_that_of_the_config(files):
    config, text = read_config("experiments/configs/ulmfit.py")
    assert "Howard and Ruder" in text and config.layer_decay == pytest.approx(1 / 2.6)
    assert functools.reduce(getattr, ("lm", "optimizer", "schedule"), config) == "slanted_triangular"
    assert (config.lm.optimizer.learning_rate, config.optimizer.learning_rate) == (4e-3, 1e-2)
    assert config.rates.weight_dropout == 0.5 and tuple(config.documents.dropout) == (0.4, 0.1)
