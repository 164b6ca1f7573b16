from collections.abc import Sequence

import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.encoders.arguments import (
    check_fit,
    check_layers,
    check_list,
    check_range,
    check_stream,
    check_whole,
    to_ids,
)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("강 눈", r"a single string was given: write \['강 눈'\]"),
        (b"a", "a single string was given"),
        (("a", "b"), r"a tuple was given: write list\(texts\), or for a pair \[\(first, second\)\]"),
        ({"a": 1}, r"\{'a': 1\} was given: write \[text"),
        ({"a"}, "was given: write"),
        (None, "a list of texts is expected, None was given"),
        (3, "a list of texts is expected, 3 was given"),
    ],
)
def test_other_values_than_a_list_of_texts_are_refused(texts, message):
    for check in (check_list, check_stream):
        with pytest.raises(TypeError, match=message):
            check(texts)


def test_a_generator_is_for_batches_alone():
    check_stream(text for text in ["강"])
    check_stream([])
    check_list(np.array(["강", "눈"]))
    with pytest.raises(
        TypeError, match=r"a generator was given: write list\(texts\), or use encode_batches of an encoder"
    ):
        check_list(text for text in ["강"])
    check_list([])


@pytest.mark.parametrize("value", [0, -1, 9, 2.0, "3", None, True, np.bool_(True), [3]])
def test_only_whole_numbers_within_bounds_are_accepted(value):
    with pytest.raises((ValueError, TypeError), match=r"size=.*: use a whole number, 1 to 8, the most"):
        check_whole("size", value, 1, 8, "the most")
    assert check_whole("size", np.int64(8), 1, 8) == 8
    with pytest.raises(ValueError, match=r"batch_size=0: use a whole number, at least 1$"):
        check_whole("batch_size", 0, 1)


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([], r"layers=\[\] asks for no layer"),
        (-1, r"layers=-1 is not a list: write layers=\[-1\]"),
        ("last", "'all' or a list of numbers"),
        ([5], "there is no layer 5"),
        ([-6], "there is no layer -6"),
        ([1.0], "layers holds 1.0; expected whole numbers"),
        ([True], "layers holds True"),
        (["0"], "layers holds '0'"),
        (["all", 1], "layers holds 'all'; .* or 'all' alone"),
    ],
)
def test_wrong_layers_are_refused(layers, message):
    with pytest.raises((ValueError, TypeError), match=message):
        check_layers(layers, 4)


def test_layers_in_other_containers():
    for layers in ((0, -1), range(0, 5, 4), np.array([0, 4])):
        assert check_layers(layers, 4) == (0, 4)
    assert (check_layers("all", 2), check_layers(None, 2)) == ((0, 1, 2), None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("cut", None, None), "overflow='cut' is not known; use 'raise', 'truncate' or 'windows'"),
        (("raise", 0, None), "stride=0: use a whole number, 1 to 46"),
        (("truncate", -1, None), "stride=-1"),
        (("windows", 47, None), "stride=47"),
        (("windows", 9, 10), "stride=9: use a whole number, 1 to 8"),
        (("windows", "7", None), "stride='7'"),
        (("raise", None, 2), "max_length=2: use a whole number, 3 to 48, the positions"),
        (("raise", None, 49), "max_length=49"),
        (("raise", None, "9"), "max_length='9'"),
        (("raise", None, 9.0), "max_length=9.0"),
    ],
)
def test_how_texts_cannot_be_made_to_fit(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        check_fit(*options, limit=48)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (None, "tokens holds None; expected whole numbers"),
        ([[2, 3], [2]], "tokens has rows of different lengths: pad them"),
        ([[2.0, 3.0]], "tokens holds float64"),
        ([2, 3], r"tokens has shape \(2,\); expected \[batch, pieces\]"),
        ([[2**70]], r"tokens holds \[\[1180591620717411303424\]\]"),
        ([["a"]], "tokens holds <U1"),
    ],
)
def test_wrong_ids_are_refused(values, message):
    with pytest.raises((ValueError, TypeError), match=message):
        to_ids("tokens", values)


def test_large_ids_stay_as_they_are():
    assert to_ids("tokens", [[2**32 + 7]]).tolist() == [[2**32 + 7]]
    assert to_ids("mask", np.array([[True, False]])).tolist() == [[1, 0]]


def test_ids_with_other_axes():
    axes = ("batch", "words", "characters")
    assert to_ids("characters", np.zeros((2, 3, 4), np.int8), axes=axes).dtype == np.int64
    with pytest.raises(ValueError, match=r"characters has shape \(2, 3\); expected \[batch, words, characters\], and"):
        to_ids("characters", np.zeros((2, 3), int), axes=axes)


def test_ids_outside_a_range_are_named_by_their_place():
    ids = np.zeros((2, 3, 4), np.int64)
    check_range("id", ids, 0, 0, "one is known")
    for place, value in [((1, 2, 3), 1), ((0, 1, 2), -1)]:
        ids[place] = value
    with pytest.raises(ValueError, match="id -1 at row 0, column 1, character 2 is outside 0 to 0; one is known"):
        check_range("id", ids, 0, 0, "one is known")
    with pytest.raises(ValueError, match="id 1 at row 1, column 3 is outside"):
        check_range("id", ids[:, 2], 0, 0, "")


class Column(Sequence):
    """Values that are found by label, and iterated in order, as in a sorted column of pandas."""

    def __init__(self, values):
        self.values = list(values)

    def __len__(self):
        return len(self.values)

    def __iter__(self):
        return iter(self.values)

    def __getitem__(self, label):
        return self.values[label] if isinstance(label, slice) else self.values[-1 - label]


def test_texts_of_a_column_come_in_its_order(goldens):
    texts = ["the river", "a bank", "old ship"]
    encoder, reranker, static = (load(goldens / name) for name in ("bert_tiny", "reranker", "static_tiny/gensim.bin"))
    np.testing.assert_array_equal(encoder.sentences(Column(texts)), encoder.sentences(texts))
    assert reranker.rank("the river", Column(texts)) == reranker.rank("the river", texts)
    words = ["river", "unbekannt"]
    np.testing.assert_array_equal(static.vectors_of(Column(words)), static.vectors_of(words))
