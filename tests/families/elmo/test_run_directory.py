"""ELMo's run directories, and `read_model` on folders with an ELMo."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

from bert_elmo_jax.families.elmo import hdf5_weights as elmo_hdf5
from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.inference import load, write_run_directory
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.text import WordVocabulary

from .test_hdf5_weights import assert_same
from .test_hdf5_weights import random_params as made

WORDS = WordVocabulary.build({"강": 9, "river": 8, "배": 7, "bank": 6, "은행": 5})
TOY = ElmoConfig.preset("toy", cell_size=12, projection_size=6, filters=((1, 2), (2, 3)))
BY_WORDS = ElmoConfig(input="words", vocab_size=8, cell_size=12, projection_size=6)


@pytest.fixture
def run(tmp_path):
    config = dataclasses.replace(BY_WORDS, tie_softmax=False)
    write_run_directory(tmp_path / "run", config, made(config, lm=True), WORDS, run={"seed": 1})
    return tmp_path / "run"


def edit(run, **fields):
    file = run / "model.json"
    model_json = json.loads(file.read_text(encoding="utf-8"))
    model_json["config"] |= fields.pop("config_fields", {})
    file.write_text(json.dumps(model_json | fields), encoding="utf-8")


@pytest.mark.parametrize(
    ("config", "lm"),
    [
        (TOY, False),
        (
            dataclasses.replace(TOY, num_layers=3, cell_clip=None, proj_clip=0.5, skip_connections=False, vocab_size=8),
            True,
        ),
        (dataclasses.replace(TOY, cell_size=6, projection=False, projection_size=6, vocab_size=8), False),
        (dataclasses.replace(TOY, projection_size=5, token_projection=False, vocab_size=8), True),
        (BY_WORDS, False),
        (dataclasses.replace(BY_WORDS, tie_softmax=True), True),
    ],
    ids=["plain", "three", "cells", "filters", "words", "tied"],
)
def test_every_build_comes_back(tmp_path, config, lm):
    params = made(config, lm)
    write_run_directory(tmp_path / "run", config, params, WORDS if config.vocab_size else None, run={})
    again = read_model(tmp_path / "run")
    assert again.config == config and hash(again.config) == hash(config)
    assert_same(again.params, params)
    assert again.report.heads == (("lm",) if lm else ())
    assert getattr(again.tokenizer, "fingerprint", None) == (WORDS.fingerprint if config.vocab_size else None)


def test_fields_of_model_json(run):
    model_json = json.loads((run / "model.json").read_text(encoding="utf-8"))
    assert sorted(model_json) == ["config", "family", "heads", "tokenizer"]
    assert model_json["family"] == "elmo" and model_json["heads"] == ["lm"]
    assert model_json["tokenizer"] == {"kind": "words", "fingerprint": WORDS.fingerprint}
    assert model_json["config"]["filters"][:2] == [[1, 32], [2, 32]]
    assert (run / "tokenizer" / "words.txt").read_text(encoding="utf-8").split()[3:] == list(WORDS.words[3:])
    assert json.loads((run / "run.json").read_text()) == {"seed": 1}


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"config_fields": {"input": "bytes"}}, r"model.json: input is 'bytes'; it is one of characters, words"),
        ({"heads": ["mlm"]}, "no head 'mlm' is known; there are lm"),
        ({"config_fields": {"tie_softmax": True}}, r"unknown \(1\): lm/embedding"),
        ({"config_fields": {"num_layers": 3}}, r"missing \(8\): .*encoder/forward/layer_2/input_kernel"),
        ({"config_fields": {"vocab_size": 9}}, "words.txt has 8 words, the model 9: they do not belong together"),
        ({"config_fields": {"vocab_size": None}}, "input is 'words' but vocab_size is None"),
        ({"config_fields": {"vocab_size": "8"}}, "vocab_size is '8'; expected a whole number or null"),
        ({"config_fields": {"filters": [[1, 2], [2]]}}, r"filters is .*; expected a list of pairs of whole numbers"),
        ({"config_fields": {"filters": [[1, 2.5]]}}, r"filters is .*; expected a list of pairs of whole numbers"),
        ({"config_fields": {"filters": 3}}, r"filters is 3; expected a list of pairs of whole numbers"),
        ({"config_fields": {"cell_clip": "3"}}, "cell_clip is '3'; expected a number or null"),
        ({"family": "bert"}, r"model.json has no field 'pooler'"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_fields_are_checked(run, fields, message):
    edit(run, **fields)
    with pytest.raises(ValueError, match=message):
        load(run)


def test_a_vocabulary_that_is_another_or_lost(run):
    WordVocabulary.build({"바다": 9, "sea": 8, "물": 7, "a": 6, "b": 5}).save(run / "tokenizer")
    with pytest.raises(ValueError, match="tokenizer is another tokenizer than this model was written with"):
        load(run)
    shutil.rmtree(run / "tokenizer")
    with pytest.raises(ValueError, match="tokenizer is another tokenizer than this model was written with"):
        load(run)


def test_parameters_that_do_not_fit_are_not_written(tmp_path):
    params = made(TOY)
    with pytest.raises(ValueError, match=r"labels=.*, problem_type='regression' was given, but an ELMo has no class"):
        write_run_directory(tmp_path / "a", TOY, params, None, run={}, labels=["긍정"], problem_type="regression")
    with pytest.raises(ValueError, match="the parameters: no head 'crf' is known; there are lm"):
        write_run_directory(tmp_path / "a", TOY, {**params, "crf": {"bias": np.ones(3)}}, None, run={})
    with pytest.raises(ValueError, match="have a head lm, but vocab_size is None"):
        write_run_directory(tmp_path / "a", TOY, {**params, "lm": {"bias": np.ones(3)}}, None, run={})
    del params["encoder"]["token"]["conv_1"]
    with pytest.raises(ValueError, match=r"missing \(2\): encoder/token/conv_1/bias, encoder/token/conv_1/kernel"):
        write_run_directory(tmp_path / "a", TOY, params, None, run={})
    assert not (tmp_path / "a").exists()


# Folders of other programs.


@pytest.fixture
def folder(tmp_path):
    """write(config, lm=…): a folder as AllenNLP reads it."""

    def write(config, lm=False):
        shutil.rmtree(tmp_path / "elmo", ignore_errors=True)
        elmo_hdf5.write(tmp_path / "elmo", made(config, lm), config)
        return tmp_path / "elmo"

    return write


@pytest.mark.parametrize(
    ("name", "config", "lm"),
    [
        ("words.txt", BY_WORDS, False),
        ("vocab.txt", dataclasses.replace(TOY, vocab_size=8), True),
        ("vocab-2016-09-10.txt", BY_WORDS, True),
    ],
)
def test_the_vocabulary_beside_the_weights(folder, name, config, lm):
    place = folder(config, lm)
    assert read_model(place).tokenizer is None
    write_words(place / name, WORDS.words)
    for path in (place, place / "weights.hdf5"):
        model = read_model(path)
        assert model.config == config and model.tokenizer.words == WORDS.words
        assert model.report.heads == (("lm",) if lm else ())
    for words, message in (
        (WORDS.words[:4], rf"{name} has 4 words, the model 8: they do not belong together"),
        (("강", "배"), "the first three lines should be <S>, </S>, <UNK>"),
    ):
        write_words(place / name, words)
        with pytest.raises(ValueError, match=message):
            read_model(place)


def write_words(file, words):
    file.write_text("".join(f"{word}\n" for word in words), encoding="utf-8")


def test_two_vocabularies(folder):
    place = folder(BY_WORDS)
    for name in ("vocab.txt", "vocab_test.txt"):
        write_words(place / name, WORDS.words)
    message = r"2 word vocabularies.*: vocab.txt, vocab_test.txt. Call the one of this model words.txt"
    with pytest.raises(ValueError, match=message):
        read_model(place)
    (place / "vocab.txt").rename(place / "words.txt")
    assert read_model(place).tokenizer.words == WORDS.words


def test_options_that_make_no_sense(folder):
    place = folder(TOY)
    write_words(place / "vocab_test.txt", ["강", "배"])  # no concern of a model of characters
    assert read_model(place).tokenizer is None
    for lowercase in (True, False):
        with pytest.raises(ValueError, match=f"lowercase={lowercase} was given for .*, but an ELMo never folds case"):
            load(place, lowercase=lowercase)
    with pytest.raises(ValueError, match=r"classifier='tag' was given for .*, but ELMo has no classifier"):
        read_model(place, classifier="tag")
    for format in ("google", "huggingface"):
        with pytest.raises(FileNotFoundError):
            load(place, format=format)
