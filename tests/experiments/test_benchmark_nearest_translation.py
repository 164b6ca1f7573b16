"""The baseline that copies the translation of the nearest training sentence."""

import functools

import jax
import pytest
from absl import flags

from bert_elmo_jax import train
from bert_elmo_jax.data.corpora.store import open_store
from bert_elmo_jax.data.corpora.toy_corpus import toy_pairs
from bert_elmo_jax.evals.translation import score
from bert_elmo_jax.runs.config_files import read_config
from bert_elmo_jax.runs.pretraining import pretrain
from bert_elmo_jax.text import load_tokenizer


@pytest.fixture(scope="module")
def benchmark(program):
    return program("benchmarks.nearest_translation")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nearest")
    corpus = toy_pairs(folder / "pairs", topics=2, words=2, documents=60, heldout=0.3)
    config, _ = read_config("experiments/configs/transformer.py:toy")
    config.model.update(num_layers=1, hidden_size=8, num_heads=2, feed_forward_size=8)
    config.update({"data": str(corpus), "steps": 2, "batch_size": 4, "eval_every": 0, "checkpoint_every": 2})
    config.update(translations=8, beams=1, average=1, keep=1, reverse=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "make_mesh", functools.partial(train.make_mesh, devices=jax.devices()[:1]))
        assert pretrain(config, folder / "run") == 0
    return folder / "run", corpus


def test_the_nearest_shares_most_words(benchmark):
    sentences = ["a man runs", "A woman rides a horse", "a man rides a horse", "dogs bark"]
    nearest = benchmark.find_nearest(["a man rides a HORSE", "the dogs", "none of them", "a woman"], sentences)
    assert nearest == [(2, 1.0), (3, 1 / 3), (0, 0.0), (1, 0.5)]
    assert benchmark.find_nearest(["x x y"], ["x y z", "y x"]) == [(1, 1.0)], "words count once"


@pytest.mark.long
def test_the_table(benchmark, run, capsys):
    folder, corpus = run
    flags.FLAGS.run, flags.FLAGS.tokenize = str(folder), "char"
    benchmark.main()
    out = capsys.readouterr().out
    decode = load_tokenizer(corpus / "tokenizer").decode
    train_pairs, heldout_pairs = (
        [[decode(side) for side in pair] for pair in open_store(corpus, p)] for p in ("train", "heldout")
    )
    copies, references = [], []
    for target, source in heldout_pairs[:8]:  # the run translates from the second side to the first
        words = set(source.lower().split())
        shares = [len(words & set(s.lower().split())) / len(words | set(s.lower().split())) for _, s in train_pairs]
        copies.append(train_pairs[shares.index(max(shares))][0])
        references.append(target)
    figures = score(copies, references, "char")
    first, second = out.splitlines()[:2]
    assert first.startswith("pairs") and second.split()[:2] == ["all", "8"]
    assert second.split()[-3:-1] == [f"{figures['bleu']:.1f}", f"{figures['chrf']:.1f}"]


def test_a_folder_that_is_no_run(benchmark, tmp_path):
    flags.FLAGS.run = str(tmp_path)
    with pytest.raises(ValueError, match="is not a run directory"):
        benchmark.main()
