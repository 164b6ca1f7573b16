"""The baselines, compared with counts by hand and by dictionaries, and the table of an untrained run."""

import itertools
from collections import Counter, defaultdict

import jax
import numpy as np
import pytest
from absl import flags
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.data.corpora.store import open_store
from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus
from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.family import FAMILY
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.text import load_tokenizer

from .untrained_runs import PIECES, TINY, write_run


@pytest.fixture(scope="module")
def benchmark(program):
    return program("benchmarks.masked_baselines")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return toy_corpus(
        tmp_path_factory.mktemp("corpora") / "c", language="en,ko", documents=60, vocab_size=2000, heldout=0.2
    )


def counter(pairs):
    counts = defaultdict(Counter)
    for context, token in pairs:
        counts[context][token] += 1
    return counts


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=40))
def test_most_frequent_is_what_a_dictionary_counts(benchmark, pairs):
    contexts, tokens = np.array(pairs).T
    guesses = benchmark.most_frequent(contexts, tokens, 6)
    plain = counter(pairs)
    met, best, shares = guesses.look_up(np.arange(-1, 7))
    for context in range(-1, 7):
        counts = plain.get(context)
        assert met[context + 1] == (counts is not None)
        if counts:
            most = max(counts.values())
            assert best[context + 1] == min(token for token in counts if counts[token] == most)
            assert shares[context + 1] == most / sum(counts.values())


def test_neighbours_are_counted_within_documents(benchmark, corpus):
    counted = benchmark.count([open_store(corpus)])
    documents = [np.concatenate(document).tolist() for document in open_store(corpus)]
    assert counted.unigram == Counter(token for text in documents for token in text).most_common(1)[0][0]
    after = counter(pair for text in documents for pair in itertools.pairwise(text))
    assert counted.after.contexts.tolist() == sorted(after)
    assert counted.before.contexts.tolist() == sorted({b for text in documents for b in text[1:]})
    between = counter(((a, c), b) for text in documents for a, b, c in zip(text, text[1:], text[2:]))
    assert counted.between.contexts.tolist() == sorted(a * counted.size + c for a, c in between)
    first = {(a, c): int(t) for (a, c), t in zip(sorted(between), counted.between.tokens)}
    assert all(between[context][token] == max(between[context].values()) for context, token in first.items())


def test_it_backs_off_to_the_surer_side_and_then_to_the_most_frequent(benchmark):
    """5 6 7 three times, 5 8 9 and 4 8 9 once: 9 is surer of 8 than 5 is of 6."""

    def one(contexts, tokens, shares):
        return benchmark.Guesses(np.array(contexts), np.array(tokens), np.array(shares))

    after, before = (
        one([4, 5, 6, 8], [8, 6, 7, 9], [1.0, 0.75, 1.0, 1.0]),
        one([6, 7, 8, 9], [5, 6, 5, 8], [1, 1, 0.5, 1]),
    )
    counted = benchmark.Counted(5, after, before, one([49, 57, 59], [8, 6, 8], [1.0, 1.0, 1.0]), 10)
    cases = {(5, 7): 6, (5, 1): 6, (1, 9): 8, (5, 6): 5, (1, 1): 5, (5, 8): 6}
    left, right = np.array([*cases]).T
    assert benchmark.two_neighbours(counted, left, right).tolist() == [*cases.values()]


def test_a_place_that_shows_a_token_is_guessed_to_be_true(benchmark):
    nobody = benchmark.Guesses(np.array([0]), np.array([0]), np.array([0.0]))
    counted = benchmark.Counted(7, nobody, nobody, nobody, 10)
    batch = {
        "tokens": np.array([[2, 4, 5, 6, 4, 3]]),
        "mlm_positions": np.array([[1, 2, 3, 4, 0]]),
        "mlm_targets": np.array([[7, 5, 9, 8, 0]]),
        "mlm_weights": np.array([[1.0, 1.0, 1.0, 1.0, 0.0]]),
    }
    right, hidden = benchmark.right_guesses(counted, [batch], mask=4)
    assert right["unigram"].tolist() == right["two neighbours"].tolist() == [True, True, False, False]
    assert hidden.tolist() == [True, False, False, True]
    assert benchmark.only_hidden(batch, 4)["mlm_weights"].tolist() == [[1.0, 0.0, 0.0, 1.0, 0.0]]


@pytest.mark.long
def test_it_prints_a_table(benchmark, corpus, tmp_path, capsys):
    tokenizer = load_tokenizer(corpus / "tokenizer")
    model = BertConfig(vocab_size=tokenizer.vocab_size, **TINY, max_positions=64)
    params = init_params(FAMILY, model, jax.random.key(0), ("mlm", "nsp"))
    fields = {**PIECES, "family": "bert", "data": str(corpus), "length": 64, "objective": "nsp", "short_share": 0.1}
    write_run(tmp_path, model, params, tokenizer, **fields)
    flags.FLAGS.run = str(tmp_path)
    benchmark.main()
    head, *lines = capsys.readouterr().out.splitlines()
    every, hidden = (int(number.replace(",", "")) for number in (head.split()[2], head.split()[4]))
    assert 0.7 * every < hidden < 0.9 * every
    figures = {line.rsplit(maxsplit=2)[0].strip(): [float(n) for n in line.split()[-2:]] for line in lines}
    unigram, neighbours, bert = figures.values()
    assert list(figures)[:2] == ["unigram", "two neighbours"] and "step 3" in list(figures)[2]
    # A full stop is a tenth of the toy world; half of the places that show a token show the true one.
    assert 0.05 < unigram[1] < 0.2 < neighbours[1] < 0.7 and unigram[0] > unigram[1] and bert[0] < unigram[0]


def test_runs_without_masked_words_are_refused(benchmark, tmp_path):
    flags.FLAGS.run = str(tmp_path)
    with pytest.raises(ValueError, match=r"is not a run directory"):
        benchmark.main()
    (tmp_path / "run.json").write_text('{"program": "pretrain", "family": "elmo"}')
    with pytest.raises(ValueError, match="no masked words"):
        benchmark.main()
