import itertools
from collections.abc import Generator

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.data.pipeline.windows import Text
from bert_elmo_jax.data.rows import pairs as module
from bert_elmo_jax.data.rows.pairs import plain_text, sentence_pairs, truncate, with_separators

Draws = tuple[float, float, float, float]  # draws for: end of A, random or next, other document, its sentence


def document_pairs(
    documents: list[list[list[int]]], index: int, target: int
) -> Generator[tuple[list[int], list[int], int] | None, Draws, None]:
    """Yield (A, B, label) for one document by the reference's rules, before truncation.

    For each chunk, yield None, receive four random numbers and yield the example.
    """
    document = documents[index]
    chunk: list[list[int]] = []
    size = 0
    i = 0
    while i < len(document):
        chunk.append(document[i])
        size += len(document[i])
        if i == len(document) - 1 or size >= target:
            split, coin, which, where = yield None
            a_end = 1
            if len(chunk) >= 2:
                a_end = 1 + int(split * (len(chunk) - 1))  # uniform from 1 to len(chunk) - 1
            tokens_a = [token for sentence in chunk[:a_end] for token in sentence]
            tokens_b: list[int] = []
            if len(chunk) == 1 or coin < 0.5:
                label = 1
                target_b = target - len(tokens_a)
                candidates = [number for number in range(len(documents)) if number != index] or [index]
                other = documents[candidates[int(which * len(candidates))]]
                for j in range(int(where * len(other)), len(other)):
                    tokens_b.extend(other[j])
                    if len(tokens_b) >= target_b:
                        break
                i -= len(chunk) - a_end  # the displaced sentences are used again
            else:
                label = 0
                tokens_b = [token for sentence in chunk[a_end:] for token in sentence]
            yield tokens_a, tokens_b, label
            chunk, size = [], 0
        i += 1


def losses(a: int, b: int, capacity: int) -> tuple[int, int]:
    """Return the numbers of tokens that truncation removes from A and B."""
    lost_a = lost_b = 0
    while a - lost_a + b - lost_b > capacity:
        if a - lost_a > b - lost_b:
            lost_a += 1
        else:
            lost_b += 1
    return lost_a, lost_b


documents_of = st.lists(st.lists(st.integers(1, 14), min_size=1, max_size=12), min_size=1, max_size=8)


def text_of(sizes) -> Text:
    """Return a text of sentences of these lengths; each token is its own position."""
    cuts = np.cumsum([0, *itertools.chain(*sizes)])
    return Text(np.arange(cuts[-1]), cuts, np.cumsum([0, *map(len, sizes)]))


def lists_of(text: Text) -> list[list[list[int]]]:
    return [
        [text.tokens[text.sentences[s] : text.sentences[s + 1]].tolist() for s in range(first, end)]
        for first, end in itertools.pairwise(text.documents.tolist())
    ]


class Recorder(np.random.Generator):
    """A generator that records its draws."""

    def __init__(self, seed):
        super().__init__(np.random.PCG64(seed))
        self.given = []

    def random(self, shape):
        self.given.append(super().random(shape))
        return self.given[-1]

    def binomial(self, n, p):
        self.given.append((n, super().binomial(n, p)))
        return self.given[-1][1]


@given(documents_of, st.integers(5, 40), st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 2**32))
def test_pairs_match_the_reference_draw_by_draw(sizes, length, short_share, seed):
    text = text_of(sizes)
    documents, capacity = lists_of(text), length - 3
    recorder = Recorder(seed)
    pairs = sentence_pairs(text, length, recorder, short_share=short_share)
    numbers = iter(recorder.given)
    short, size = next(numbers)
    targets = [2 + int(z * (capacity - 1)) if s < short_share else capacity for s, z in zip(short, size)]
    live = [document_pairs(documents, index, target) for index, target in enumerate(targets)]
    live = [literal for literal in live if next(literal, "end") is None]
    expected = []
    while live:
        split, coin = next(numbers)
        which = next(numbers) if len(documents) > 1 else np.zeros(len(live))
        where = next(numbers)
        expected += [literal.send(draws) for literal, *draws in zip(live, split, coin, which, where)]
        live = [literal for literal in live if next(literal, "end") is None]
    lost_a, front_a = next(numbers)
    lost_b, front_b = next(numbers)
    assert len(expected) == len(pairs.a)
    for row, (a, b, label) in enumerate(expected):
        assert losses(len(a), len(b), capacity) == (lost_a[row], lost_b[row])
        a = a[front_a[row] : len(a) - (lost_a[row] - front_a[row])]
        b = b[front_b[row] : len(b) - (lost_b[row] - front_b[row])]
        assert text.tokens[pairs.a[row] :][: pairs.a_length[row]].tolist() == a
        assert text.tokens[pairs.b[row] :][: pairs.b_length[row]].tolist() == b
        assert pairs.label[row] == label
        assert pairs.weight[row] == 1
    assert (pairs.lengths <= length).all()
    assert (pairs.lengths >= 5).all()


def document_of(text, places):
    return np.searchsorted(text.sentences[text.documents], places, side="right") - 1


def times_read(text, pairs):
    """Return how often the A and true next stretches read each word."""
    read = np.zeros(len(text.tokens), int)
    for a, a_length, b, b_length, label, _ in zip(*pairs):
        read[a : a + a_length] += 1
        read[b : b + b_length] += label == 0
    return read


def test_sentences_displaced_by_a_random_next_are_used_again(monkeypatch):
    """Without truncation, each word of a document is read once, also if a very long document is split."""
    text = text_of([[3, 1, 4, 1, 5, 9, 2, 6]] * 6)
    for seed in range(20):
        pairs = sentence_pairs(text, 1000, np.random.default_rng(seed), short_share=0.0)
        assert (times_read(text, pairs) == 1).all()
    monkeypatch.setattr(module, "LONG", 10)
    text = text_of([[2] * 95, [3] * 4])
    pairs = sentence_pairs(text, 1000, np.random.default_rng(0), short_share=0.0)
    assert (times_read(text, pairs) == 1).all()
    random_next = pairs.label == 1
    assert (document_of(text, pairs.a[random_next]) != document_of(text, pairs.b[random_next])).all()


def test_short_targets_per_document_or_per_chunk():
    text = text_of([[1] * 3000] * 40)  # sentences of one token: a chunk is as long as its target
    for per in ("document", "chunk"):
        pairs = sentence_pairs(text, 103, np.random.default_rng(0), short_share=0.3, short_per=per)
        total = (pairs.a_length + pairs.b_length)[pairs.label == 0]  # a true next ends when the target is reached
        document = document_of(text, pairs.a[pairs.label == 0])
        full = [np.mean(total[document == number] == 100) for number in range(40)]
        if per == "document":
            assert set(np.round(full)) == {0.0, 1.0}
            assert all(share in (0, 1) or share > 0.9 for share in full)  # except at the end of the document
        else:
            assert abs(np.mean(full) - 0.7) < 0.05
            assert sum(0 < share < 1 for share in full) > 30
            short = total[total < 100]
            assert abs(short.mean() - 50.5) < 5 * 29 / np.sqrt(len(short)) + 1.5
            assert short.min() >= 2


def test_sentence_order():
    text = text_of([[4] * 50] * 20 + [[9]] * 10)
    pairs = sentence_pairs(text, 31, np.random.default_rng(0), objective="sop", short_share=0.0)
    single_rows = pairs.b_length == 0
    assert single_rows.sum() >= 10
    assert (pairs.weight == ~single_rows).all()
    assert not pairs.label[single_rows].any()
    a, b = pairs.a[~single_rows], pairs.b[~single_rows]
    assert (document_of(text, a) == document_of(text, b)).all()
    assert ((a < b) == (pairs.label[~single_rows] == 0)).all()
    assert abs(pairs.label[~single_rows].mean() - 0.5) < 5 * 0.5 / np.sqrt(len(a))


@given(st.integers(1, 60), st.integers(1, 60), st.integers(2, 50))
def test_truncation_takes_from_the_longer_side(a, b, capacity):
    pair = [np.array([n]) for n in (0, a, 100, b)]
    a_place, a_left, b_place, b_left = (int(n[0]) for n in truncate(*pair, capacity, np.random.default_rng(0)))
    lost_a, lost_b = losses(a, b, capacity)
    assert (a - a_left, b - b_left) == (lost_a, lost_b)
    assert 0 <= a_place <= lost_a and 100 <= b_place <= 100 + lost_b
    assert min(a_left, b_left) >= 1


def test_truncation_chooses_the_end_randomly_for_each_token():
    many = [np.full(4000, n) for n in (0, 30, 0, 10)]
    front = truncate(*many, 20, np.random.default_rng(0))[0]
    assert abs(front.mean() - 10) < 5 * np.sqrt(5 / 4000)
    assert abs(front.var() - 5) < 0.6


@given(documents_of, st.integers(3, 30), st.booleans())
def test_plain_text_covers_the_text_in_order(sizes, length, whole_documents):
    text = text_of(sizes)
    rows = plain_text(text, length, whole_documents=whole_documents)
    assert (rows.lengths <= length).all()
    assert (rows.a == np.concatenate([[0], np.cumsum(rows.a_length)[:-1]])).all()  # one after the other
    assert rows.a_length.sum() == len(text.tokens)
    assert not rows.weight.any()
    capacity, ends = length - 2, text.sentences[text.documents]
    for a, size in zip(rows.a.tolist(), rows.a_length.tolist()):
        stop = a + size
        if whole_documents:
            assert document_of(text, a) == document_of(text, stop - 1)
        if stop in ends and (whole_documents or stop == len(text.tokens)):
            continue
        following = text.sentences[text.sentences > stop][0] - a if stop < len(text.tokens) else np.inf
        assert following > capacity  # the next sentence would not have fitted
        assert stop in text.sentences or size == capacity


def rows_of_text(text, length):
    """Return the rows of a text with separators."""
    rows = plain_text(text, length, whole_documents=False, closing=1)
    return [text.tokens[a : a + n].tolist() for a, n in zip(rows.a, rows.a_length)]


def test_separators_are_between_documents_but_not_at_row_ends():
    text = with_separators(text_of([[2, 2], [3], [1, 1]]), 99)
    assert text.tokens.tolist() == [0, 1, 2, 3, 99, 4, 5, 6, 99, 7, 8, 99]
    assert text.sentences.tolist() == [0, 2, 5, 9, 10, 12]
    assert rows_of_text(text, 6) == [[0, 1, 2, 3], [4, 5, 6], [7, 8]]
    assert rows_of_text(text, 10) == [[0, 1, 2, 3, 99, 4, 5, 6], [7, 8]]


@given(documents_of, st.integers(3, 30))
def test_separators_keep_all_tokens_and_never_start_or_end_a_row(sizes, length):
    plain = text_of(sizes)
    rows = rows_of_text(with_separators(plain, -1), length)
    assert [token for row in rows for token in row if token != -1] == plain.tokens.tolist()
    assert all(row[0] != -1 and row[-1] != -1 for row in rows)
    assert max(map(len, rows)) <= length - 2
