"""ULMFiT: the language model and the classifier, from files to predictions; resumed in each stage."""

import functools
import json
import shutil

import jax
import numpy as np
import pytest

from bert_elmo_jax import load, train
from bert_elmo_jax.families.awd_lstm.config import AwdLstmConfig
from bert_elmo_jax.families.awd_lstm.model import init_awd_lstm_params
from bert_elmo_jax.inference.convert import convert
from bert_elmo_jax.inference.predict_file import predict_file
from bert_elmo_jax.inference.predictions import softmax
from bert_elmo_jax.inference.run_directory import write_run_directory
from bert_elmo_jax.runs.config_files import read_config
from bert_elmo_jax.runs.finetuning import finetune
from bert_elmo_jax.text import WordVocabulary
from bert_elmo_jax.train.checkpoint import load_params
from bert_elmo_jax.train.metrics import read_metrics
from bert_elmo_jax.weights.parameter_tree import flatten

from ..experiments.task_files import BAD, GOOD, OTHER, write_task

pytestmark = pytest.mark.usefixtures("one_device", "as_users_run")

WORDS = ["<S>", "</S>", "<UNK>", *dict.fromkeys((*OTHER, *GOOD, *BAD, ","))]  # without "really", which every text has
SIZES = {"embedding_size": 8, "cell_size": 12, "num_layers": 2}


def write_lm(folder, direction="forward", words=WORDS):
    """Write a language model with random weights and a vocabulary of its own."""
    config = AwdLstmConfig(vocab_size=len(words), direction=direction, **SIZES)
    params = init_awd_lstm_params(config, jax.random.key(direction == "backward"), lm=True)
    write_run_directory(folder, config, params, WordVocabulary(words, rule="punctuation"), run={})
    return str(folder)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_task(tmp_path_factory.mktemp("files") / "texts", "classification", count=64)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {direction: write_lm(folder / direction, direction) for direction in ("forward", "backward")}


def config_of(files, **changes):
    config, _ = read_config("experiments/configs/ulmfit.py")
    config.update(files)
    config.update({"epochs": 6.0, "batch_size": 8, "drop_factor": 0.1, "log_every": 1, "checkpoint_every": 4})
    config.update({"preset": "toy", "transfer": "all", "layer_decay": 1.0})
    config.lm.update({"epochs": 2.0, "batch_size": 4, "length": 16, "spread": 0, "checkpoint_every": 4})
    config.documents.update({"part": 8, "dropout": (0.1, 0.1)})
    config.optimizer.learning_rate = 0.03
    config.update_from_flattened_dict(changes)
    return config


@pytest.fixture(scope="module")
def run(files, models, tmp_path_factory):
    """Return an uninterrupted run in both directions."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "make_mesh", functools.partial(train.make_mesh, devices=jax.devices()[:1]))
        assert finetune(config_of(files, backward=models["backward"]), folder, init=models["forward"]) == 0
    return folder


def read(folder):
    """Return all results of a run."""
    folders = [folder / name for name in ("adapted", "adapted_backward", "backward", ".")]
    params = {
        f"{n}/{name}": value for n, one in enumerate(folders) for name, value in flatten(load_params(one)[1]).items()
    }
    lines = [read_metrics(one) for one in folders]
    return params, lines, json.loads((folder / "result.json").read_text(encoding="utf-8"))


@pytest.mark.long
def test_it_learns_the_task(run):
    params, lines, result = read(run)
    assert result["dev"]["accuracy"] > 0.8
    perplexities = [[line["held_out/perplexity"] for line in one if "held_out/perplexity" in line] for one in lines[:2]]
    assert all(one[-1] < one[0] for one in perplexities)
    figures = params["3/classifier/layer_0/norm/variance"]
    assert params["3/classifier/layer_0/norm/mean"].any() and (figures != 1).all() and (figures > 0).all()
    report = (run / "report.html").read_text(encoding="utf-8")
    assert "Perplexity of held-out texts of the task" in report and "adapted_backward" in report


@pytest.mark.long
def test_predictions_are_the_mean_of_both_directions(run, tmp_path):
    model = load(run)
    texts = [f"a {GOOD[0]} film", f"a {BAD[0]} film, really", "\u200b영화"]
    predictions = model.predict(texts)
    assert [label.label for label in predictions[:2]] == ["재미", "노잼"]
    each = [one.probabilities for one in predictions]
    assert all(sum(one.values()) == pytest.approx(1, abs=1e-5) for one in each)
    backward = load(run / "backward").predict(texts)
    [other] = model.others
    assert other.encoder.config.direction == "backward"
    np.testing.assert_allclose(
        [list(one.probabilities.values()) for one in other.predict(texts)],
        [list(one.probabilities.values()) for one in backward], atol=1e-6,
    )  # fmt: skip
    # By hand: the forward half is the encoder's own `classify`.
    rows = [model.family.inputs.documents.read(model.config, model.encoder.vocabulary, text) for text in texts]
    width = max(map(len, rows))
    ids = np.array([np.pad(row, (0, width - len(row))) for row in rows])
    forward = softmax(model.encoder.classify(words=ids, lengths=np.array([len(row) for row in rows])))
    mean = (forward + np.array([list(one.probabilities.values()) for one in backward], np.float32)) / 2
    np.testing.assert_allclose([list(one.values()) for one in each], mean, atol=1e-5)
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    assert predict_file(str(run), str(tmp_path / "texts.txt"), str(tmp_path / "out.jsonl")) == 3
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["label"] for line in lines] == [label.label for label in predictions]
    assert repr(model) == (
        f"DocumentModel(AwdLstmEncoder({run}: 12 × 8, forward) and AwdLstmEncoder({run}/backward: 12 × 8, backward): "
        "노잼, 재미)"
    )


@pytest.mark.long
def test_two_directions_are_not_converted_to_one_model(run, tmp_path):
    with pytest.raises(ValueError, match=r"averages an AWD-LSTM with .*/backward, and no format holds several models"):
        convert(str(run), tmp_path / "out")
    convert(str(run / "backward"), tmp_path / "out")
    assert load(tmp_path / "out").config.direction == "backward"


@pytest.mark.long
def test_new_words_are_added(run, capsys):
    """All stages and both directions have the new words; a word that is seen once is not added."""
    words = load(run).encoder.vocabulary.words
    assert words == (*WORDS, "really") and load(run / "backward").encoder.vocabulary.words == words
    assert load(run / "adapted").vocabulary.words == words


STAGES = ("adapted", "adapted_backward", "backward", ".")  # folders, in the order of a run


@pytest.mark.long  # test_frozen_runs.py resumes the same loop in every run of the tests
@pytest.mark.parametrize("broken", STAGES)
def test_killed_in_any_stage_it_ends_as_if_left_alone(run, files, models, tmp_path, monkeypatch, broken, capfd):
    """Simulate a kill: keep the last complete checkpoint, without later stages."""
    later = STAGES[STAGES.index(broken) + 1 :]
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    for name in (broken, *later):
        for part in ("report.html", "result.json", "model.json", "metrics.jsonl", "checkpoints", "before.json"):
            path = copy / name / part
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    config = config_of(files, backward=models["backward"])
    monkeypatch.setattr(train.Checkpoints, "save", stop_after(2))
    with pytest.raises(KeyboardInterrupt):
        finetune(config, copy, init=models["forward"])
    monkeypatch.undo()
    monkeypatch.setattr(train, "make_mesh", functools.partial(train.make_mesh, devices=jax.devices()[:1]))
    assert (copy / broken / "checkpoints").is_dir() and not (copy / broken / "report.html").exists()
    assert finetune(config, copy, init=models["forward"]) == 0
    (ours, our_lines, our_result), (theirs, their_lines, their_result) = read(copy), read(run)
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name], value, name)
    assert (our_lines, our_result) == (their_lines, their_result)
    output = capfd.readouterr().err
    assert "resuming from step" in output


def stop_after(count):
    """Return a `Checkpoints.save` that is interrupted in this call; the last checkpoint is incomplete."""
    saved, calls = train.Checkpoints.save, []

    def save(self, *args, **options):
        calls.append(1)
        if len(calls) == count:
            self.wait()
            raise KeyboardInterrupt
        return saved(self, *args, **options)

    return save
