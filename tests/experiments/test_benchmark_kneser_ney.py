"""The counts, compared with a plain recursion, with counts by hand, and with a run."""

import json
import math
from collections import Counter, defaultdict

import jax
import numpy as np
import pytest
from absl import flags
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.data.corpora.store import open_store
from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus
from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.gpt.family import FAMILY
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.text import WordVocabulary, load_tokenizer

from .untrained_runs import MASKING, PIECES, TINY, write_run

BEGIN, END, WORDS = 0, 1, 7


@pytest.fixture(scope="module")
def benchmark(program):
    return program("benchmarks.kneser_ney")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return toy_corpus(tmp_path_factory.mktemp("kn") / "c", language="en,ko", documents=60, tokenizer="words")


def flat(sentences):
    return np.array([word for sentence in sentences for word in (BEGIN, *sentence, END)], np.int64)


class Plain:
    """A textbook implementation of the same model: dictionaries, tuples and recursion."""

    def __init__(self, sentences, order, discounts):
        self.counts = {}
        grams = defaultdict(Counter)
        for sentence in sentences:
            full_sentence = (BEGIN, *sentence, END)
            for n in range(1, order + 1):
                grams[n].update(full_sentence[i : i + n] for i in range(len(full_sentence) - n + 1))
        for n in range(1, order + 1):
            if n == order:
                self.counts[n] = dict(grams[n])
            else:
                before = defaultdict(set)
                for gram in grams[n + 1]:
                    before[gram[1:]].add(gram[0])
                self.counts[n] = {g: c if g[0] == BEGIN else len(before[g]) for g, c in grams[n].items()}
        self.counts[1][BEGIN,] = 0
        self.discounts = {n: (0.0, *discounts(np.array(list(c.values()), np.int64))) for n, c in self.counts.items()}

    def probability(self, word, context):
        if context is None:
            return 1 / (WORDS - 1)
        n = len(context) + 1
        following = {g[-1]: c for g, c in self.counts[n].items() if g[:-1] == context}
        total = sum(following.values())
        backoff = self.probability(word, context[1:] if context else None)
        if not total:
            return backoff
        reductions = {w: self.discounts[n][min(c, 3)] for w, c in following.items()}
        share = (following.get(word, 0) - reductions.get(word, 0.0)) / total
        return share + sum(reductions.values()) / total * backoff


words = st.integers(2, WORDS - 1)
texts = st.lists(st.lists(words, max_size=6), min_size=1, max_size=12)


@given(texts, st.lists(st.lists(words, max_size=6), min_size=1, max_size=3), st.integers(1, 4))
def test_it_is_the_recursion_of_the_book(benchmark, train, held_out, order):
    model = benchmark.fit(flat(train), WORDS, BEGIN, order)
    plain = Plain(train, order, benchmark.discounts)
    expected = []
    for sentence in held_out:
        full_sentence = (BEGIN, *sentence, END)
        for i in range(1, len(full_sentence)):
            expected.append(math.log(plain.probability(full_sentence[i], full_sentence[max(0, i - order + 1) : i])))
    np.testing.assert_allclose(benchmark.log_probabilities(model, flat(held_out)), expected, rtol=1e-9)


@given(texts, st.lists(words, max_size=5), st.integers(1, 5))
def test_probabilities_of_the_next_word_add_up_to_one(benchmark, train, context, order):
    model = benchmark.fit(flat(train), WORDS, BEGIN, order)
    last = [benchmark.log_probabilities(model, np.array([BEGIN, *context, word]))[-1] for word in range(1, WORDS)]
    assert np.exp(last).sum() == pytest.approx(1)


def test_by_hand(benchmark):
    """Bigrams of `a b`, `a b`, `a`: too few to estimate discounts from, so 0.5, 1, 1.5."""
    a, b = 2, 3
    model = benchmark.fit(flat([[a, b], [a, b], [a]]), 4, BEGIN, 2)
    # Before a stands only <S>, before b only a, before </S> both a and b: of 4, with 0.5 or 1 taken off; left: 2 / 4.
    one, end = 0.5 / 4 + 2 / 4 / 3, 1 / 4 + 2 / 4 / 3
    # After <S>: a three times. After a: b twice, </S> once. After b: </S> twice.
    expected = [1.5 / 3 + 1.5 / 3 * one, 1 / 3 + 1.5 / 3 * one, 1 / 2 + 1 / 2 * end]
    np.testing.assert_allclose(np.exp(benchmark.log_probabilities(model, flat([[a, b]]))), expected)


def test_a_word_never_seen_and_an_unknown_context_back_off(benchmark):
    model = benchmark.fit(flat([[2, 3], [2, 3]]), WORDS, BEGIN, 3)
    assert np.isfinite(benchmark.log_probabilities(model, flat([[6, 5, 2], []]))).all()


def test_sentences_begin_and_end_as_a_language_model_reads_them(benchmark, corpus):
    marks = WordVocabulary.load(corpus / "tokenizer")
    store = open_store(corpus, "heldout")
    forward, backward = (benchmark.flatten(store, marks, backward=b) for b in (False, True))
    length = len(store[0][0]) + 2
    assert forward[0] == marks.bos_id and forward[length - 1] == marks.eos_id
    assert backward[0] == marks.eos_id and backward[length - 1] == marks.bos_id
    assert forward[1 : length - 1].tolist() == backward[length - 2 : 0 : -1].tolist()
    assert max(forward.max(), backward.max()) < len(marks)
    assert len(forward) == store.counts["tokens"] + 2 * store.counts["sentences"]


@pytest.mark.long
def test_it_prints_a_table_beside_a_run(benchmark, corpus, tmp_path, capsys):
    (tmp_path / "run.json").write_text(json.dumps({"program": "pretrain", "eval_batches": None}))
    figures = {"held_out/perplexity": 9.0, "held_out/forward_perplexity": 8.0, "held_out/backward_perplexity": 10.0}
    (tmp_path / "metrics.jsonl").write_text(json.dumps({"step": 5, **figures}) + "\n" + json.dumps({"step": 6}) + "\n")
    flags.FLAGS.data, flags.FLAGS.run, flags.FLAGS.order = str(corpus), str(tmp_path), 4
    benchmark.main()
    table = capsys.readouterr().out.splitlines()
    counts = open_store(corpus, "heldout").counts
    assert "4-gram" in table[0] and "step 5" in table[0]
    assert f"{counts['tokens'] + counts['sentences']:,} words" in table[1]
    assert 3 < float(table[1].split()[3]) < 40 and float(table[1].split()[4]) == 8.0
    assert float(table[2].split()[4]) == 10.0


@pytest.mark.long
def test_a_decoder_is_compared_per_word(benchmark, corpus, tmp_path, capsys):
    """An untrained GPT has the same loss for each piece of the whole text."""
    pieces = toy_corpus(tmp_path / "pieces", documents=300, vocab_size=8192)
    tokenizer = load_tokenizer(pieces / "tokenizer")
    model = FAMILY.config_for(tokenizer, **TINY, max_positions=32, initializer_range=0.0)
    fields = {**PIECES, "masking": {**MASKING, "kind": "next"}, "objective": "sentences", "length": 32}
    params = init_params(FAMILY, model, jax.random.key(0), ())
    run = write_run(tmp_path / "run", model, params, tokenizer, family="gpt", data=str(pieces), **fields)
    total, count = benchmark.read_decoder(str(run))
    assert count == open_store(pieces, "heldout").counts["tokens"]
    assert total == pytest.approx(-count * np.log(tokenizer.vocab_size), rel=1e-5)
    flags.FLAGS.data, flags.FLAGS.run, flags.FLAGS.order = str(corpus), str(run), 4
    benchmark.main()
    words = open_store(corpus, "heldout").counts["tokens"]
    [line] = capsys.readouterr().out.splitlines()
    assert f"per word of {words:,}" in line and f"{np.exp(-total / words):.2f}" in line


def test_a_run_that_saw_other_words_is_refused(benchmark, tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"program": "pretrain", "eval_batches": 20}))
    with pytest.raises(ValueError, match="eval_batches empty"):
        benchmark.read_run(str(tmp_path))
    with pytest.raises(ValueError, match="must begin with 0"):
        benchmark.fit(np.array([3, 1]), WORDS, BEGIN)
    with pytest.raises(ValueError, match="order=0"):
        benchmark.fit(flat([[2]]), WORDS, BEGIN, 0)


def test_examples_of_discounts_and_of_depths(benchmark):
    discounts = benchmark.discounts(np.array([1] * 10 + [2] * 4 + [3] * 2 + [4]))
    assert [round(discount, 3) for discount in discounts] == [0.556, 1.167, 1.889]
    assert benchmark.since_begin(np.array([0, 5, 6, 1, 0, 1]), begin=0).tolist() == [0, 1, 2, 3, 0, 1]


@pytest.fixture(scope="module")
def word_run(corpus, tmp_path_factory):
    """Write the run of an untrained AWD-LSTM: all words are equally likely."""
    return write_word_run(tmp_path_factory.mktemp("word_run"), corpus, "forward")


def write_word_run(run, corpus, direction):
    family, tokenizer = get_family("awd_lstm"), WordVocabulary.load(corpus / "tokenizer")
    size = {"embedding_size": 4, "cell_size": 6, "num_layers": 1, "direction": direction}
    model = family.config(vocab_size=len(tokenizer), **size)
    fields = {"program": "pretrain", "reading": "streams", "length": 10, "spread": 0, "batch_size": 3, "steps": 3}
    params = init_params(family, model, jax.random.key(0), ("lm",))
    params["encoder"]["embeddings"]["word"] = np.zeros((len(tokenizer), 4), np.float32)
    run_fields = {"family": "awd_lstm", "data": str(corpus), "eval_batches": None, "model": size}
    write_run(run, model, params, tokenizer, **fields, **run_fields)
    (run / "metrics.jsonl").write_text(json.dumps({"step": 3, "held_out/perplexity": 7.5}) + "\n")
    return run


TEXT = " \n = A title = \n \n The old ship came home . It had <unk> sails @-@ torn . \n \n 배가 왔다 . \n"


def test_another_text_is_scored_in_the_words_of_the_corpus(benchmark, corpus, word_run, tmp_path, capsys):
    file, vocabulary = tmp_path / "valid.txt", WordVocabulary.load(corpus / "tokenizer")
    file.write_text(TEXT, encoding="utf-8")
    store = benchmark.prepare_text(str(file), str(tmp_path / "store"), str(corpus))
    words = TEXT.split()
    assert store.counts["tokens"] == len(words) and store.counts["sentences"] == 4  # a title, two sentences, and one
    unknown = sum(word not in vocabulary for word in words) / len(words)
    assert 0.2 < unknown < 1 and benchmark.unknown_share(store, vocabulary) == pytest.approx(unknown)
    flags.FLAGS.data, flags.FLAGS.run, flags.FLAGS.order = str(corpus), str(word_run), 3
    flags.FLAGS.text = str(file)
    try:
        benchmark.main()
    finally:
        flags.FLAGS.text = None
    heading, line = capsys.readouterr().out.splitlines()  # one direction only
    assert f"({100 * unknown:.1f}% <UNK>)" in heading and "step 3" in heading
    name, count, _, figure, run_perplexity, *_ = line.split()
    assert (name, int(count)) == ("forward", len(words) + 4)  # with the ends of sentences
    assert float(run_perplexity) == pytest.approx(len(vocabulary), abs=0.01)
    counts = benchmark.fit(benchmark.flatten(open_store(corpus), vocabulary), len(vocabulary), vocabulary.bos_id, 3)
    expected = np.exp(-benchmark.log_probabilities(counts, benchmark.flatten(store, vocabulary)).mean())
    assert float(figure) == pytest.approx(expected, abs=0.01)


def test_the_words_of_a_run_and_of_the_corpus_must_be_the_same(benchmark, word_run, tmp_path):
    file = tmp_path / "valid.txt"
    file.write_text(TEXT, encoding="utf-8")
    other = toy_corpus(tmp_path / "other", language="en", documents=30, tokenizer="words")
    with pytest.raises(ValueError, match="was made by another tokenizer"):
        benchmark.score_text(str(word_run), benchmark.prepare_text(str(file), str(tmp_path / "store"), str(other)))


def test_a_run_of_one_direction_fills_one_line(benchmark, corpus, word_run, tmp_path, capsys):
    assert benchmark.read_run(str(word_run)) == {"step": 3, "forward": 7.5}
    flags.FLAGS.data, flags.FLAGS.order = str(corpus), 2
    flags.FLAGS.run = str(write_word_run(tmp_path / "run", corpus, "backward"))
    benchmark.main()
    _, line = capsys.readouterr().out.splitlines()
    assert line.startswith("backward") and " 7.50 " in line
