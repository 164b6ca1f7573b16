"""Prompts from flags, files and standard input; texts as a stream and as JSON lines."""

import json

import pytest

from bert_elmo_jax import load

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
