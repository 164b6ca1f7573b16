"""The program that compares writing: a table, samples, and errors about unsuitable models."""

import jax
import numpy as np
import pytest

from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.gpt.config import GptConfig
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.inference import write_run_directory
from bert_elmo_jax.text import train_wordpiece
from bert_elmo_jax.toyworld import ToyWorld

from .programs import run_program

SIZES = {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "feed_forward_size": 16, "max_positions": 64}
RUN = {"data": "toyworld", "toyworld": {"topics": 2, "words": 2, "language": "en"}}


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Write the runs of a random BERT and a random GPT for a small toy world."""
    monkeypatch.chdir(tmp_path)
    texts = [sentence.text for i in range(300) for sentence in ToyWorld("en", topics=2, words=2).document(i).sentences]
    tokenizer = train_wordpiece(texts, vocab_size=2_000)
    for name, config, head in (("bert", BertConfig, "mlm"), ("gpt", GptConfig, "lm")):
        sizes = config(vocab_size=tokenizer.vocab_size, **SIZES)
        params = init_params(get_family(name), sizes, jax.random.key(0), (head,))
        write_run_directory(tmp_path / name, sizes, jax.tree.map(np.asarray, params), tokenizer, run=RUN)


@pytest.mark.usefixtures("runs")
@pytest.mark.long
def test_a_table_and_samples():
    status, out, err = run_program("benchmarks.writing", "--masked=bert", "--next=gpt", "--count=3", "--samples=1")
    assert status == 0, err
    lines = out.splitlines()
    assert lines[0].startswith("from") and "distinct-2" in lines[0]
    assert lines[1].split()[:4] == ["the", "toy", "world", "1.000"]
    assert sum(line.startswith("masks, gibbs") for line in lines) == 2  # in the table and among the samples
