"""Every program refuses fields outside their range, and reports remark on runs that learned nothing."""

import dataclasses
import re

import pytest
from ml_collections import ConfigDict

from bert_elmo_jax.data.tasks.examples import Answer, Question, TaggedSentence, TextExample
from bert_elmo_jax.data.tasks.task import task_named, with_labels
from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.distilbert.family import DistilBertConfig
from bert_elmo_jax.families.gpt.config import GptConfig
from bert_elmo_jax.inference.predictions import AnswerSpan, Label, Number, Tags
from bert_elmo_jax.runs.config_files import read_config
from bert_elmo_jax.runs.data_facts import describe_files, draw_data
from bert_elmo_jax.runs.field_ranges import check_fields
from bert_elmo_jax.runs.finetuning import finetune, list_settings
from bert_elmo_jax.runs.pretraining import build_objective, list_figures, pretrain
from bert_elmo_jax.runs.task_report import remark_one_answer
from bert_elmo_jax.runs.task_scores import list_scores


@pytest.mark.parametrize(("file", "call"), [("bert.py:toy", pretrain), ("finetune.py:base", finetune)])
def test_runs_check_their_config_first(file, call, tmp_path):
    config, _ = read_config(f"experiments/configs/{file}")
    config.optimizer.clip = -1.0
    with pytest.raises(ValueError, match=r"config\.optimizer\.clip=-1\.0: expected a number above 0"):
        call(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_grids_check_every_value():
    config, _ = read_config("experiments/configs/finetune.py:base")
    with pytest.raises(ValueError, match=r"--grid: epochs=-1\.0: expected a number above 0"):
        list_settings(config, "epochs=1,-1", None)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ("batch_size=16,32 batch_size=64", "batch_size is named twice"),
        ("attention", "attention has no values"),
        ("dev=a.tsv,b.tsv", "dev is the same for all runs"),
    ],
)
def test_a_grid_leaves_no_value_out(grid, message):
    config, _ = read_config("experiments/configs/finetune.py:base")
    with pytest.raises(ValueError, match=rf"--grid.*: {message}"):
        list_settings(config, grid, None)


def test_fields_of_your_own_hold_any_finite_number():
    check_fields(ConfigDict({"mine": -7.0, "name": "x", "flag": True, "none": [1, 2]}))
    with pytest.raises(ValueError, match=r"config\.mine=inf: expected a finite number"):
        check_fields(ConfigDict({"mine": float("inf")}))


@pytest.mark.parametrize("wrong", [float("nan"), -5.0, 0.0])
@pytest.mark.parametrize("config", [BertConfig, GptConfig])
def test_a_layer_norm_needs_a_small_positive_number(config, wrong):
    with pytest.raises(ValueError, match=re.escape(f"norm_eps is {wrong}; it is a number above 0 and below 1")):
        config(norm_eps=wrong)
    with pytest.raises(ValueError, match=r"norm_eps is its layer_norm_eps|layer_norm_eps is nan; it must be a number"):
        BertConfig.from_json({"layer_norm_eps": wrong})


@pytest.mark.parametrize("wrong", [float("nan"), -1.0, float("inf")])
def test_an_initial_deviation_is_not_negative(wrong):
    with pytest.raises(ValueError, match=f"initializer_range is {wrong}; it is a deviation, 0 or more"):
        DistilBertConfig(initializer_range=wrong)


def test_rows_longer_than_the_positions_of_the_model():
    config, _ = read_config("experiments/configs/bert.py:tiny")
    config.model.max_positions = 256
    with pytest.raises(ValueError, match=r"config\.long_length=512, but the model has 256 positions"):
        build_objective(config, 100)
    config.long_share = 0.0
    build_objective(config, 100)
    electra, _ = read_config("experiments/configs/electra.py:toy")
    electra.length = 129
    with pytest.raises(ValueError, match=r"config\.length=129, but the model has 128 positions"):
        build_objective(electra, 100)


@pytest.mark.parametrize(
    ("file", "figure"),
    [
        ("bert.py:toy", "held_out/mlm_accuracy"),
        ("elmo.py:quickstart", "held_out/perplexity"),
        ("transformer.py:toy", "held_out/exact"),
    ],
)
def test_figures_of_a_pretraining_by_name(file, figure):
    config, _ = read_config(f"experiments/configs/{file}")
    config.update(batch_size=8)
    config.toyworld.vocab_size = 100
    assert figure in list_figures(config)


def test_scores_of_tasks_by_name():
    assert list_scores(task_named("sst2")) == ["accuracy"]
    assert {"f1", "accuracy"} <= set(list_scores(task_named("mrpc")))
    assert list_scores(task_named("conll")) == ["f1", "precision", "recall", "accuracy"]
    assert {"f1", "exact", "best_f1"} <= set(list_scores(task_named("squad")))
    assert list_scores(task_named("klue_ner"))[-1] == "entity_macro_f1"


def text(label):
    return TextExample("a text", None, label, None, "dev.tsv", 2)


def test_a_classifier_with_one_answer_is_remarked_on():
    task = with_labels(task_named("sst2"), [text("0"), text("1")])
    same, other = Label("0", 0.9, {"0": 0.9, "1": 0.1}), Label("1", 0.9, {"0": 0.1, "1": 0.9})
    [remark] = remark_one_answer(task, [text("0"), text("1")], [same, same])
    assert "every example of the dev data the label '0', and the data have 2 labels" in remark
    assert remark_one_answer(task, [text("0"), text("1")], [same, other]) == []
    assert remark_one_answer(task, [text("0"), text("0")], [same, same]) == [], "the data have one label only"
    tags = task_named("ud_upos")
    sentence = TaggedSentence(("a", "b"), ("X", "Y"), "dev.conllu", (1, 2), 0)
    [remark] = remark_one_answer(tags, [sentence], [Tags(("a", "b"), ("X", "X"), (0.5, 0.5))])
    assert "every word" in remark
    assert remark_one_answer(task_named("stsb"), [], []) == []


def test_predictions_of_nearly_one_number_are_remarked_on():
    examples = [text(label) for label in (0.0, 2.5, 5.0)]
    flat, spread = [Number(value) for value in (2.50, 2.51, 2.52)], [Number(value) for value in (1.5, 2.5, 3.5)]
    [remark] = remark_one_answer(task_named("stsb"), examples, flat)
    assert "about 2.51, and the data have 0 to 5" in remark
    assert remark_one_answer(task_named("stsb"), examples, spread) == []
    assert remark_one_answer(task_named("stsb"), [text(2.5), text(2.5)], flat[:2]) == [], "the data have one number"
    # The cosines of sentences stand for scores divided by the highest one.
    cosines = dataclasses.replace(task_named("sentences"), top_score=5.0)
    [remark] = remark_one_answer(cosines, examples, [Number(0.49), Number(0.50), Number(0.51)])
    assert "about 0.5, and the data have 0 to 1" in remark


def test_a_reader_that_never_answers_is_remarked_on():
    asked = [Question(name, "what?", "a text", (Answer("text", 2),), "dev.json", 1) for name in "ab"]
    silent, answering = AnswerSpan("", 0, 0, 0.9, (), 1.0), AnswerSpan("text", 2, 6, 0.9, (), -1.0)
    [remark] = remark_one_answer(task_named("squad"), asked, [silent, silent])
    assert "any of the 2 questions of the dev data, and 2 have one" in remark
    assert remark_one_answer(task_named("squad"), asked, [silent, answering]) == []


def test_fingerprints_follow_the_content_of_files(tmp_path):
    file = tmp_path / "train.tsv"
    file.write_text("a")
    first = describe_files({"train": str(file), "dev": "0.1", "test": ""})
    assert list(first) == ["train"] and first["train"]["file"] == str(file)
    file.write_text("b")
    assert describe_files({"train": str(file)})["train"]["fingerprint"] != first["train"]["fingerprint"]
    title, page = draw_data(first)
    assert title == "Data" and first["train"]["fingerprint"][:12] in page
