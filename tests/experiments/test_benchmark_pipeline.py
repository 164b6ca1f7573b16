"""The benchmark runs at a toy size."""

from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus

from .programs import run_program


def run(*words):
    status, out, err = run_program("benchmarks.pipeline", "--batches=2", "--positions=1024", "--steps=none", *words)
    assert status == 0, err
    return out.splitlines()


def test_on_a_generated_corpus():
    lines = run("--documents=60")
    assert sum("BERT 128" in line for line in lines) == sum("BERT 512" in line for line in lines) == 6
    assert sum("biLM" in line for line in lines) == 3
    assert sum("times as many real tokens" in line for line in lines) == 2
    assert all("M tokens/s" in line and "plan" in line for line in lines if "BERT" in line or "biLM" in line)


def test_on_a_corpus_of_one_s_own(tmp_path):
    words = toy_corpus(tmp_path / "ko", language="ko", documents=40, tokenizer="words")
    lines = run("--data=none", f"--words={words}")
    assert len(lines) == 3
    assert all("biLM" in line for line in lines)
