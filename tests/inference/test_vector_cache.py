"""Vectors of a task's sentences, kept on disk: equal to the encoder's, continued, and refused if they differ."""

import json

import jax
import numpy as np
import pytest

from bert_elmo_jax.data.tasks.word_rows import WordRow
from bert_elmo_jax.inference.word_encoder import (
    encode_words,
    fill_cache,
    frozen_layers,
    layer_shape,
    trained_layers,
    word_encoder,
)

SENTENCES = [("강가의", "작은", "은행"), ("bank",), ("the", "river", "the"), ("bank",), ("배를", "타고")]


@pytest.fixture(scope="module")
def elmo():
    return word_encoder("tests/goldens/elmo_tiny")


@pytest.fixture(scope="module")
def bert():
    return word_encoder("tests/goldens/bert_tiny")


def rows_of(sentences):
    return [WordRow(n, words, np.zeros(len(words), np.int32)) for n, words in enumerate(sentences)]


def test_the_encoders_own_vectors(elmo, tmp_path):
    cache = fill_cache(tmp_path / "vectors", elmo, SENTENCES, progress=False)
    for words, layers in zip(SENTENCES, encode_words(elmo, SENTENCES)):
        np.testing.assert_allclose(cache.layers(words), layers, atol=1e-5)
    vectors_json = json.loads((tmp_path / "vectors" / "vectors.json").read_text())
    # A sentence that comes twice is kept once.
    assert [vectors_json[name] for name in ("sentences", "vectors", "done", "rows")] == [4, 9, 4, 9]
    batch = cache.batch(rows_of(SENTENCES[:2]), 4, 8)["layers"]
    assert batch.shape == (4, 3, 8, 24)
    live = frozen_layers(elmo)(rows_of(SENTENCES[:2]), 4, 8)["layers"]
    np.testing.assert_allclose(batch, live, atol=1e-5)


def test_mismatched_and_damaged_folders_are_refused(elmo, bert, tmp_path):
    folder = tmp_path / "vectors"
    fill_cache(folder, elmo, SENTENCES, progress=False)
    with pytest.raises(ValueError, match=r"belong to another encoder \(.*bert_tiny is .*remove this one"):
        fill_cache(folder, bert, SENTENCES)
    with pytest.raises(ValueError, match=r"belong to other sentences \(9 vectors of 4 sentences; here 4 of 2\)"):
        fill_cache(folder, elmo, SENTENCES[:2])
    vectors_json = json.loads((folder / "vectors.json").read_text())
    (folder / "vectors.json").write_text(json.dumps({**vectors_json, "pieces": "mean"}))
    with pytest.raises(ValueError, match="were computed with pieces=mean, not first: give another folder"):
        fill_cache(folder, elmo, SENTENCES)
    (folder / "vectors.json").write_text(json.dumps({**vectors_json, "rows": 8}))
    with pytest.raises(ValueError, match="holds 8 vectors, expected 9; remove it"):
        fill_cache(folder, elmo, SENTENCES)
    (folder / "vectors.json").write_text(json.dumps(vectors_json))
    with open(folder / "layer_01.f32", "r+b") as file:
        file.truncate(100)
    with pytest.raises(ValueError, match=r"layer_01\.f32 has 100 bytes, and 864 were written: it is truncated. Remove"):
        fill_cache(folder, elmo, SENTENCES)
    (folder / "vectors.json").write_text("{")
    with pytest.raises(ValueError, match=r"vectors\.json is damaged"):
        fill_cache(folder, elmo, SENTENCES)
    other = tmp_path / "other"
    other.mkdir()
    (other / "novel.txt").write_text("mine")
    with pytest.raises(ValueError, match="holds other files than vectors"):
        fill_cache(other, elmo, SENTENCES)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="cannot make "):
        fill_cache(tmp_path / "file" / "vectors", elmo, SENTENCES)


def test_a_network_begins_with_the_layers_of_a_bert(bert):
    sentences = [("[MASK]", "[MASK]"), ("[MASK]",)]
    batch = trained_layers(bert)(rows_of(sentences), 4, 8)
    layers = jax.jit(bert.word_function())(bert.params["encoder"], batch, None)
    assert layers.shape == (layer_shape(bert)[0], 4, 8, layer_shape(bert)[1])
    for n, expected in enumerate(encode_words(bert, sentences)):
        np.testing.assert_allclose(layers[:, n, : expected.shape[1]], expected, atol=1e-4)


def test_of_a_bert_the_first_piece_and_unknown_for_nothing(bert):
    words = ["[MASK]", "\u200b", "[MASK]"]
    [layers] = encode_words(bert, [words])
    encoded = bert.encode([words], layers="all")
    np.testing.assert_allclose(layers[:, 0], encoded.layers[:, 0, 1], atol=1e-5)
    nothing = encode_words(bert, [["[MASK]"], ["\u200b"], ["[MASK]", "[MASK]"]])
    assert [part.shape for part in nothing] == [(4, 1, 64), (4, 1, 64), (4, 2, 64)]
    assert nothing[1].any(), "a word without pieces is the unknown piece"
    assert nothing[2].any()
    assert encode_words(bert, [[], ["\u200b", "\x07"]])[1].shape == (4, 2, 64)


def test_too_long_to_be_trained_along(bert):
    many = ("[MASK]",) * (bert.config.max_positions + 1)
    with pytest.raises(ValueError, match=r"pieces that .*bert_tiny, which is fine-tuned here, can take"):
        trained_layers(bert)(rows_of([many]), 1, 2 * len(many))
    assert encode_words(bert, [many])[0].shape == (4, len(many), 64)  # frozen, it is read in windows
