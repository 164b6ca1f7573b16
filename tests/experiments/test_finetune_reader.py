"""A reader of questions from files to predictions: with an encoder's layers, without an answer, refused."""

import functools
import importlib
import json
from pathlib import Path

import jax
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.data.tasks import Answer, Question
from bert_elmo_jax.data.tasks.question_rows import collate_questions
from bert_elmo_jax.data.tasks.task import read_examples, task_named
from bert_elmo_jax.inference import task_networks as networks
from bert_elmo_jax.inference.predict_file import predict_file
from bert_elmo_jax.inference.predictions import AnswerSpan
from bert_elmo_jax.inference.task_network import TaskNetwork, build_encode
from bert_elmo_jax.inference.word_encoder import layer_shape, trained_layers, word_encoder
from bert_elmo_jax.networks import BidafConfig, bidaf_loss, network_shapes
from bert_elmo_jax.runs.finetuning import finetune
from bert_elmo_jax.text import Lexicon

from .task_files import write_task

pytestmark = pytest.mark.usefixtures("one_device")

ROOT = Path(__file__).parents[2]
ELMO = str(ROOT / "tests" / "goldens" / "elmo_tiny")


def config_of(fields, **changes):
    config = importlib.import_module("experiments.configs.bidaf").get_config()
    small = {"lstm_size": 6, "word_size": 8, "batch_size": 16, "unknown": "unk", "epochs": 30.0, "eval_every": 30}
    config.update({**small, **fields})
    config.update_from_flattened_dict(changes)
    return config


@pytest.mark.long
def test_a_reader_learns_on_frozen_layers_and_answers(tmp_path, capsys, monkeypatch):
    files = write_task(tmp_path / "squad", "squad", count=32)
    for part in (Path(files["train"]), Path(files["dev"])):  # answers are whole words
        part.write_text(part.read_text(encoding="utf-8").replace("서울에 있다", "서울"), encoding="utf-8")
    config = config_of(files, encoder=ELMO, dropout=0.0, mix_dropout=0.0, max_length=5)
    config.optimizer.learning_rate = 0.03
    assert finetune(config, tmp_path / "run") == 0
    messages = capsys.readouterr().err
    assert "contexts have more than 5 words: one window of each is read (config.max_length)" in messages
    result = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    assert result["score"] == "best_f1"
    reader = load(tmp_path / "run")
    assert isinstance(reader, TaskNetwork)
    assert (reader.config.unanswerable, reader.config.at) == (True, ("input", "output"))
    context = "영화 film\r\n최고! 서울에 있다"
    monkeypatch.setattr(networks, "reading_rows", functools.partial(networks.reading_rows, limit=8))
    answers = reader.predict([("where ?", context), ("who ?", "배"), ("where ?", f"{context} " * 3)], n_best=4)
    assert all(isinstance(answer, AnswerSpan) for answer in answers)
    for answer, text in zip(answers, (context, "배", f"{context} " * 3)):  # of one word, and in several windows
        assert text[answer.start : answer.end] == answer.answer
        assert 1 <= len(answer.n_best) <= 5
        assert all(text[one.start : one.end] == one.answer for one in answer.n_best)
    [single_answer] = reader.predict([("where ?", context)], n_best=4)
    assert single_answer.answer == answers[0].answer
    assert single_answer.null_score == pytest.approx(answers[0].null_score, abs=1e-4)
    for wrong in ("where ?", ("where ?", ""), ("where ?", context, "")):
        with pytest.raises(ValueError, match=r"input 0 is .*; expected \(question, context\), two texts that are not"):
            reader.predict([wrong])
    dev = read_examples(files["dev"], reader.task)
    right = [p.answer == ("서울" if e.answers else "") for e, p in zip(dev, reader.predict_examples(dev))]
    assert sum(right) > 0.8 * len(right)  # of a question "where ?" or "who ?", and of nothing else
    predict_file(str(tmp_path / "run"), files["dev"], str(tmp_path / "out.jsonl"))
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(lines) == len(dev)
    for line, question in zip(lines, dev):
        assert question.context[line["start"] : line["end"]] == line["answer"]
    report = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "Weights of the encoder" in report


@pytest.mark.usefixtures("as_users_run")
def test_wrong_settings_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"config.network=bidaf is for questions, and --task=sst2 is classification"):
        finetune(config_of(write_task(tmp_path / "sst2", "sst2", count=8)), tmp_path / "run")
    files = write_task(tmp_path / "squad", "squad", count=8)
    for changes, message in (
        ({"places": "between"}, "places='between': use input, output"),
        ({"max_length": 1}, "config.max_length=1: expected 2 or more words"),
        ({"longest_answer": 0}, "config.longest_answer=0: expected a whole number from 1"),
    ):
        with pytest.raises(ValueError, match=message):
            finetune(config_of(files, **changes), tmp_path / "run")
    assert not (tmp_path / "run" / "run.json").exists()


@pytest.mark.parametrize("name", ["elmo_tiny", "bert_tiny"])
def test_an_encoder_that_is_trained_along_reads_both_texts(name):
    encoder = word_encoder(str(ROOT / "tests" / "goldens" / name))
    lexicon = Lexicon(["배는"], "unk", width=4)
    question = Question("q", "어디 ?", "배는 강가에 있다 the bank", (Answer("강가", 3),), "train.json", 1)
    rows, notes = networks.NETWORKS["bidaf"].training_rows(task_named("squad", max_length=400), [question], lexicon)
    assert notes == ["of 1 questions 1 answers begin or end inside a word: the whole word is learned"]
    batch = collate_questions(rows, 2, lexicon, trained_layers(encoder))
    layers, width = layer_shape(encoder)
    config = BidafConfig(
        num_words=1, word_size=4, lstm_size=3, encoder_layers=layers, encoder_width=width, tuned=True, dropout=0.1
    )
    params = network_shapes(config) | {"encoder": encoder.params["encoder"]}
    loss = bidaf_loss(config, build_encode(config, encoder))
    terms, _, _ = jax.eval_shape(lambda params, key: loss(params, batch, key, None), params, jax.random.key(0))
    assert set(terms) == {"answer", "mix_l2"}
