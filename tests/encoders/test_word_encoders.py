"""The contract of encoders that read words, over the frozen models of every such family."""

import unicodedata

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.encoders.encoder import READ_AHEAD
from bert_elmo_jax.families import all_families
from bert_elmo_jax.inference.word_encoder import encode_words, layer_shape, trained_layers

from ..inference.test_vector_cache import rows_of

WORDS = ["the", "bank", "of", "river", "은행", "강가의", "ship"]
DRAW = np.random.default_rng(0)
FILES = {"static": "gensim.bin"}  # models that are single files
SENTENCES = [DRAW.choice(WORDS, size).tolist() for size in DRAW.integers(1, 7, 3 * READ_AHEAD + 1)]


@pytest.fixture(scope="module", params=[family.name for family in all_families() if family.inputs.name == "words"])
def encoder(request, goldens):
    return load(goldens / f"{request.param}_tiny" / FILES.get(request.param, ""))


def close(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


def test_every_way_gives_the_same_vectors(encoder):
    together = encoder.encode(SENTENCES, batch_size=4)
    assert together.words == SENTENCES and together.mask.sum(1).tolist() == list(map(len, SENTENCES))
    assert all(np.abs(layer[together.mask == 1]).max() > 0 for layer in together.layers)
    assert not any(layer[together.mask == 0].any() for layer in together.layers)
    batched = list(encoder.encode_batches(iter(SENTENCES), batch_size=4))
    assert [len(batch) for batch in batched] == [4] * (len(SENTENCES) // 4) + [1]
    numbers = [0, min(2, encoder.num_layers), -1]
    extracted = list(encoder.extract((" ".join(words) for words in SENTENCES), numbers, batch_size=4))
    for n, (words, layers, again) in enumerate(zip(SENTENCES, encoder.word_layers(SENTENCES, numbers), extracted)):
        part = batched[n // 4][n % 4]
        assert part.words == [words] and layers.shape == (3, len(words), encoder.width)
        close(again, layers)
        for number, layer in zip(numbers, layers):
            size = part.layers[number].shape[-1]
            close(part.layers[number][0], together.layers[number][n, : len(words)])
            close(layer[:, :size], part.layers[number][0])
            assert not layer[:, size:].any()  # the narrower layers are padded
    assert list(encoder.encode_batches([])) == []


def test_a_sentence_alone_and_half_precision(encoder):
    together = encoder.encode(SENTENCES[:3])
    close(encoder.encode(SENTENCES[:1]).last[0], together.last[0, : len(SENTENCES[0])])
    half = load(encoder.source, dtype="bfloat16").encode(SENTENCES[:3]).last
    assert half.dtype == np.float32
    assert 0 < np.abs(half - together.last).max() < 0.5


@pytest.mark.parametrize("name", ["frozen_runs/models/lm_forward", "static_tiny/gensim.bin"])
def test_decomposed_text_has_the_vectors_of_composed_text(goldens, name):
    encoder = load(goldens / name)
    text = "영화 배우" if "runs" in name else "은행 강가의 달빛"  # the last word has n-grams alone
    decomposed = unicodedata.normalize("NFD", text)
    for sentence in (decomposed, decomposed.split()):
        close(encoder.encode([sentence]).last, encoder.encode([text]).last)
    assert encoder.count_unknown(decomposed.split()) == 0


@pytest.mark.usefixtures("as_users_run")
def test_parts_of_a_result(encoder):
    encoding = encoder.encode(SENTENCES[:4])
    assert len(encoding) == 4 and [one.words for one in encoding] == [[words] for words in SENTENCES[:4]]
    for one, words in zip(encoding, SENTENCES):
        assert [layer.shape[:2] for layer in one.layers] == [(1, len(words))] * len(encoding.layers)
    assert encoding[-1].words == encoding[3].words and encoding[::-1].words == SENTENCES[3::-1]
    assert encoding[1:1].last.shape[:2] == (0, 0)
    assert repr(encoding).startswith(f"{type(encoding).__name__}(4 texts, ")
    with pytest.raises(IndexError, match="there is no text 4 among 4"):
        encoding[4]
    with pytest.raises(TypeError, match=r"encoding\['a'\] is not known; use the number of a text"):
        encoding["a"]


def test_a_network_begins_with_the_same_layers(encoder):
    sentences = [tuple(words) for words in SENTENCES[:3]]
    batch = trained_layers(encoder)(rows_of(sentences), 4, 8)
    compute = jax.jit(encoder.word_function())
    layers = np.asarray(compute(encoder.params["encoder"], batch, None))
    assert layers.shape == (layer_shape(encoder)[0], 4, 8, encoder.width)
    for n, expected in enumerate(encode_words(encoder, sentences)):
        np.testing.assert_allclose(layers[:, n, : expected.shape[1]], expected, rtol=0, atol=1e-4)
    dropped = compute(encoder.params["encoder"], batch, jax.random.key(0))
    rates = [rate for name, rate in vars(encoder.config).items() if "drop" in name]
    assert (np.abs(np.asarray(dropped) - layers)[:, :3].max() > 0.01) == any(rates)


def test_a_progress_bar_shows_for_many(encoder, capsys):
    for count, progress, shown in ((299, None, ""), (300, None, "300/300"), (300, False, ""), (1, True, "1/1")):
        encoder.encode(["bank"] * count, progress=progress)
        error = capsys.readouterr().err
        assert shown in error and bool(error) == bool(shown)


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize(
    ("sentences", "options", "error", "message"),
    [
        (["a", " "], {}, ValueError, "text 1 has no words"),
        ("a b", {}, TypeError, "a single string was given"),
        (["a"], {"batch_size": 0}, ValueError, "batch_size=0: use a whole number"),
    ],
)
def test_refused_sentences(encoder, sentences, options, error, message):
    with pytest.raises(error, match=message):
        encoder.encode(sentences, **options)
    with pytest.raises(error, match=message):
        list(encoder.encode_batches(sentences, **options))


def test_no_sentences(encoder):
    encoding = encoder.encode([])
    assert len(encoding) == 0 and encoding.last.shape[:2] == (0, 0)
