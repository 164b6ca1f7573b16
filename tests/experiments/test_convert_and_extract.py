"""Conversion and extraction, as people run them."""

import json

import h5py
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families.bert.formats import WEIGHTS
from bert_elmo_jax.families.elmo.encoder import ElmoEncoder
from bert_elmo_jax.families.piece_encoder import PieceEncoder

from .programs import run_program


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
        done = run_program("convert", f"--from={source}", f"--to={target}", f"--to_format={kind}")
        assert done.status == 0, done.err
        assert done.out.startswith(f"Converting {source} -> {target}, on this machine's processor\n")
        again = load(target)
        same_tree(again.params, original.params)
        assert again.config == original.config
        assert again.tokenizer.fingerprint == original.tokenizer.fingerprint
        if source.name == "bert_tiny_tf":
            assert "adam_m" in done.out
            assert "global_step" in done.out


def test_the_last_checkpoints_are_averaged(tmp_path, goldens):
    import jax

    from bert_elmo_jax.train.checkpoint import load_params, save_params

    done = run_program("convert", f"--from={goldens / 'bert_tiny'}", f"--to={tmp_path / 'run'}", "--to_format=run")
    assert done.status == 0, done.err
    at, params = load_params(tmp_path / "run")
    for more in (1, 2):
        save_params(tmp_path / "run", at + more, jax.tree.map(lambda a, more=more: a + 3 * more, params))
    flags = [f"--from={tmp_path / 'run'}", "--to_format=run"]
    done = run_program("convert", *flags, f"--to={tmp_path / 'mean'}", "--average=2")
    assert done.status == 0, done.err
    assert f"mean of steps {at + 1}, {at + 2}" in done.out
    mean = load(tmp_path / "mean").params
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b + 4.5, atol=1e-6), mean, load(goldens / "bert_tiny").params
    )
    done = run_program("convert", *flags, f"--to={tmp_path / 'more'}", "--average=4")
    assert done.status == 2
    assert "holds 3 checkpoints" in done.err
    done = run_program("convert", f"--from={goldens / 'bert_tiny'}", f"--to={tmp_path / 'hf'}", "--average=2")
    assert done.status == 2
    assert "is not a run directory" in done.err


def test_convert_says_what_is_wrong(tmp_path, goldens):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    for flags, message in [
        ((f"--from={goldens / 'bert_tiny'}", f"--to={tmp_path / 'full'}"), "is not empty; give another --to"),
        ((f"--from={tmp_path / 'full'}", f"--to={tmp_path / 'b'}"), "holds no weights"),
        (("--from=./nowhere", f"--to={tmp_path / 'b'}"), "does not exist"),
    ]:
        done = run_program("convert", *flags)
        assert done.status == 2
        assert message in done.err
        assert "Traceback" not in done.err


TEXTS = ["w14 w15", "w1 w2 w3 w4 w5 w6", "w7"]


@pytest.mark.parametrize("ending", ["h5", "npz"])
def test_extracted_vectors_are_those_of_the_encoder(tmp_path, goldens, ending):
    (tmp_path / "texts.txt").write_bytes("\r\n".join(TEXTS).encode())  # as a Windows editor leaves it
    output = tmp_path / f"vectors.{ending}"
    flags = (f"--model={goldens / 'bert_tiny'}", f"--input={tmp_path / 'texts.txt'}", f"--output={output}")
    done = run_program("extract", *flags, "--layers=all")
    assert done.status == 0, done.err
    expected = load(goldens / "bert_tiny").encode(TEXTS, layers="all")
    assert done.out.endswith("\n15 pieces in 16 positions (6.2% padding)\n")
    file = h5py.File(output) if ending == "h5" else np.load(output)
    with file:
        for n, tokens in enumerate(expected.tokens):
            assert file[str(n)].shape == (4, len(tokens), 64)
            assert np.allclose(file[str(n)], expected.layers[:, n, : len(tokens)], atol=1e-5)
        if ending == "h5":
            assert json.loads(file["sentence_to_index"][0]) == {text: str(n) for n, text in enumerate(TEXTS)}
    assert not list(tmp_path.glob("*.partial"))
    again = run_program("extract", *flags)
    assert again.status == 2
    assert "exists; remove it" in again.err


def test_words_of_columns(tmp_path, goldens):
    lines = "1\tw14\tX\n2-3\tw1w2\t_\n2\tw1\tX\n3\tw2\tX\n\n# a comment\n1\tw7w8\tX\n"
    (tmp_path / "texts.conllu").write_text(lines)
    flags = (
        f"--model={goldens / 'bert_tiny'}",
        f"--input={tmp_path / 'texts.conllu'}",
        f"--output={tmp_path / 'v.npz'}",
    )
    done = run_program("extract", *flags, "--units=words", "--layers=1,-1")
    assert done.status == 0, done.err
    encoding = load(goldens / "bert_tiny").encode([["w14", "w1", "w2"], ["w7w8"]], layers=[1, -1])
    with np.load(tmp_path / "v.npz") as vectors:
        assert vectors["0"].shape == (2, 3, 64)
        for k in range(2):
            assert np.allclose(vectors["1"][k], encoding.words("mean", encoding.layers[k])[1], atol=1e-5)


def test_extract_says_what_is_wrong(tmp_path, goldens, monkeypatch):
    files = {
        "good.txt": "one\ntwo\n",
        "blank.txt": "one\n\ntwo\n",
        "nothing.txt": "one\n\u200b\ntwo\n",
        "long.txt": "one\ntwo\n" + "w1 " * 99 + "\n",
        "short.conll": "one\tO\ntwo\n",
        "long.conll": "# id = 1\none\tO\n\n# id = 2\n" + "w1\tO\n" * 99,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    model, good, output = (
        f"--model={goldens / 'bert_tiny'}",
        f"--input={tmp_path}/good.txt",
        f"--output={tmp_path}/a.h5",
    )
    # Errors that need no model are reported without loading one.
    before = ["--model=./no/model"]
    expected = [
        ([*before, f"--input={tmp_path}/blank.txt", output], "blank.txt, line 2: a blank line"),
        (
            [*before, f"--input={tmp_path}/short.conll", output, "--column=1"],
            "short.conll, line 2: no word in column 1",
        ),
        ([*before, good, f"--output={tmp_path}/a.csv"], "use .h5, .hdf5 or .npz"),
        ([*before, good, f"--output={tmp_path}/none/a.h5"], f"there is no folder {tmp_path}/none to write a.h5 into"),
        ([*before, f"--input={tmp_path}/none.txt", output], "no file matches"),
        ([*before, good, output, "--layers=all,1"], "--layers=all,1: use numbers, such as 0,9,-1, or all alone"),
        ([*before, good, output, "--layers="], "--layers= is empty"),
        ([*before, good, output, "--layers=1.5"], "--layers=1.5: use numbers"),
        ([*before, good, output, "more"], "unexpected argument 'more'"),
        ([*before, good, output], "does not exist"),
        ([model, good, output, "--layers=9"], "there is no layer 9"),
        ([model, good, output, "--batch_size=0"], "batch_size=0: use a whole number, at least 1"),
        ([model, good, output, "--batch_size=-1"], "batch_size=-1"),
        ([model, good, output, "--pool=last"], "--pool=last joins the pieces of each word: add --units=words"),
        ([model, f"--input={tmp_path}/nothing.txt", output], "nothing.txt, line 2: text 1 is empty, or has nothing"),
        ([model, f"--input={tmp_path}/long.txt", output], "long.txt, line 3: text 2 has"),
        ([model, f"--input={tmp_path}/long.conll", output], "long.conll, line 5: text 1 has"),
    ]
    # No text may be computed before all are checked.
    monkeypatch.setattr(PieceEncoder, "_fill", None)
    for flags, message in expected:
        status, _, err = run_program("extract", *flags)
        assert message in err, flags
        assert status == 2
        assert len(err.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(files)


def raise_after(batches, stops):
    """An `encode_batches` that raises another error each time after so many batches."""

    def stopping(self, *args, **kwargs):
        after, error = next(stops)
        for number, batch in enumerate(batches(self, *args, **kwargs)):
            if number == after:
                raise error
            yield batch

    return stopping


@pytest.mark.parametrize(
    ("ending", "model"), [("h5", "bert_tiny"), pytest.param("npz", "elmo_tiny", marks=pytest.mark.long)]
)
def test_a_stopped_extraction_goes_on(tmp_path, goldens, ending, model, monkeypatch):
    """A part has 32 batches: of 40 texts with one per batch, 32 are written when the 36th is computed."""
    (tmp_path / "good.txt").write_text("w1 w2\nw3\n" * 20)
    flags = [f"--model={goldens / model}", f"--input={tmp_path}/good.txt", "--batch_size=1"]
    full_output, path = tmp_path / f"whole.{ending}", tmp_path / f"a.{ending}"
    assert run_program("extract", *flags, f"--output={full_output}").status == 0
    stops = [
        (0, KeyboardInterrupt(), 130, "extract: stopped; the same command resumes from here"),
        (36, MemoryError("3 TB"), 2, "extract: out of memory: 3 TB; lower --batch_size, ask for few"),
        (0, OSError(28, "No space left"), 2, f"No space left: '{path}'; make room, and the same command resumes"),
        (7, ValueError("of any kind"), 2, "extract: of any kind"),
    ]
    with monkeypatch.context() as patch:
        encoder = ElmoEncoder if model == "elmo_tiny" else PieceEncoder
        errors = iter([(after, error) for after, error, _, _ in stops])
        patch.setattr(encoder, "encode_batches", raise_after(encoder.encode_batches, errors))
        for _, _, expected, message in stops:
            status, _, err = run_program("extract", *flags, f"--output={path}")
            assert (status, "Traceback" in err) == (expected, False)
            assert message in err
    assert not path.exists()
    (tmp_path / "other.txt").write_text("w1 w2\nw4\n" * 20)
    flags.append(f"--output={path}")
    elsewhere = [flags[0], f"--input={tmp_path}/other.txt", *flags[2:]]
    runs = [run_program("extract", *arguments) for arguments in ([*flags, "--batch_size=2"], elsewhere, flags)]
    stopped = f"{path}.partial holds the parts of a stopped run with other settings: "
    assert f"{stopped}batch_size was 1, is 2. Finish that run with its settings, or remove the folder" in runs[0].err
    assert f"{stopped}content was '" in runs[1].err
    assert [done.status for done in runs] == [2, 2, 0]
    assert path.read_bytes() == full_output.read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(
        [path.name, "good.txt", "other.txt", full_output.name, f".{path.name}.request", f".{full_output.name}.request"]
    )


def test_number_signs_and_document_marks_of_columns(tmp_path, goldens):
    (tmp_path / "a.conll").write_text("-DOCSTART- O\n\n# O\nw1 O\n\nw2 O\n")
    flags = [f"--model={goldens / 'bert_tiny'}", f"--input={tmp_path}/a.conll", f"--output={tmp_path}/a.npz"]
    status, _, err = run_program("extract", *flags, "--units=words")
    assert status == 0, err
    with np.load(tmp_path / "a.npz") as vectors:
        assert {name: vectors[name].shape for name in vectors} == {"0": (1, 2, 64), "1": (1, 1, 64)}


def test_labels_and_problem_type_survive_the_way_round(tmp_path, goldens):
    original = load(goldens / "bert_tiny")
    width = original.config.hidden_size
    head = {"kernel": np.ones((width, 2), np.float32), "bias": np.zeros(2, np.float32)}
    params = {"encoder": original.params["encoder"], "classify": head}
    task = {"labels": ["긍정", "부정"], "problem_type": "multi_label_classification"}
    WEIGHTS.write(tmp_path / "hf", params, original.config, **task)
    cases = [
        [f"--from={tmp_path}/hf", f"--to={tmp_path}/run", "--to_format=run"],
        [f"--from={tmp_path}/run", f"--to={tmp_path}/again"],
        [f"--from={tmp_path}/run", f"--to={tmp_path}/c", "--format=google"],
        [f"--from={tmp_path}/run", f"--to={tmp_path}/c", "--nolowercase", "--classifier=tag"],
    ]
    runs = [run_program("convert", *flags) for flags in cases]
    assert [(done.status, done.err) for done in runs[:2]] == [(0, ""), (0, "")]
    before, after = (json.loads((tmp_path / name / "config.json").read_text()) for name in ("hf", "again"))
    assert after == before
    assert after["problem_type"] == "multi_label_classification"
    assert after["id2label"] == {"0": "긍정", "1": "부정"}
    for (status, _, err), useless in zip(runs[2:], ["format='google'", "classifier='tag', lowercase=False"]):
        assert status == 2
        assert f"is a run directory, which knows this: leave out {useless}" in err
    assert not (tmp_path / "c").exists()
