"""ELMo's run directories, and `read_model` on folders with an ELMo."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

from bert_elmo_jax.families.elmo import hdf5_weights as elmo_hdf5
from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.families.elmo.model import elmo_shapes
from bert_elmo_jax.inference import load, write_run_directory
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.text import WordVocabulary
from bert_elmo_jax.weights.parameter_tree import flatten, nest

WORDS = WordVocabulary.build({"강": 9, "river": 8, "배": 7, "bank": 6, "은행": 5})
TOY = ElmoConfig.preset("toy", cell_size=12, projection_size=6, filters=((1, 2), (2, 3)))
BY_WORDS = ElmoConfig(input="words", vocab_size=8, cell_size=12, projection_size=6)


def made(config, lm=False):
    rng = np.random.default_rng(0)
    return nest({name: rng.normal(size=shape).astype(np.float32) for name, shape in elmo_shapes(config, lm).items()})


def same(a, b):
    a, b = flatten(a), flatten(b)
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


@pytest.fixture
def run(tmp_path):
    config = dataclasses.replace(BY_WORDS, tie_softmax=False)
    write_run_directory(tmp_path / "run", config, made(config, lm=True), WORDS, run={"seed": 1})
    return tmp_path / "run"


def edit(run, **fields):
    file = run / "model.json"
    facts = json.loads(file.read_text(encoding="utf-8"))
    facts["config"] |= fields.pop("config_fields", {})
    file.write_text(json.dumps(facts | fields), encoding="utf-8")


@pytest.mark.parametrize("lm", [False, True])
@pytest.mark.parametrize(
    "config",
    [
        TOY,
        dataclasses.replace(TOY, num_layers=3, cell_clip=None, proj_clip=0.5, skip_connections=False, vocab_size=8),
        dataclasses.replace(TOY, cell_size=6, projection=False, projection_size=6, vocab_size=8),
        dataclasses.replace(TOY, projection_size=5, token_projection=False, vocab_size=8),
        BY_WORDS,
        dataclasses.replace(BY_WORDS, tie_softmax=True),
    ],
    ids=["plain", "three", "cells", "filters", "words", "tied"],
)
def test_every_build_comes_back(tmp_path, config, lm):
    lm = lm and config.vocab_size is not None
    params = made(config, lm)
    write_run_directory(tmp_path / "run", config, params, WORDS if config.vocab_size else None, run={})
    again = read_model(tmp_path / "run")
    assert again.config == config and hash(again.config) == hash(config)
    assert same(again.params, params)
    assert again.report.heads == (("lm",) if lm else ())
    assert (again.tokenizer.fingerprint if config.vocab_size else again.tokenizer) == (
        WORDS.fingerprint if config.vocab_size else None
    )


def test_what_model_json_says(run):
    facts = json.loads((run / "model.json").read_text(encoding="utf-8"))
    assert sorted(facts) == ["config", "family", "heads", "tokenizer"]
    assert facts["family"] == "elmo" and facts["heads"] == ["lm"]
    assert facts["tokenizer"] == {"kind": "words", "fingerprint": WORDS.fingerprint}
    assert facts["config"]["filters"][:2] == [[1, 32], [2, 32]]
    assert (run / "tokenizer" / "words.txt").read_text(encoding="utf-8").split()[3:] == list(WORDS.words[3:])
    assert json.loads((run / "run.json").read_text()) == {"seed": 1}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"heads": ["mlm"]}, "no head 'mlm' is known; there are lm"),
        ({"heads": []}, r"unknown \(2\): lm/bias, lm/embedding"),
        ({"config_fields": {"tie_softmax": True}}, r"unknown \(1\): lm/embedding"),
        ({"config_fields": {"num_layers": 3}}, r"missing \(8\): .*encoder/forward/layer_2/input_kernel"),
        ({"config_fields": {"cell_size": 13}}, r"mis-shaped \(16\)"),
        ({"config_fields": {"vocab_size": 9}}, "words.txt has 8 words, the model 9: they do not belong together"),
        ({"config_fields": {"vocab_size": None}}, "input is 'words' but vocab_size is None"),
        ({"config_fields": {"vocab_size": "8"}}, "vocab_size is '8'; expected a whole number or null"),
        ({"config_fields": {"filters": [[1, 2], [2]]}}, r"filters is .*; expected a list of pairs of whole numbers"),
        ({"config_fields": {"filters": [[1, 2.5]]}}, r"filters is .*; expected a list of pairs of whole numbers"),
        ({"config_fields": {"filters": 3}}, r"filters is 3; expected a list of pairs of whole numbers"),
        ({"config_fields": {"cell_clip": "3"}}, "cell_clip is '3'; expected a number or null"),
        ({"config_fields": {"cellsize": 3}}, "no field 'cellsize' in an ELMo's config; did you mean cell_size"),
        ({"config": {}}, "the config lacks input, vocab_size, char_embedding_size"),
        ({"family": "bert"}, r"model.json has no field 'pooler'"),
        ({"family": "elmo2"}, "family 'elmo2' is not known to this version; it knows bert, elmo"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_fields_are_checked(run, fields, message):
    edit(run, **fields)
    with pytest.raises(ValueError, match=message):
        load(run)


@pytest.mark.usefixtures("as_users_run")
def test_a_choice_that_there_is_not(run):
    edit(run, config_fields={"input": "bytes"})
    with pytest.raises(ValueError, match=r"model.json: input is 'bytes'; it is one of characters, words"):
        load(run)


def test_a_vocabulary_that_is_another_or_lost(run):
    WordVocabulary.build({"바다": 9, "sea": 8, "물": 7, "a": 6, "b": 5}).save(run / "tokenizer")
    with pytest.raises(ValueError, match="tokenizer is another tokenizer than this model was written with"):
        load(run)
    shutil.rmtree(run / "tokenizer")
    with pytest.raises(ValueError, match="tokenizer is another tokenizer than this model was written with"):
        load(run)


def test_nothing_is_written_that_does_not_fit(tmp_path):
    params = made(TOY)
    with pytest.raises(
        ValueError, match=r"labels=.*, problem_type='regression' was given, but an ELMo has no classifier"
    ):
        write_run_directory(tmp_path / "a", TOY, params, None, run={}, labels=["긍정"], problem_type="regression")
    with pytest.raises(ValueError, match="the parameters: no head 'crf' is known; there are lm"):
        write_run_directory(tmp_path / "a", TOY, {**params, "crf": {"bias": np.ones(3)}}, None, run={})
    with pytest.raises(ValueError, match="have a head lm, but vocab_size is None"):
        write_run_directory(tmp_path / "a", TOY, {**params, "lm": {"bias": np.ones(3)}}, None, run={})
    del params["encoder"]["token"]["conv_1"]
    with pytest.raises(ValueError, match=r"missing \(2\): encoder/token/conv_1/bias, encoder/token/conv_1/kernel"):
        write_run_directory(tmp_path / "a", TOY, params, None, run={})
    assert not (tmp_path / "a").exists()


def test_what_a_run_says_itself_is_not_asked_again(run):
    with pytest.raises(ValueError, match="leave out format='elmo', lowercase=True"):
        read_model(run, format="elmo", lowercase=True)


# Folders of other programs.


@pytest.fixture
def folder(tmp_path):
    """write(config, lm=…): a folder as AllenNLP reads it."""

    def write(config, lm=False):
        shutil.rmtree(tmp_path / "elmo", ignore_errors=True)
        elmo_hdf5.write(tmp_path / "elmo", made(config, lm), config)
        return tmp_path / "elmo"

    return write


@pytest.mark.parametrize("name", ["words.txt", "vocab.txt", "vocab-2016-09-10.txt"])
@pytest.mark.parametrize(("config", "lm"), [(BY_WORDS, False), (dataclasses.replace(TOY, vocab_size=8), True)])
def test_the_vocabulary_beside_the_weights(folder, name, config, lm):
    place = folder(config, lm)
    assert read_model(place).tokenizer is None
    (place / name).write_text("".join(f"{word}\n" for word in WORDS.words), encoding="utf-8")
    model = read_model(place)
    assert model.tokenizer.words == WORDS.words
    assert model.report.heads == (("lm",) if lm else ())
    (place / name).write_text("<S>\n</S>\n<UNK>\n강\n", encoding="utf-8")
    with pytest.raises(ValueError, match=rf"{name} has 4 words, the model 8: they do not belong together"):
        read_model(place)
    (place / name).write_text("강\n배\n", encoding="utf-8")
    with pytest.raises(ValueError, match="the first three lines should be <S>, </S>, <UNK>"):
        read_model(place)


def test_two_vocabularies(folder):
    place = folder(BY_WORDS)
    for name in ("vocab.txt", "vocab_test.txt"):
        (place / name).write_text("".join(f"{word}\n" for word in WORDS.words), encoding="utf-8")
    message = r": vocab.txt, vocab_test.txt. Call the one of this model words.txt"
    with pytest.raises(ValueError, match=r"2 word vocabularies.*" + message):
        read_model(place)
    (place / "vocab.txt").rename(place / "words.txt")
    assert read_model(place).tokenizer.words == WORDS.words


def test_a_list_of_words_beside_a_model_of_characters_is_no_concern(folder):
    place = folder(TOY)
    (place / "vocab_test.txt").write_text("강\n배\n", encoding="utf-8")
    assert read_model(place).tokenizer is None


def test_options_that_make_no_sense(folder):
    place = folder(TOY)
    for lowercase in (True, False):
        with pytest.raises(ValueError, match=f"lowercase={lowercase} was given for .*, but an ELMo never folds case"):
            load(place, lowercase=lowercase)
    with pytest.raises(ValueError, match=r"classifier='tag' was given for .*, but ELMo has no classifier"):
        read_model(place, classifier="tag")
    for format in ("google", "huggingface"):
        with pytest.raises(FileNotFoundError):
            load(place, format=format)


def test_by_the_file_of_weights(folder):
    place = folder(BY_WORDS)
    WORDS.save(place)
    for path in (place, place / "weights.hdf5"):
        model = read_model(path)
        assert model.config == BY_WORDS and model.tokenizer.words == WORDS.words
