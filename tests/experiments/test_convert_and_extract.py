"""Both programs as people run them."""

import json
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from bert_elmo_jax import load

ROOT = Path(__file__).parents[2]


def run(program, *flags):
    command = [sys.executable, "-m", f"experiments.{program}", *map(str, flags)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


def same_tree(a, b):
    if isinstance(a, dict):
        assert set(a) == set(b)
        for name in a:
            same_tree(a[name], b[name])
    else:
        assert np.array_equal(a, b)


def test_every_way_round_keeps_every_bit(tmp_path, goldens):
    original = load(goldens / "bert_tiny")
    steps = [
        (goldens / "bert_tiny_tf", tmp_path / "hf", "huggingface"),
        (tmp_path / "hf", tmp_path / "run", "run"),
        (tmp_path / "run", tmp_path / "hf2", "huggingface"),
    ]
    for source, target, kind in steps:
        done = run("convert", f"--from={source}", f"--to={target}", f"--to_format={kind}")
        assert done.returncode == 0, done.stderr
        assert str(target) in done.stdout
        again = load(target)
        same_tree(again.params, original.params)
        assert again.config == original.config
        assert again.tokenizer.fingerprint == original.tokenizer.fingerprint
        if source.name == "bert_tiny_tf":
            assert "adam_m" in done.stdout
            assert "global_step" in done.stdout


def test_convert_says_what_is_wrong(tmp_path, goldens):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    for flags, message in [
        ((f"--from={goldens / 'bert_tiny'}", f"--to={tmp_path / 'full'}"), "is not empty; give another --to"),
        ((f"--from={tmp_path / 'full'}", f"--to={tmp_path / 'b'}"), "holds no weights"),
        (("--from=./nowhere", f"--to={tmp_path / 'b'}"), "does not exist"),
    ]:
        done = run("convert", *flags)
        assert done.returncode == 2
        assert message in done.stderr
        assert "Traceback" not in done.stderr


TEXTS = ["w14 w15", "w1 w2 w3 w4 w5 w6", "w7"]


@pytest.mark.parametrize("ending", ["h5", "npz"])
def test_extracted_vectors_are_those_of_the_encoder(tmp_path, goldens, ending):
    (tmp_path / "texts.txt").write_bytes("\r\n".join(TEXTS).encode())  # as a Windows editor leaves it
    output = tmp_path / f"vectors.{ending}"
    flags = (f"--model={goldens / 'bert_tiny'}", f"--input={tmp_path / 'texts.txt'}", f"--output={output}")
    done = run("extract", *flags, "--layers=all")
    assert done.returncode == 0, done.stderr
    expected = load(goldens / "bert_tiny").encode(TEXTS, layers="all")
    file = h5py.File(output) if ending == "h5" else np.load(output)
    with file:
        for n, tokens in enumerate(expected.tokens):
            assert file[str(n)].shape == (4, len(tokens), 64)
            assert np.allclose(file[str(n)], expected.layers[:, n, : len(tokens)], atol=1e-5)
        if ending == "h5":
            assert json.loads(file["sentence_to_index"][0]) == {text: str(n) for n, text in enumerate(TEXTS)}
    assert not list(tmp_path.glob("*.partial"))
    again = run("extract", *flags)
    assert again.returncode == 2
    assert "exists; remove it" in again.stderr


def test_words_of_columns(tmp_path, goldens):
    lines = "1\tw14\tX\n2-3\tw1w2\t_\n2\tw1\tX\n3\tw2\tX\n\n# a comment\n1\tw7w8\tX\n"
    (tmp_path / "texts.conllu").write_text(lines)
    flags = (
        f"--model={goldens / 'bert_tiny'}",
        f"--input={tmp_path / 'texts.conllu'}",
        f"--output={tmp_path / 'v.npz'}",
    )
    done = run("extract", *flags, "--units=words", "--layers=1,-1")
    assert done.returncode == 0, done.stderr
    encoding = load(goldens / "bert_tiny").encode([["w14", "w1", "w2"], ["w7w8"]], layers=[1, -1])
    with np.load(tmp_path / "v.npz") as found:
        assert found["0"].shape == (2, 3, 64)
        for k in range(2):
            assert np.allclose(found["1"][k], encoding.words("mean", encoding.layers[k])[1], atol=1e-5)


def test_extract_says_what_is_wrong(tmp_path, goldens):
    (tmp_path / "blank.txt").write_text("one\n\ntwo\n")
    (tmp_path / "short.conll").write_text("one\tO\ntwo\n")
    model = f"--model={goldens / 'bert_tiny'}"
    for flags, message in [
        ((model, f"--input={tmp_path / 'blank.txt'}", "--output=a.h5"), "blank.txt, line 2: a blank line"),
        (
            (model, f"--input={tmp_path / 'short.conll'}", "--output=a.h5", "--column=1"),
            "short.conll, line 2: no word in column 1",
        ),
        ((model, f"--input={tmp_path / 'blank.txt'}", "--output=a.csv"), "use .h5, .hdf5 or .npz"),
        ((model, f"--input={tmp_path}/none.txt", "--output=a.h5"), "no file matches"),
    ]:
        done = run("extract", *flags)
        assert done.returncode == 2
        assert message in done.stderr
        assert "Traceback" not in done.stderr
    assert not (ROOT / "a.h5").exists()
