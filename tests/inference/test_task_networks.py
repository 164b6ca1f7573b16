"""The registry of networks: the task of each, and the contents of their run directories."""

import dataclasses
import json

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.data.tasks.task import task_named
from bert_elmo_jax.inference.model_kinds import find_kind, get_kind
from bert_elmo_jax.inference.predict_file import print_work
from bert_elmo_jax.inference.predictions import Label
from bert_elmo_jax.inference.run_directory import write_run_directory
from bert_elmo_jax.inference.task_network import TaskNetwork
from bert_elmo_jax.inference.task_networks import NETWORKS, check_task, network_name
from bert_elmo_jax.networks import BcnConfig, BidafConfig, EsimConfig, network_coefficients, network_shapes
from bert_elmo_jax.text import Lexicon

LEXICON = Lexicon(["배", "river"], "unk", width=4)
SMALL = {"num_labels": 3, "num_words": 2, "word_size": 4, "lstm_size": 3}
SMALL_NETWORKS = {
    "bcn": (BcnConfig(feed_size=3, **SMALL), dataclasses.replace(task_named("sst5"), labels=("0", "1", "2"))),
    "esim": (EsimConfig(**SMALL), dataclasses.replace(task_named("snli"), labels=("a", "b", "c"), max_length=4)),
    "bidaf": (
        BidafConfig(num_words=2, word_size=4, lstm_size=3, unanswerable=True),
        dataclasses.replace(task_named("squad"), unanswerable=True),
    ),
}


def write(folder, name, **changes):
    config, task = SMALL_NETWORKS[name]
    draw = np.random.default_rng(0)
    params = jax.tree.map(lambda leaf: draw.normal(size=leaf.shape).astype(np.float32), network_shapes(config))
    write_run_directory(folder, config, params, LEXICON, run={}, task=dataclasses.replace(task, **changes))
    return folder


def test_every_network_is_a_kind_of_model():
    for name, network in NETWORKS.items():
        assert get_kind(name).config is network.config
        fields = {"num_words": 9} | ({network.counted: 2} if network.counted else {})
        config = network.config(**fields)
        assert (network_name(config), find_kind(config).name) == (name, name)
        assert set(network_coefficients(config)) == set(
            network_coefficients(dataclasses.replace(config, encoder_layers=2, encoder_width=4))
        ) - {"mix_l2"}


def test_answers_of_words_have_the_options_of_answers(tmp_path):
    model = load(write(tmp_path / "run", "bidaf"))
    inputs = [("river ?", "the river, the 배! a ship")]
    [answer] = model.predict(inputs)
    assert "" in [span.answer for span in answer.n_best] and len(answer.n_best) > 3
    for options, count in (({"n_best": 1}, 2), ({"n_best": 3}, 4), ({"top_k": 2}, 2)):
        [few] = model.predict(inputs, **options)
        assert (few.answer, few.probability) == (answer.answer, answer.probability)
        assert few.n_best[:1] == answer.n_best[:1] and 1 <= len(few.n_best) <= count
    [without] = model.predict(inputs, no_answer=False)
    assert without.answer and "" not in [span.answer for span in without.n_best]


def test_texts_are_predicted(tmp_path):
    model = load(write(tmp_path / "run", "bcn"))
    assert isinstance(model, TaskNetwork)
    assert (model.config, model.labels, model.encoder) == (SMALL_NETWORKS["bcn"][0], ("0", "1", "2"), None)
    texts = ["배", "the river, the 배!" * 3, "…", "river " * 9]
    labels = model.predict(texts)
    assert all(isinstance(label, Label) and set(label.probabilities) == {"0", "1", "2"} for label in labels)
    assert len({label.probability for label in labels}) > 1
    for text, label in zip(texts, labels):
        [single_label] = model.predict([text])
        assert single_label.probabilities == pytest.approx(label.probabilities, abs=1e-5)
    assert model.predict([]) == []
    assert model.predict([" ", texts[0]], on_bad="none")[0] is None
    model.warm_up(lengths=4, rows=2)
    with pytest.raises(ValueError, match="input 1 is ' '; expected a text that is not empty"):
        model.predict(["배", " "])
    with pytest.raises(ValueError, match=r"input 0 is .*; expected a text"):
        model.predict([("배", "river")])


def test_pairs_are_predicted_and_long_ones_cut(tmp_path, capsys):
    model = load(write(tmp_path / "run", "esim"))
    short, cut, both = model.predict([("배 " * 4, "river"), ("배 " * 900, "river"), ("river", "배 " * 4)])
    assert cut.probabilities == pytest.approx(short.probabilities, abs=1e-6)
    assert both.probabilities != pytest.approx(short.probabilities, abs=1e-4)
    print_work(model)
    assert "1 text was longer than the 4 words that this model reads" in capsys.readouterr().err
    for wrong in ("배", ("배",), ("배", ""), ["배", "배"]):
        with pytest.raises(ValueError, match=r"expected \(text, pair\), two texts that are not empty"):
            model.predict([wrong])
    with pytest.raises(ValueError, match="which computes in float32: leave out dtype"):
        load(tmp_path / "run", dtype="bfloat16")


def test_a_folder_that_was_changed(tmp_path):
    folder = write(tmp_path / "run", "esim")
    model_json = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    for field, value, message in (
        ("lstm_size", 5, "composition|encoder_lstm"),
        ("lstm_size", "3", "lstm_size is '3'; expected a whole number"),
        ("places", "between", r"places='between': use input, output"),
        ("num_tags", 3, "no field 'num_tags' in an ESIM's config"),
    ):
        changed = model_json | {"config": model_json["config"] | {field: value}}
        (folder / "model.json").write_text(json.dumps(changed), encoding="utf-8")
        with pytest.raises(ValueError, match=message):
            load(folder)
    bcn = "a biattentive classification network made for classification of single texts, and"
    esim = r"an ESIM made for classification of pairs of texts, and its task is .* of single texts"
    for number, (name, changes, message) in enumerate(
        [
            ("bcn", {"labels": ("0", "1")}, "2 labels, the network has 3"),
            ("esim", {"layout": SMALL_NETWORKS["bcn"][1].layout}, esim),
            ("bcn", {"layout": SMALL_NETWORKS["esim"][1].layout}, bcn),
        ]
    ):
        with pytest.raises(ValueError, match=message):
            load(write(tmp_path / str(number), name, **changes))


def test_tasks_and_their_networks():
    for name, task in (("bcn", "rte"), ("bcn", "nsmc"), ("esim", "kornli"), ("tagger", "uner")):
        check_task(name, task_named(task))
    for name, task, message in (
        ("tagger", "sst2", "is for tags, and --task=sst2 is classification: .* as --config=bcn or --config=finetune"),
        ("bcn", "uner", r"is for classification, and --task=uner is tags: .* such as --config=tagger"),
        ("bcn", "stsb", r"--task=stsb is regression: choose another config, such as --config=finetune"),
        ("esim", "sst5", r"has single texts: name the column of the second text with --pair=…, or .* --config=bcn"),
    ):
        with pytest.raises(ValueError, match=message):
            check_task(name, task_named(task))
