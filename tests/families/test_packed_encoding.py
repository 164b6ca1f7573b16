"""Texts in shared rows get the same vectors as alone, up to rounding."""

import dataclasses
import functools
import runpy
from pathlib import Path

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.data.rows.packed_rows import PackedBatch
from bert_elmo_jax.encoders.encoder import Work
from bert_elmo_jax.encoders.layout import Windows
from bert_elmo_jax.encoders.rows import to_row
from bert_elmo_jax.families import REGISTRY, piece_encoder
from bert_elmo_jax.families.bert.family import FAMILY
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.families.piece_encoder import PieceEncoder
from bert_elmo_jax.families.pieces import Pieces


@pytest.fixture(scope="module")
def encoder(goldens):
    return load(goldens / "bert_tiny")


@pytest.fixture(scope="module")
def words(encoder):
    tokens = encoder.tokenizer.tokens
    return [tokens[i] for i in np.flatnonzero(encoder.tokenizer.word_starts) if tokens[i].isalnum()]


@pytest.fixture(scope="module")
def texts(words):
    """Strings, lists of words and pairs, of lengths from one word to several windows."""
    draw = np.random.default_rng(0)
    lists = [draw.choice(words, n).tolist() for n in [*draw.integers(1, 12, 24), 30, 44, 46, 70, 130]]
    strings = [" ".join(text) for text in lists]
    pairs = [(lists[n], lists[n + 1]) for n in range(4)] + [(strings[3], strings[-1]), (strings[4], strings[-3])]
    return [*strings, *lists[:6], *pairs]


def change(encoder, family=FAMILY, **fields):
    """Return an encoder with the same weights and another configuration."""
    config = dataclasses.replace(encoder.config, **fields)
    return PieceEncoder(family, config, encoder.params, encoder.tokenizer)


@functools.cache
def without_packing(family):
    """Return the family with rows of one text; the same for each encoder, so that these share what is compiled."""
    return dataclasses.replace(family, inputs=Pieces(packs=False))


def encode_alone(encoder, texts, **options):
    """Encode each text in rows of its own, one window per row."""
    reference = PieceEncoder(without_packing(encoder.family), encoder.config, encoder.params, encoder.tokenizer)
    return [reference.encode([text], batch_size=1, **options) for text in texts]


def differ(together, single_texts):
    """Return the largest difference between texts encoded together and alone."""
    differences = [0.0]
    for one, other in zip(together, single_texts, strict=True):
        for name in ("last", "layers", "pooled"):
            a, b = getattr(one, name), getattr(other, name)
            assert (a is None) == (b is None)
            differences += [] if a is None else [np.abs(a - b).max()]
        assert one.tokens == other.tokens
    return max(differences)


@pytest.mark.parametrize("causal", [False, pytest.param(True, marks=pytest.mark.long)])
def test_texts_together_equal_texts_alone(encoder, texts, causal):
    model = change(encoder, causal=causal)
    options = {"layers": "all", "overflow": "windows", "stride": 20}
    single_texts = encode_alone(model, texts, **options)
    together = model.encode(texts, **options)
    assert differ(together, single_texts) < 2e-6
    assert model.work.padding < 0.1
    batches = model.encode_batches(iter(texts), batch_size=4, **options)
    assert differ((one for batch in batches for one in batch), single_texts) < 2e-6
    for pool in ("mean", "first"):
        for mine, [other] in zip(together.words(pool), (one.words(pool) for one in single_texts), strict=True):
            np.testing.assert_allclose(mine, other, atol=2e-6)


def test_a_text_does_not_feel_its_neighbours(encoder, words):
    """The bytes are equal, not only close: the rows have the same shape."""
    text = " ".join(words[:5])
    one, other = (encoder.encode([text, " ".join([word] * 6)]) for word in words[:2])
    assert np.array_equal(one[0].last, other[0].last) and np.array_equal(one[0].pooled, other[0].pooled)
    assert not np.array_equal(one[1].last, other[1].last)


def test_word_layers_and_extract_equal_encode(encoder, texts, words):
    split = [text for text in texts if isinstance(text, list)]
    single_texts = encode_alone(encoder, split, layers=[0, 2])
    word_layers = list(encoder.word_layers([split[0], [], *split[1:]], [0, 2]))
    assert word_layers.pop(1).shape == (2, 0, 64)
    for mine, other in zip(word_layers, single_texts, strict=True):
        np.testing.assert_allclose(mine, np.stack([other.words(values=v)[0] for v in other.layers]), atol=2e-6)
    for mine, other in zip(encoder.extract(split, [0, 2]), single_texts, strict=True):
        np.testing.assert_allclose(mine, other.layers[:, 0], atol=2e-6)


def test_pooled_vectors_are_left_out_on_request(encoder, texts):
    assert encoder.encode(texts[:2], pooled=False).pooled is None
    [batch] = encoder.encode_batches(texts[:2], pooled=False)
    assert batch.pooled is None
    assert np.array_equal(batch.last, encoder.encode(texts[:2]).last)


def test_a_short_text_is_computed_in_a_small_row(encoder, words):
    model = change(encoder)
    model.encode([" ".join(words[:1] * 10)])
    assert (model.work.pieces, model.work.positions) == (12, 12)


def test_little_is_padded(encoder, words):
    """Rows are wider than the model's 48 positions; they are read ahead in batches, too."""
    draw = np.random.default_rng(1)
    texts = [" ".join(draw.choice(words, n)) for n in np.clip(draw.gamma(3.5, 6, 400), 1, 46).astype(int)]
    model = change(encoder, norm_eps=2e-12)  # of no other test, so that nothing is compiled yet
    model.encode(texts)
    pieces, positions = model.work.pieces, model.work.positions
    assert pieces == sum(len(model.tokenizer.encode(text)) for text in texts)
    assert model.work.padding < 0.04
    assert model._run._cache_size() <= 4
    for _ in model.encode_batches(iter(texts)):
        pass
    assert (model.work.pieces, model.work.positions) == (2 * pieces, 2 * positions)


def test_work_before_any_text():
    assert str(Work()) == "0 pieces in 0 positions (0.0% padding)"


def test_a_family_that_does_not_pack_has_one_text_per_row(encoder, texts):
    """The module sees no segments but 0 and 1, and no positions."""
    calls = []

    class Watched(FAMILY.module):
        def __call__(self, tokens, types=None, positions=None, segments=None, **options):
            calls.append((positions, segments))
            assert "nsp_positions" not in options
            return super().__call__(tokens, types, positions, segments, **options)

    family = dataclasses.replace(FAMILY, module=Watched, inputs=Pieces(packs=False))
    model = PieceEncoder(family, encoder.config, encoder.params, encoder.tokenizer)
    with jax.disable_jit():
        encodings = model.encode(texts[:6])
    assert all(positions is None and set(np.unique(segments)) <= {0, 1} for positions, segments in calls)
    assert differ(encodings, encoder.encode(texts[:6])) < 2e-6


def test_a_family_that_ignores_positions_packs(encoder, texts):
    bag = runpy.run_path(str(Path(__file__).with_name("bag.py")))
    try:
        family = bag["FAMILY"]
        config = bag["BagConfig"](vocab_size=encoder.config.vocab_size, max_positions=48)
        params = init_params(family, config, jax.random.key(0), ())
        model = PieceEncoder(family, config, params, encoder.tokenizer)
        options = {"overflow": "windows", "layers": [0, 1]}
        assert differ(model.encode(texts, **options), encode_alone(model, texts, **options)) < 2e-6
        assert model.work.padding < 0.1
    finally:
        del REGISTRY["bag"]


def test_arrays_of_a_packed_batch(encoder, words):
    rows = [to_row(" ".join(words[:n]), n, encoder.tokenizer, 48, "raise", None) for n in (2, 11, 1)]
    windows = Windows(rows)
    places = ([1, 2, 0], [0, 0, 1], [0, 1, 0], [0, 13, 0])  # texts, rows, slots, starts
    arrays = windows.lay_out(PackedBatch(2, 16, *map(np.array, places)), pad_id=0)
    assert arrays.segments.tolist() == [[1] * 13 + [2] * 3, [1] * 4 + [0] * 12]
    assert arrays.positions.tolist() == [[*range(13), *range(3)], [*range(4), *[0] * 12]]
    assert arrays.firsts.tolist() == [[0, 13, 0, 0, 0], [0] * 5]
    assert arrays.tokens[1, :4].tolist() == rows[0].encoding.ids.tolist()


def test_bfloat16_kernels_are_cast_once_and_give_the_same_numbers(goldens):
    encoder = load(goldens / "bert_tiny", dtype="bfloat16")
    kernel = encoder.working_params["encoder"]["layer_0"]["attention"]["query"]["kernel"]
    assert kernel.dtype == "bfloat16"
    assert encoder.params["encoder"]["layer_0"]["attention"]["query"]["kernel"].dtype == "float32"
    tokens = np.array([[2, 5, 6, 3]])
    output = encoder.forward(tokens)
    encoder._cast_params = encoder.params  # cast in every call
    np.testing.assert_array_equal(output.layers, encoder.forward(tokens).layers)


def test_small_requests_read_transposed_kernels_where_that_is_faster(goldens, words, monkeypatch):
    plain, encoder = load(goldens / "bert_tiny"), load(goldens / "bert_tiny")
    for model, faster in ((plain, False), (encoder, True)):
        monkeypatch.setattr(piece_encoder, "transposed_is_faster", lambda faster=faster: faster)
        encodings = model.encode(words[:4])
        assert ("_turned_params" in vars(model)) == faster
    turned = encoder._turned_params["encoder"]["layer_0"]["feed_forward"]["up"]["kernel"]
    assert turned.shape == encoder.params["encoder"]["layer_0"]["feed_forward"]["up"]["kernel"].shape[::-1]
    all_encodings = encoder.encode([*words[:4], " ".join(words[:30]), " ".join(words[10:40])])
    for n, encoding in enumerate(encodings):
        np.testing.assert_allclose(encoding.last[0], all_encodings[n].last[0], atol=2e-6)
        np.testing.assert_allclose(encoding.pooled, all_encodings[n].pooled, atol=2e-6)
