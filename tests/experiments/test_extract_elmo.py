"""Extraction with an ELMo, as people run it; test_convert_and_extract.py has the tests for all families."""

import json
import re

import h5py
import numpy as np
import pytest

from bert_elmo_jax import load

from .programs import run_program

TEXTS = ["강가의 작은 은행", "The river  bank", "배", "The river  bank", "a b c d e f g h"]


def run(*flags):
    return run_program("extract", *flags)


@pytest.fixture
def flags(tmp_path, goldens):
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    return [f"--model={goldens / 'elmo_tiny'}", f"--input={tmp_path / 'texts.txt'}"]


def test_the_layout_is_that_of_the_references(tmp_path, flags, goldens):
    done = run(*flags, f"--output={tmp_path / 'all.h5'}")
    assert done.status == 0, done.err
    heading = f"5 texts of {tmp_path / 'texts.txt'} -> {tmp_path / 'all.h5'}, layers [0, 1, 2], on "
    assert re.match(re.escape(heading) + r"\d+ × cpu\n", done.out)
    expected = load(goldens / "elmo_tiny").encode(TEXTS)
    with h5py.File(tmp_path / "all.h5") as file:
        assert set(file) == {*map(str, range(5)), "sentence_to_index"}
        for n, words in enumerate(expected.words):
            assert file[str(n)].dtype == np.float32
            assert file[str(n)].shape == (3, len(words), 24)
            assert np.abs(file[str(n)][()] - expected.layers[:, n, : len(words)]).max() < 1e-5
        assert json.loads(file["sentence_to_index"][0]) == {TEXTS[0]: "0", TEXTS[1]: "3", "배": "2", TEXTS[4]: "4"}


def test_layers_and_warmup_of_columns(tmp_path, flags, goldens):
    (tmp_path / "a.conll").write_text("강가의 O\nNew_York B\n\n배 O\n", encoding="utf-8")
    flags = [flags[0], f"--input={tmp_path / 'a.conll'}", f"--output={tmp_path / 'a.npz'}"]
    done = run(*flags, "--layers=-1,0", "--units=words", "--warmup=2")
    assert done.status == 0, done.err
    expected = load(goldens / "elmo_tiny").encode([["강가의", "New_York"], ["배"]], warmup=2)
    with np.load(tmp_path / "a.npz") as vectors:
        assert {name: vectors[name].shape for name in vectors} == {"0": (2, 2, 24), "1": (2, 1, 24)}
        assert np.abs(vectors["0"] - expected.layers[[2, 0], 0]).max() < 1e-4
        assert np.abs(vectors["1"] - expected.layers[[2, 0], 1, :1]).max() < 1e-4


def test_flags_that_say_nothing(tmp_path, flags, goldens):
    bert = [f"--model={goldens / 'bert_tiny'}", flags[1], f"--output={tmp_path}/a.h5"]
    elmo = [*flags, f"--output={tmp_path}/a.h5"]
    expected = [
        ([*elmo, "--overflow=truncate", "--pool=first"], "--pool=first, --overflow=truncate means nothing for an ELMo"),
        ([*elmo, "--units=pieces"], "--units=pieces means nothing for an ELMo, which "),
        ([*bert, "--warmup=1"], "--warmup=1 means nothing for a BERT, which "),
        ([*elmo, "--warmup=-1"], "warmup=-1: use a whole number, at least 0"),
        ([*elmo, "--layers=3"], "there is no layer 3: the layers of this model are 0 (the embeddings) to 2"),
    ]
    for arguments, message in expected:
        status, _, err = run_program("extract", *arguments)
        assert status == 2
        assert message in err
    assert [file.name for file in tmp_path.iterdir()] == ["texts.txt"]
