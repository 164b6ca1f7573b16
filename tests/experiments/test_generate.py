"""Prompts from flags, files and standard input; texts as a stream and as JSON lines."""

import json
import shutil

import pytest

from bert_elmo_jax import load
from bert_elmo_jax.inference.generate_file import generate_file

from .programs import run_program


@pytest.fixture(scope="module")
def models(goldens):
    return {name: str(goldens / name) for name in ("gpt2_tiny", "gpt_tiny", "transformer_tiny")}


def generate(*words, stdin=""):
    return run_program("generate", *words, stdin=stdin)


def test_one_prompt_is_streamed(models):
    words = (f"--model={models['gpt2_tiny']}", "--prompt=the old ship", "--max_new=12", "--temperature=1.0", "--seed=3")
    done = generate(*words)
    [[text]] = load(models["gpt2_tiny"]).generate(["the old ship"], max_new=12, temperature=1.0, seed=3)
    assert (done.status, done.out) == (0, f"{text.text}\n") and done.err.startswith(models["gpt2_tiny"])
    assert generate(*words).out == done.out


@pytest.mark.long
def test_lines_of_standard_input_and_of_a_file(models, tmp_path):
    words = (f"--model={models['gpt2_tiny']}", "--max_new=4", "--beams=3", "--n_best=2", "--batch_size=2")
    lines = ["the old ship", "강가의", "a"]
    done = generate(*words, stdin="\n".join(lines) + "\n\n")
    assert done.status == 0, done.err
    records = [json.loads(line) for line in done.out.splitlines()]
    assert [line["prompt"] for line in records] == lines
    expected = load(models["gpt2_tiny"]).generate(lines, max_new=4, beams=3, n_best=2)
    for line, texts in zip(records, expected, strict=True):
        assert [text["text"] for text in line["texts"]] == [text.text for text in texts]
    assert {tuple(text) for line in records for text in line["texts"]} == {("text", "score", "finished")}
    (tmp_path / "prompts.txt").write_text("\n".join(lines), encoding="utf-8")
    done = generate(*words, f"--input={tmp_path / 'prompts.txt'}", f"--output={tmp_path / 'texts.jsonl'}")
    assert (done.status, done.out) == (0, "")
    assert [json.loads(line) for line in (tmp_path / "texts.jsonl").read_text("utf-8").splitlines()] == records


def write_file(model, folder, lines, **options):
    """Write the texts for the lines of a file, and return them."""
    (folder / "prompts.txt").write_text("\n".join(lines), encoding="utf-8")
    options = {"n_best": 1, "max_new": 6, "repetition_penalty": 1.0, "stop": [], "seed": 0, **options}
    unset = dict.fromkeys(("beams", "length_penalty", "temperature", "top_k", "top_p"))
    source, target = str(folder / "prompts.txt"), folder / "texts.jsonl"
    generate_file(str(model), source=source, target=str(target), **(unset | options))
    return [json.loads(line)["texts"][0] for line in target.read_text("utf-8").splitlines()]


def test_equal_lines_of_a_file_get_different_draws(models, tmp_path):
    texts = write_file(models["gpt2_tiny"], tmp_path, ["the ship"] * 11, batch_size=1, temperature=3.0)
    assert len({text["text"] for text in texts}) == 11
    [expected] = load(models["gpt2_tiny"]).generate(["the ship"] * 11, max_new=6, temperature=3.0)[10]
    assert texts[10]["text"] == expected.text


def test_a_prompt_that_does_not_fit_is_named_before_anything_is_written(models, tmp_path):
    lines = ["5 6", "", *["7"] * 20, " ".join(["5"] * 200)]
    with pytest.raises(ValueError, match=r"prompts.txt, line 23: prompt 23 has 200 pieces"):
        write_file(models["gpt_tiny"], tmp_path, lines, batch_size=1)
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == ["prompts.txt"]


def test_texts_are_written_again_if_the_rules_of_the_model_have_changed(goldens, tmp_path):
    shutil.copytree(goldens / "bart_tiny", tmp_path / "bart")
    before = write_file(tmp_path / "bart", tmp_path, ["the ship"])
    rules = tmp_path / "bart" / "generation_config.json"
    rules.write_text(json.dumps(json.loads(rules.read_text()) | {"no_repeat_ngram_size": 1, "num_beams": 3}))
    with pytest.raises(FileExistsError):
        write_file(tmp_path / "bart", tmp_path, ["the ship"])
    assert write_file(tmp_path / "bart", tmp_path, ["the ship"], overwrite=True) != before


@pytest.mark.parametrize("name", ["gpt_tiny", "transformer_tiny"])
def test_a_model_without_a_tokenizer_reads_and_writes_ids(models, name):
    done = generate(f"--model={models[name]}", "--max_new=3", "--prompt=5 6 7")
    [line] = map(json.loads, done.out.splitlines())
    [[text]] = load(models[name]).generate([[5, 6, 7]], max_new=3)
    assert line["prompt"] == "5 6 7" and line["texts"][0]["ids"] == text.ids
    done = generate(f"--model={models[name]}", "--max_new=3", stdin="5 6\na b\n")
    assert done.status == 2 and "prompts are ids with spaces between them; prompt 2 is 'a b'" in done.err


def test_a_stream_that_is_stopped(models, monkeypatch):
    def stream(encoder, prompt, **options):
        yield "some"
        raise KeyboardInterrupt

    monkeypatch.setattr("bert_elmo_jax.families.piece_encoder.PieceEncoder.stream", stream)
    done = generate(f"--model={models['gpt2_tiny']}", "--prompt=the")
    assert (done.out, done.status) == ("some\n", 130)
    assert "generate: stopped; from a file to a file, the same command resumes\n" in done.err
