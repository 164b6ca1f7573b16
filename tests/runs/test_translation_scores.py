"""Held-out texts at the end of a run: their selection, translations and scores."""

import functools
import json

import jax
import pytest

from bert_elmo_jax import train
from bert_elmo_jax.data.corpora.store import open_store
from bert_elmo_jax.data.corpora.toy_corpus import toy_pairs
from bert_elmo_jax.runs.config_files import read_config
from bert_elmo_jax.runs.pretraining import pretrain
from bert_elmo_jax.runs.train_run import start_config
from bert_elmo_jax.runs.translation_scores import Translated, describe_translations, score_held_out, translate_held_out
from bert_elmo_jax.text import load_tokenizer

SMALL = {"num_layers": 1, "hidden_size": 8, "num_heads": 2, "feed_forward_size": 8}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return toy_pairs(tmp_path_factory.mktemp("toy") / "pairs", topics=2, words=2, documents=60, heldout=0.3)


def config_of(corpus, **changed):
    config, _ = read_config("experiments/configs/transformer.py:toy")
    config.model.update(SMALL)
    config.update({"data": str(corpus), "steps": 4, "batch_size": 4, "eval_every": 0, "checkpoint_every": 2})
    config.update({"translations": 5, "beams": 2, "average": 2} | changed)
    return config


@pytest.fixture(scope="module")
def run(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "make_mesh", functools.partial(train.make_mesh, devices=jax.devices()[:1]))
        assert pretrain(config_of(corpus), folder) == 0
    return folder


@pytest.mark.long
def test_the_end_of_a_run(run):
    figures = json.loads((run / "final.json").read_text())
    assert set(figures) == {"held_out/bleu", "held_out/chrf", "held_out/chrf++", "held_out/same"}
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "Translations of held-out texts" in page and "The mean of the last checkpoints" in page
    assert "load(" in page and "translate(" in page
    assert json.loads((run / "checkpoints" / "average" / "facts.json").read_text())["steps"] == [2, 4]


def test_another_schedule_of_checkpoints_is_refused_if_they_are_averaged(tmp_path):
    settings = start_config(config_of("pairs")).to_dict()
    train.same_run(tmp_path, {"program": "pretrain", "init": None, **settings})
    with pytest.raises(ValueError, match="checkpoint_every: 2 then, 1 now"):
        pretrain(config_of("pairs", checkpoint_every=1), tmp_path)


@pytest.mark.long
def test_which_texts_are_translated(run, corpus):
    tokenizer = load_tokenizer(corpus / "tokenizer")
    pairs = [[tokenizer.decode(side) for side in document] for document in open_store(corpus, "heldout")]
    for step, reverse in ((1, False), (-1, True)):
        texts = translate_held_out(run, config_of(corpus, reverse=reverse, translations=3), str(corpus))
        assert list(zip(texts.sources, texts.references)) == [tuple(pair[::step]) for pair in pairs[:3]]
        assert len(texts.translations) == 3 and all(isinstance(text, str) for text in texts.translations)
    short = config_of(corpus, length=8, translations=1_000)
    short_pairs = [pair for pair in pairs if len(tokenizer.encode(pair[0])) <= 8]
    assert translate_held_out(run, short, str(corpus)).sources == [source for source, _ in short_pairs]
    assert 0 < len(short_pairs) < len(pairs)
    assert translate_held_out(run, config_of(corpus, length=3), str(corpus)) is None


def test_scores(tmp_path, corpus):
    source, right = "그분께서는 회사를 여셨다 .", "He opened the companies ."
    config = config_of(corpus, data="toyworld", reverse=True)
    config.toyworld.update(topics=2, words=2)
    reference = "She opened the company ."
    texts = Translated([source] * 4, [reference] * 4, [reference, right, "company", ""])
    figures = score_held_out(tmp_path, config, texts)
    assert (figures["held_out/same"], figures["held_out/right"]) == (0.25, 0.5)
    assert json.loads((tmp_path / "final.json").read_text()) == figures
    strange = score_held_out(tmp_path, config, texts._replace(sources=["그분께서는 [UNK] 여셨다 ."] * 4))
    assert "held_out/right" not in strange and strange["held_out/same"] == 0.25
    title, html = describe_translations(texts, figures)
    assert title == "Translations of held-out texts" and html.count("<tr>") == 5 and "held_out/right 0.5" in html
