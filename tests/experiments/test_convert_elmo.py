"""Conversion of an ELMo: every round trip keeps every bit, and impossible requests are refused."""

import dataclasses

import jax
import numpy as np
import pytest

from bert_elmo_jax.families.elmo import hdf5_weights as elmo_hdf5
from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.families.elmo.model import init_elmo_params
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.text import WordVocabulary
from bert_elmo_jax.weights.parameter_tree import flatten

from .programs import run_program

CONFIG = ElmoConfig.preset("toy", vocab_size=8)
WORDS = WordVocabulary.build({"강": 9, "river": 8, "배": 7, "bank": 6, "은행": 5})


@pytest.fixture
def source(tmp_path):
    """Write a folder as AllenNLP reads it, with a language-model head and its words."""
    folder = tmp_path / "released"
    elmo_hdf5.write(folder, init_elmo_params(CONFIG, jax.random.key(0), lm=True), CONFIG)
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS.words), encoding="utf-8")
    return folder


def test_every_way_round_keeps_every_bit(tmp_path, source):
    steps = [
        (source, tmp_path / "run", "--to_format=run"),
        (tmp_path / "run", tmp_path / "again", None),  # of the two that an ELMo can be, AllenNLP's unless asked
        (tmp_path / "again", tmp_path / "run2", "--to_format=run"),
        (tmp_path / "run2", tmp_path / "last", "--to_format=elmo"),
        (tmp_path / "last" / "weights.hdf5", tmp_path / "by_file", None),
    ]
    runs = [run_program("convert", f"--from={a}", f"--to={b}", *([kind] if kind else [])) for a, b, kind in steps]
    original = flatten(read_model(source).params)
    for (_, target, _), (status, out, wrong) in zip(steps, runs, strict=True):
        assert (status, wrong) == (0, "")
        assert f"{len(original)} tensors mapped" in out
        model = read_model(target)
        assert model.config == CONFIG and model.tokenizer.fingerprint == WORDS.fingerprint
        again = flatten(model.params)
        assert again.keys() == original.keys()
        for name, value in again.items():
            np.testing.assert_array_equal(value, original[name], err_msg=name)
    for name in ("again", "last", "by_file"):
        files = sorted(path.name for path in (tmp_path / name).iterdir())
        assert files == ["SHA256SUMS", "options.json", "weights.hdf5", "words.txt"]
        for file in ("options.json", "weights.hdf5"):
            assert (tmp_path / name / file).read_bytes() == (source / file).read_bytes()
    assert "Written as elmo: SHA256SUMS, options.json, weights.hdf5, words.txt" in runs[1][1]
    assert "Written as run: SHA256SUMS, checkpoints, model.json, run.json, tokenizer" in runs[0][1]


def test_impossible_conversions_are_refused(tmp_path, source, goldens):
    to = f"--to={tmp_path / 'to'}"
    bert = f"--from={goldens / 'bert_tiny'}"
    wrong = tmp_path / "wrong"
    elmo_hdf5.write(wrong, init_elmo_params(CONFIG, jax.random.key(0)), CONFIG)
    dataclasses.replace(CONFIG, num_layers=3, cell_size=9).to_json(wrong / "options.json")
    elmo = f"--from={source}"
    cases = {
        "holds a BERT, which cannot be written as --to_format=elmo; use huggingface or run": [bert, "--to_format=elmo"],
        "holds an ELMo, which cannot be written as --to_format=huggingface": [elmo, "--to_format=huggingface"],
        "lowercase=False was given for": [elmo, "--nolowercase"],
        "but ELMo has no classifier: leave it out": [elmo, "--classifier=tag"],
        "has no ELMo: no file ends with .hdf5 or .h5": [bert, "--format=elmo"],
        "lstm.n_layers is 3, but the weights have 2 (Cell0, Cell1)": [f"--from={wrong}"],
        "is not empty; give another --to": [elmo, f"--to={wrong}"],
    }
    for message, flags in cases.items():
        status, _, err = run_program("convert", to, *flags)
        assert status == 2 and message in err, err
        assert "Traceback" not in err
    assert not (tmp_path / "to").exists()
