import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.data.rows.masking import DRAWS, Masking, Vocabulary, mask_rows, vocabulary_of
from bert_elmo_jax.text import load_tokenizer, train_byte_bpe, train_sentencepiece, train_wordpiece

PAD, UNK, CLS, SEP, MASK = range(5)
SIZE, CONTINUING = 60, 40  # ids from 40 on continue a word
VOCABULARY = Vocabulary(
    SIZE, CLS, SEP, PAD, MASK, np.arange(SIZE) >= CONTINUING, np.isin(np.arange(SIZE), (PAD, CLS, SEP))
)


def make_rows(count, length, seed=0, shortest=1.0):
    """Return rows [CLS] … [SEP] … [SEP] of random words of one to a few pieces, with padding."""
    rng = np.random.default_rng(seed)
    tokens = np.full((count, length), PAD, np.int32)
    segments = np.zeros((count, length), np.int32)
    for row in range(count):
        size = int(rng.integers(max(5, int(shortest * length)), length + 1))
        tokens[row, :size] = rng.integers(5, SIZE, size)
        tokens[row, 0], tokens[row, size - 1], tokens[row, int(rng.integers(2, size - 2))] = CLS, SEP, SEP
        segments[row, :size] = 1
    return tokens, segments


def make_draws(count, length, seed=0):
    return np.random.default_rng([seed, 1]).random((count, DRAWS, length))


def mask(masking, count=400, length=64, seed=0, shortest=0.3):
    tokens, segments = make_rows(count, length, seed, shortest)
    return tokens, segments, *mask_rows(tokens, segments, masking, VOCABULARY, make_draws(count, length, seed))


def words_of(row):
    """Return the words of a row as lists of positions."""
    words = []
    for position, token in enumerate(row.tolist()):
        if token in (CLS, SEP, PAD):
            continue
        if token >= CONTINUING and words and words[-1][-1] == position - 1:
            words[-1].append(position)
        else:
            words.append([position])
    return words


def expected_number(segments, rate, most):
    return [min(most, max(1, round(rate * int(row.sum())))) for row in segments]


@given(
    st.sampled_from(["token", "word", "span"]),
    st.sampled_from([0.05, 0.15, 0.4, 0.6]),
    st.integers(5, 40),
    st.integers(0, 99),
)
def test_targets_restore_the_masked_tokens(kind, rate, length, seed):
    tokens, segments, masked, positions, targets, weights = mask(Masking(kind, rate), 7, length, seed)
    assert masked.dtype == positions.dtype == targets.dtype == np.int32
    restored = masked.copy()
    for row in range(len(tokens)):
        count = int(weights[row].sum())
        assert weights[row].tolist() == [1.0] * count + [0.0] * (weights.shape[1] - count)
        chosen = positions[row, :count]
        assert (np.diff(chosen) > 0).all()
        assert not positions[row, count:].any()
        assert not targets[row, count:].any()
        assert not np.isin(tokens[row, chosen], (CLS, SEP, PAD)).any()
        restored[row, chosen] = targets[row, :count]
    assert (restored == tokens).all()
    one = mask_rows(tokens[3:4], segments[3:4], Masking(kind, rate), VOCABULARY, make_draws(7, length, seed)[3:4])
    for batch_array, row_array in zip((masked, positions, targets, weights), one):
        assert (batch_array[3] == row_array[0]).all()  # a row does not depend on the others


@pytest.mark.parametrize("kind", ["token", "span"])
@pytest.mark.parametrize("rate", [0.05, 0.15, 0.6])
def test_number_of_predictions(kind, rate):
    for predictions, most in ((None, int(np.ceil(rate * 64))), (3, 3)):
        _, segments, *_, weights = mask(Masking(kind, rate, predictions=predictions))
        assert weights.shape[1] == most
        assert weights.sum(axis=1).tolist() == expected_number(segments, rate, most)


def test_maximum_number_of_predictions():
    assert [Masking(rate=rate).places(20) for rate in (0.05, 0.1, 0.15, 0.6)] == [1, 2, 3, 12]
    assert Masking(rate=0.01).places(8) == 1
    assert Masking(predictions=80).places(512) == 80


def chi_square(counts, expected):
    return ((counts - expected) ** 2 / expected).sum()


@pytest.mark.parametrize("split", [(0.8, 0.1, 0.1), (0.0, 1.0, 0.0), (0.5, 0.0, 0.5), (1.0, 0.0, 0.0)])
def test_split_between_mask_random_and_unchanged(split):
    _, _, masked, positions, targets, weights = mask(Masking(rate=0.5, split=split), 2000)
    row, place = np.nonzero(weights)
    now, before = masked[row, positions[row, place]], targets[row, place]
    total = len(now)
    random_tokens = split[1] * total / SIZE  # per token; the random token may be [MASK] or the original
    shares = {
        "[MASK]": ((now == MASK).sum(), split[0] * total + random_tokens),
        "unchanged": ((now == before).sum(), split[2] * total + random_tokens),
    }
    for name, (count, expected) in shares.items():
        assert abs(count - expected) <= 5 * np.sqrt(max(expected, 1)), name
    random_counts = np.bincount(now[(now != MASK) & (now != before)], minlength=SIZE)
    if split[1]:
        free = np.delete(np.arange(SIZE), MASK)
        # A random token equal to the original counts as unchanged; special tokens are drawn like all others.
        token_shares = np.bincount(before, minlength=SIZE) / total
        expected = random_tokens * (1 - token_shares[free])
        assert chi_square(random_counts[free], expected) < 59 + 5 * np.sqrt(2 * 59)
        assert random_counts[[PAD, CLS, SEP]].min() > 0
    else:
        assert not random_counts.any()


def test_all_positions_are_picked_equally_often():
    tokens = np.full((6000, 24), 7, np.int32)
    tokens[:, 0], tokens[:, 23] = CLS, SEP
    picks = mask_rows(tokens, np.ones_like(tokens), Masking(rate=0.2), VOCABULARY, make_draws(6000, 24))
    counts = np.bincount(picks[1].ravel(), minlength=24)
    assert counts[0] == counts[23] == 0
    assert chi_square(counts[1:23], 6000 * 5 / 22) < 21 + 5 * np.sqrt(2 * 21)


def literal_words(row, number, scores):
    """Pick words in random order and skip words that are too long, as the reference does."""
    picked = []
    for word in sorted(words_of(row), key=lambda word: scores[word[0]]):
        if len(picked) >= number:
            break
        if len(picked) + len(word) > number:
            continue
        picked += word
    return sorted(picked)


@given(st.sampled_from([0.05, 0.15, 0.5]), st.integers(5, 50), st.integers(0, 999))
def test_whole_words_match_the_reference(rate, length, seed):
    tokens, segments, _, positions, _, weights = mask(Masking("word", rate), 9, length, seed)
    numbers = expected_number(segments, rate, int(np.ceil(rate * length - 1e-9)))
    draws = make_draws(9, length, seed)
    for row in range(9):
        expected = literal_words(tokens[row], numbers[row], draws[row, 0])
        assert positions[row, weights[row] > 0].tolist() == expected


def literal_spans(row, number, draws):
    """Pick spans of words from random positions in a plain loop; use the draws in the same order."""
    words = words_of(row)
    runs = np.cumsum(np.isin(row, (CLS, SEP, PAD)))
    of = {position: place for place, word in enumerate(words) for position in word}
    lengths = 0.8 ** np.arange(10)
    lengths = np.cumsum(lengths / lengths.sum())
    picked: dict[int, float] = {}
    for turn, anchor in enumerate(sorted(of, key=lambda position: draws[0][position])):
        if len(picked) >= number:
            break
        if anchor not in picked:
            size = 1 + int((draws[1][turn] >= lengths[:-1]).sum())
            first = of[anchor]
            for word in words[first : first + size]:
                for position in word:
                    if runs[position] == runs[anchor] and len(picked) < number and position not in picked:
                        picked[position] = draws[2][turn]
    return picked


@given(st.sampled_from([0.05, 0.15, 0.5]), st.integers(5, 50), st.integers(0, 999))
def test_spans_match_a_plain_loop(rate, length, seed):
    tokens, segments, masked, positions, _, weights = mask(Masking("span", rate), 9, length, seed)
    numbers = expected_number(segments, rate, int(np.ceil(rate * length - 1e-9)))
    draws = make_draws(9, length, seed)
    for row in range(9):
        free = int((~np.isin(tokens[row], (CLS, SEP, PAD))).sum())
        expected = literal_spans(tokens[row], min(numbers[row], free), draws[row])
        assert positions[row, weights[row] > 0].tolist() == sorted(expected)
        for position, fate in expected.items():  # all tokens of a span are replaced in the same way
            if fate < 0.8:
                assert masked[row, position] == MASK
            elif fate >= 0.9:
                assert masked[row, position] == tokens[row, position]


def test_span_lengths():
    tokens = np.full((3000, 200), 7, np.int32)
    draws = make_draws(3000, 200)
    *_, positions, _, weights = mask_rows(tokens, np.ones_like(tokens), Masking("span", 0.05), VOCABULARY, draws)
    picked = np.zeros((3000, 202), int)
    row, place = np.nonzero(weights)
    picked[row, positions[row, place] + 1] = 1
    spans = (np.diff(picked, axis=1) == 1).sum()
    # The mean of a geometric (0.2) cut at 10 is 3.8; the last span of a row may be cut, and few spans touch.
    assert 2.6 < picked.sum() / spans < 3.8


def test_rows_without_tokens_to_pick():
    tokens = np.array([[CLS, SEP, PAD, PAD], [PAD] * 4, [CLS, 9, SEP, PAD]], np.int32)
    segments = np.array([[1, 1, 0, 0], [0] * 4, [1, 1, 1, 0]], np.int32)
    for kind in ("token", "word", "span"):
        masked, _, _, weights = mask_rows(tokens, segments, Masking(kind, 0.5), VOCABULARY, make_draws(3, 4))
        assert (masked[:2] == tokens[:2]).all()
        assert weights.sum(axis=1).tolist() == [0, 0, 1]
    tokens = np.array([[CLS, 9, 50, 50, 50, SEP]], np.int32)  # its only word is too long
    masked, *_, weights = mask_rows(tokens, np.ones_like(tokens), Masking("word", 0.3), VOCABULARY, make_draws(1, 6))
    assert not weights.any()
    assert (masked == tokens).all()


def test_next_tokens_stay_within_their_example():
    tokens = np.array([[CLS, 7, SEP, CLS, 8, 9, SEP, PAD]], np.int32)
    segments = np.array([[1, 1, 1, 2, 2, 2, 2, 0]], np.int32)
    masked, positions, targets, weights = mask_rows(tokens, segments, Masking("next"), VOCABULARY, make_draws(1, 8))
    assert (masked == tokens).all()
    assert positions.tolist() == [[0, 1, 2, 3, 4, 5, 6]]
    assert weights.tolist() == [[1, 1, 0, 1, 1, 1, 0]]
    assert targets.tolist() == [[7, SEP, 0, 8, 9, SEP, 0]]


LINES = [
    "배를 타고 강을 건너서 은행에 갔다",
    "맛있는 배를 먹었다",
    "playing boats on the muddy river banks",
    "눈이 왔다",
]


def test_continuation_pieces_match_the_tokenizer():
    """The words of `continues` match the word numbers of the tokenizer."""
    for tokenizer in (
        train_wordpiece(LINES * 9, 90),
        train_sentencepiece(LINES * 9, 90, model="bpe"),
        train_byte_bpe(LINES * 9, 330),
    ):
        vocabulary = vocabulary_of(tokenizer)
        for line in [*LINES, "은행배를 riverboat 漢 playing"]:
            encoding = tokenizer.encode(line, specials=False)
            same = np.diff(encoding.word_ids) == 0
            assert (vocabulary.continues[encoding.ids][1:] == same).all(), (encoding.tokens, encoding.word_ids)
        specials = [tokenizer.pad_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id]
        assert not vocabulary.continues[specials].any()
        assert vocabulary.fixed.sum() == 3


def test_invalid_settings_raise(as_users_run):
    for settings, message in (
        ({"split": (0.8, 0.1, 0.2)}, "three shares that add up to 1"),
        ({"split": (1.2, -0.1, -0.1)}, "three shares"),
        ({"kind": "words"}, "masking 'words' is not known; it is token, word, span or next"),
    ):
        with pytest.raises(ValueError, match=message):
            Masking(**settings)


def test_words_of_a_released_byte_level_vocabulary_are_masked_whole(goldens):
    tokenizer = load_tokenizer(goldens / "tokenizers" / "roberta_tiny")
    encoding = tokenizer.encode("배를 타고 강을 건넜다. the river had risen")
    row, words = encoding.ids[None], np.array(encoding.word_ids)
    rows, segments = np.repeat(row, 40, axis=0), np.ones((40, row.shape[1]), np.int32)
    vocabulary, draws = vocabulary_of(tokenizer), make_draws(40, row.shape[1])
    masked, positions, _, weights = mask_rows(rows, segments, Masking("word", rate=0.3), vocabulary, draws)
    for number in range(40):
        picked = set(positions[number][weights[number] > 0].tolist())
        assert not picked & {0, row.shape[1] - 1}, "the special pieces are never picked"
        for word in {int(words[place]) for place in picked}:
            assert set(np.flatnonzero(words == word).tolist()) <= picked
    assert (masked == tokenizer.mask_id).any()
    assert ((masked != rows) & (masked != tokenizer.mask_id)).any(), "some become random pieces"
