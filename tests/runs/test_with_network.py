"""The contents of a network's run directory, and errors if its files belong to another network."""

import dataclasses
import json
from unicodedata import normalize

import jax
import numpy as np
import pytest
from ml_collections import ConfigDict

from bert_elmo_jax import load
from bert_elmo_jax.data.tasks.task import Task, task_named
from bert_elmo_jax.inference.run_directory import is_run_directory, write_run_directory
from bert_elmo_jax.inference.task_network import check_parts
from bert_elmo_jax.inference.word_encoder import layer_shape, word_encoder
from bert_elmo_jax.networks import BidafConfig, TaggerConfig, init_network, network_shapes
from bert_elmo_jax.runs.with_network import build_lexicon, check_same_network, save_encoder
from bert_elmo_jax.text import Lexicon
from bert_elmo_jax.text.vector_files import write_vectors

LEXICON = Lexicon(["배", "river"], "unk", width=4)
CONFIG = TaggerConfig(num_tags=2, num_words=2, word_size=4, lstm_layers=1, lstm_size=3)
TASK: Task = dataclasses.replace(task_named("ud_upos"), labels=("ADV", "NOUN"))


def params_of(config):
    tables = LEXICON.table()
    return init_network(config, jax.random.key(0), *tables)


def write(folder, **changes):
    config = dataclasses.replace(CONFIG, **changes)
    write_run_directory(folder, config, params_of(config), LEXICON, run={}, task=TASK)
    return folder


def test_written_and_loaded(tmp_path):
    network = load(write(tmp_path / "run"))
    assert network.config == CONFIG
    assert network.labels == ("ADV", "NOUN")
    assert network.encoder is None
    content = json.loads((tmp_path / "run" / "model.json").read_text(encoding="utf-8"))
    assert (content["family"], content["encoder"], content["labels"]) == ("tagger", None, ["ADV", "NOUN"])
    check_same_network(tmp_path / "new", CONFIG, ("ADV", "NOUN"), "0123")
    check_same_network(tmp_path / "run", CONFIG, ("ADV", "NOUN"), LEXICON.fingerprint)
    for config, labels, words in (
        (dataclasses.replace(CONFIG, lstm_size=4), ("ADV", "NOUN"), LEXICON.fingerprint),
        (CONFIG, ("ADV", "VERB"), LEXICON.fingerprint),
        (CONFIG, ("ADV", "NOUN"), "0123"),
    ):
        with pytest.raises(ValueError, match="was started with other training data, vectors or encoder"):
            check_same_network(tmp_path / "run", config, labels, words)


def test_a_network_finds_the_decomposed_words_of_a_file(tmp_path):
    """Also those that only later texts have; the ending of a binary file may be in capitals."""
    words = [normalize("NFD", word) for word in ("배", "강가에", "서울")]
    write_vectors(tmp_path / "a.vec", words, np.eye(3, dtype=np.float32))
    write_vectors(tmp_path / "a.BIN", words, np.eye(3, dtype=np.float32), "binary")
    for name in ("a.vec", "a.BIN"):
        fields = {"vectors": str(tmp_path / name), "unknown": "vectors", "character_vectors": "", "seed": 0}
        config = ConfigDict({"word_size": 0, "tune_words": True, "train": "train.conll", **fields})
        lexicon, vectors = build_lexicon(config, [("배", "서울")])
        assert set(vectors.words) == {"배", "서울"}
        assert lexicon.vectors(["강가에"]).tolist() == [[0, 1, 0]]


def test_a_reader_of_questions_has_no_labels_and_resumes(tmp_path):
    """Its `model.json` has null for the labels; a resumed run once took this for different labels."""
    config = BidafConfig(num_words=2, word_size=4, lstm_size=3)
    params = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), network_shapes(config))
    write_run_directory(tmp_path, config, params, LEXICON, run={}, task=task_named("squad"))
    check_same_network(tmp_path, config, (), LEXICON.fingerprint)
    with pytest.raises(ValueError, match="was started with other training data"):
        check_same_network(tmp_path, config, ("A",), LEXICON.fingerprint)


def test_parts_of_different_networks_are_refused(tmp_path):
    elmo = word_encoder("tests/goldens/elmo_tiny")
    layers, width = layer_shape(elmo)
    reads = dataclasses.replace(CONFIG, encoder_layers=layers, encoder_width=width)
    check_parts(reads, LEXICON, TASK, elmo, "run")
    with pytest.raises(ValueError, match="has layers of 3 x 24 numbers, the network was made for 0 x 0"):
        check_parts(CONFIG, LEXICON, TASK, elmo, "run")
    with pytest.raises(ValueError, match="the lexicon and the network's table of words"):
        check_parts(CONFIG, Lexicon(["배"], "unk", width=4), TASK, None, "run")
    with pytest.raises(ValueError, match="run: 3 tags, the network has 2"):
        check_parts(CONFIG, LEXICON, dataclasses.replace(TASK, labels=("A", "B", "C")), None, "run")
    described = save_encoder(tmp_path / "encoder", elmo)
    assert described["family"] == "elmo" and is_run_directory(tmp_path / "encoder")
    assert save_encoder(tmp_path / "encoder", elmo) == described  # the same one is no mistake
    with pytest.raises(ValueError, match=r"this run was started with another encoder \(.*bert_tiny is"):
        save_encoder(tmp_path / "encoder", word_encoder("tests/goldens/bert_tiny"))


def test_a_folder_that_was_changed(tmp_path):
    folder = write(tmp_path / "run")
    with pytest.raises(ValueError, match="computes in float32: leave out dtype"):
        load(folder, dtype="bfloat16")
    Lexicon(["배", "sea"], "unk", width=4).save(folder / "tokenizer")
    with pytest.raises(ValueError, match="is another tokenizer than this model was written with"):
        load(folder)
    (folder / "tokenizer" / "lexicon.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"there is no lexicon\.json"):
        load(folder)
    other = write(tmp_path / "other")
    content = json.loads((other / "model.json").read_text(encoding="utf-8"))
    content["config"]["lstm_size"] = 5
    (other / "model.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match="layer_0"):
        load(other)


def test_parameters_of_another_network(tmp_path):
    params = params_of(CONFIG)
    params["tags"]["bias"] = np.zeros(3, np.float32)
    with pytest.raises(ValueError, match="tags/bias"):
        write_run_directory(tmp_path / "run", CONFIG, params, LEXICON, run={}, task=TASK)


def test_a_run_of_an_earlier_version(tmp_path):
    """Its config lacks later fields; it loads and resumes with the behaviour that it had then."""
    write(tmp_path / "run")
    file = tmp_path / "run" / "model.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    for name in TaggerConfig.ADDED:
        del content["config"][name]
    file.write_text(json.dumps(content), encoding="utf-8")
    assert load(tmp_path / "run").config == CONFIG
    check_same_network(tmp_path / "run", CONFIG, ("ADV", "NOUN"), LEXICON.fingerprint)
    with pytest.raises(ValueError, match="was started with other training data, vectors or encoder"):
        check_same_network(
            tmp_path / "run", dataclasses.replace(CONFIG, cell="gru"), ("ADV", "NOUN"), LEXICON.fingerprint
        )


def test_columns_survive_the_run_directory(tmp_path):
    sizes = {"encoder_layers": 3, "encoder_width": 24, "encoder_columns": (12, 24)}
    config = dataclasses.replace(
        CONFIG, cell="gru", characters=True, character_encoder="gru", character_size=3, **sizes
    )
    lexicon = Lexicon(LEXICON.words, "unk", width=4, characters=True)
    elmo = word_encoder("tests/goldens/elmo_tiny")
    described = save_encoder(tmp_path / "run" / "encoder", elmo)
    params = params_of(config)
    write_run_directory(tmp_path / "run", config, params, lexicon, run={}, task=TASK, encoder=described)
    network = load(tmp_path / "run")
    assert (network.config, network.lexicon.characters) == (config, True)
    check_same_network(tmp_path / "run", config, ("ADV", "NOUN"), lexicon.fingerprint)
    [tags] = network.predict([["배", "처음", "river"]])
    assert len(tags.tags) == 3
