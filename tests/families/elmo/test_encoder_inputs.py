"""Inputs of the ELMo encoder, such as raw ids and word ids, and refused inputs."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.encoders.unfamiliar_texts import UnfamiliarTexts
from bert_elmo_jax.families.elmo.encoder import ElmoEncoder
from bert_elmo_jax.families.elmo.model import Elmo
from bert_elmo_jax.text.characters import boundary_characters, character_table

from .elmo_parts import CONFIG, VOCABULARY, WORD_CONFIG, by_hand, close, module

# Raw ids.


def test_raw_ids_are_the_sentences(elmo, sentences):
    few = sentences[:6]
    ids = np.zeros((6, 31, 50), np.int64)
    for n, words in enumerate(few):
        ids[n, : len(words)] = character_table(words, 50)
    output, expected = elmo.forward(ids), elmo.encode(few, state=elmo.zero_state(6))
    size = expected.layers.shape[2]
    assert output.layers.shape == (3, 6, 31, 16)
    close(output.layers[:, :, :size], expected.layers)
    assert not output.layers[:, :, size:].any()
    assert np.array_equal(output.mask[:, :size], expected.mask)
    close(output.state.cell, expected.state.cell)
    assert output.words is None
    close(elmo.forward(jnp.asarray(ids), state=output.state).layers[:, :, :size],
          elmo.encode(few, state=expected.state).layers)  # fmt: skip
    marked_output = elmo.forward(ids, boundaries="keep")
    assert marked_output.layers.shape == (3, 6, 33, 16)
    assert (marked_output.mask.sum(1) == output.mask.sum(1) + 2).all()
    for n, words in enumerate(few):
        close(marked_output.layers[:, n, 1 : len(words) + 1], output.layers[:, n, : len(words)])
    # The same rows with the marks put in by hand.
    begin, end = boundary_characters(50)
    marked_ids = np.zeros((6, 33, 50), np.int32)
    marked_ids[:, 0], marked_ids[:, 1:32] = begin, ids
    marked_ids[np.arange(6), [len(words) + 1 for words in few]] = end
    close(elmo.forward(marked_ids, boundaries="given").layers, marked_output.layers)


def test_rows_without_a_word_keep_their_state(elmo):
    ids = np.zeros((2, 3, 50), np.int32)
    ids[0, 0] = character_table(["배"])[0]
    before = elmo.encode(["강가의 은행", "river"], state=elmo.zero_state(2)).state
    for boundaries in ("strip", "keep"):
        output = elmo.forward(ids, state=before, boundaries=boundaries)
        assert output.mask.sum(1).tolist() == [1 if boundaries == "strip" else 3, 0]
        assert np.array_equal(output.state.cell[:, :, 1], before.cell[:, :, 1])
        assert not np.array_equal(output.state.cell[:, :, 0], before.cell[:, :, 0])
    nothing = elmo.forward(ids[1:])
    assert nothing.layers.shape == (3, 1, 3, 16)
    assert not nothing.layers.any()


def test_words_padded_by_zeros_are_other_words(elmo):
    """As in the reference, 0 has a vector of zeros and 261 a learned one, with and without cut columns."""
    ids = character_table(["ab", "ab"], 50)[None].copy()
    ids[0, 1, 4:] = 0
    vectors = elmo.forward(ids).layers[0, 0]
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-3
    half = ids.copy()
    half[0, 1, 30:] = 261
    places, lengths = np.array([[0, 1]]), np.array([2])
    exact = module(CONFIG, elmo.params, places, lengths, half.astype(np.int32), elmo.zero_state(1))
    close(elmo.forward(half, boundaries="given").layers, np.asarray(exact.layers))


def one(place, value):
    ids = character_table(["ab", "배", "c"], 50)[None].astype(np.int64)
    ids[place] = value
    return ids


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"characters": one((0, 1, 2), 262)}, "character id 262 at row 0, column 1, character 2 is outside 0 to 261"),
        ({"characters": one((0, 2, 49), -1)}, "character id -1 at row 0, column 2, character 49"),
        ({"characters": one((0, 0, 0), 2**40)}, "character id 1099511627776 at row 0, column 0, character 0"),
        ({"characters": one((0, 1), 0)}, "a padding word .* at row 0, column 1, before other words of its row"),
        ({"characters": one((0, 1), 5)[..., :40]}, "characters has 40 per word, this model reads 50"),
        ({"characters": one((0, 1), 5)[0]}, r"characters has shape \(3, 50\); expected \[batch, words, characters\]"),
        ({"characters": one((0, 1), 5)[:, :0]}, r"characters has shape \(1, 0, 50\)"),
        ({"characters": one((0, 1), 5) * 1.0}, "characters holds float64; expected whole numbers"),
        ({"characters": [[[1]], [[1], [2]]]}, "characters has rows of different lengths"),
        ({"characters": "강"}, "characters holds <U1"),
        ({}, r"weights reads characters: give forward\(characters=…\) and no words"),
        ({"words": np.array([[3]])}, r"weights reads characters: give forward\(characters=…\) and no words"),
        ({"characters": one((0, 1), 5), "words": np.array([[3]])}, "and no words"),
        ({"characters": one((0, 1), 5), "lengths": np.array([1])}, "lengths are for word ids"),
        ({"characters": one((0, 1), 5), "boundaries": "both"}, "boundaries='both' is not known; use 'strip', 'keep'"),
    ],
)
def test_wrong_ids(elmo, inputs, message):
    with pytest.raises((ValueError, TypeError), match=message):
        elmo.forward(**inputs)


# Word input.


def test_words_by_their_number(by_words):
    ids = [1, 3, 2, 4, 0]
    compute = jax.jit(Elmo(WORD_CONFIG).apply)
    expected = jax.device_get(compute({"params": by_words.params["encoder"]}, np.array([ids]), np.array([5])))
    encoding = by_words.encode(["강 미지의 river", ["bank"]])
    close(encoding.layers[:, :1], np.asarray(expected.layers)[:, :, 1:-1])
    for row, boundaries, part in [
        ([3, 2, 4], None, np.s_[1:-1]),
        ([3, 2, 4], "keep", np.s_[:]),
        (ids, "given", np.s_[:]),
    ]:
        raw = by_words.forward(words=np.array([row]), boundaries=boundaries)
        close(raw.layers, np.asarray(expected.layers)[:, :, part])
    # Marks written out are no marks.
    close(by_words.encode([["<S>", "</S>"]]).layers[:, 0, 0, :], by_words.encode([["x", "y"]]).layers[:, 0, 0, :])
    padded = by_words.forward(words=np.array([[3, 2, 4, 99], [6, -1, -1, -1]]), lengths=np.array([3, 1]))
    close(padded.layers[:, :, :3], encoding.layers)
    assert padded.mask.tolist() == [[1, 1, 1, 0], [1, 0, 0, 0]]


@pytest.mark.usefixtures("as_users_run")
def test_wrong_word_ids_are_refused(by_words):
    ids = np.array([[3, 4]])
    for inputs, message in [
        ({"words": np.array([[3, 7]])}, "word id 7 at row 0, column 1 is outside 0 to 6; the model has"),
        ({"words": np.array([[-1, 3]])}, "word id -1 at row 0, column 0"),
        ({"words": np.array([3])}, r"words has shape \(1,\); expected \[batch, words\]"),
        ({"words": [[3], [3, 4]]}, "words has rows of different lengths"),
        ({"words": ids, "lengths": [3]}, "lengths holds 3 to 3; each is 0 to 2, the words of a row"),
        ({"words": ids, "lengths": [-1]}, "lengths holds -1 to -1"),
        ({"words": ids, "lengths": [1, 1]}, r"lengths is \[1, 1\]; expected 1 whole numbers, one per row"),
        ({"words": ids, "lengths": [1.5]}, "lengths is"),
        ({"words": ids, "lengths": 2}, "lengths is 2"),
        ({"characters": np.ones((1, 1, 50), int)}, r"weights reads words: give forward\(words=…\) and no characters"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            by_words.forward(**inputs)
    with pytest.raises(ValueError, match=r"weights reads words, not characters: .* which needs no cache"):
        by_words.cache(["강"])


def test_words_without_a_vocabulary(by_words):
    bare = ElmoEncoder(WORD_CONFIG, by_words.params, None, "runs/bare")
    message = r"runs/bare reads words, and has no vocabulary \(words.txt\): copy one there to encode sentences; forward"
    for attempt in (
        lambda: bare.encode(["강"]),
        lambda: bare.encode_batches(["강"]),
        lambda: bare.check(["강"]),
        lambda: bare.vocabulary,
    ):
        with pytest.raises(ValueError, match=message):
            attempt()
    ids = np.array([[1, 3, 0]])
    assert np.array_equal(bare.forward(words=ids).layers, by_words.forward(words=ids, boundaries="given").layers)
    with pytest.raises(ValueError, match="boundaries='strip' needs the ids of <S> and </S>, and runs/bare has no"):
        bare.forward(words=ids, boundaries="strip")


def test_a_vocabulary_that_is_not_needed(elmo, params):
    with pytest.raises(ValueError, match="weights has no word vocabulary, and needs none: it reads the characters"):
        _ = elmo.vocabulary
    with_one = ElmoEncoder(dataclasses.replace(CONFIG, vocab_size=7), params, VOCABULARY)
    assert with_one.vocabulary is VOCABULARY
    assert np.array_equal(with_one.encode(["미지의"]).layers, elmo.encode(["미지의"]).layers)


# Wrong requests.


@pytest.mark.usefixtures("as_users_run")
def test_wrong_warmups_are_refused_at_once(elmo):
    """The rest is refused for every encoder of words: tests/encoders/test_word_encoders.py."""
    for warmup in (-1, 0.5, True):
        for encode in (elmo.encode, elmo.encode_batches):
            with pytest.raises((ValueError, TypeError), match=f"warmup={warmup}: use a whole number, at least 0"):
                encode(["a"], warmup=warmup)


@pytest.mark.usefixtures("as_users_run")
def test_a_bad_sentence_is_named_by_its_place_among_all(elmo):
    for bad, message in [
        ([], r"text 70 has no words: \[\]"),
        (["a", "b\ud83d"], r"text 70 holds a lone surrogate, U\+D83D at character 1 of word 1"),
        (None, "text 70 is None; expected a list of words, or a string"),
    ]:
        texts = [*["강가의 은행"] * 70, bad]
        for attempt in (elmo.encode, lambda texts: list(elmo.encode_batches(iter(texts), batch_size=4)), elmo.check):
            with pytest.raises((ValueError, TypeError), match=message):
                attempt(texts)
    with pytest.raises(TypeError, match=r"a generator was given: write list\(texts\), or use encode_batches"):
        elmo.encode(text for text in ["a"])
    elmo.check(["강가의 은행", ["New York"]])


def test_words_of_any_kind(elmo):
    odd = ["<S>", "New York", "\x00", "a\x00b", " ", "x" * 10_000, "🌊", "은행" * 40, "\u200b"]
    encoding = elmo.encode([odd, odd[::-1]])
    close(encoding.layers[:, 0], by_hand(elmo, odd)[0])
    assert np.isfinite(encoding.layers).all()
    # Cut to 48 bytes, as in the references, in the middle of a character if need be; the mark <S> is not written so.
    close(elmo.encode([["x" * 10_000]]).layers, elmo.encode([["x" * 48]]).layers)
    assert np.abs(elmo.encode([["x" * 47]]).last - elmo.encode([["x" * 48]]).last).max() > 1e-3
    mark = elmo.forward(boundary_characters(50)[:1][None]).layers
    assert np.abs(encoding.layers[0, 0, 0] - mark[0, 0, 0]).max() > 1e-3


def test_unknown_words_of_word_input_are_counted_and_warned_of(by_words, elmo):
    known = [VOCABULARY.words[-1]] * 3
    assert by_words.count_unknown([*known, "zebra"]) == 1 and elmo.count_unknown(["zebra"]) == 0
    by_words.encode([[*known, "zebra"]])
    with pytest.warns(UnfamiliarTexts, match=r"weights: 50% of the words of these texts are unknown \(1 of 2\)"):
        by_words.encode([[known[0], "zebra"]])
