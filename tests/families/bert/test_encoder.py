import dataclasses
import tracemalloc

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families.bert.family import FAMILY
from bert_elmo_jax.families.piece_encoder import PieceEncoder
from bert_elmo_jax.text import WordPiece


@pytest.fixture(scope="module")
def encoder(goldens):
    return load(goldens / "bert_tiny")


@pytest.fixture(scope="module")
def pieces(encoder):
    """Return pieces that begin a word, for texts of any length."""
    tokens = encoder.tokenizer.tokens
    return [tokens[i] for i in np.flatnonzero(encoder.tokenizer.word_starts) if tokens[i].isalnum()]


@pytest.fixture(scope="module")
def texts(pieces):
    coins = np.random.default_rng(0)
    return [" ".join(coins.choice(pieces, length)) for length in coins.integers(1, 44, 37)]


def relative(a, b):
    return np.abs(a - b).max() / np.abs(b).max()


def test_forward_gives_the_reference_numbers(goldens):
    encoder = load(goldens / "bert_tiny_tf")
    inputs, outputs = np.load(goldens / "bert_tiny" / "inputs.npz"), np.load(goldens / "bert_tiny" / "outputs.npz")
    mask = inputs["attention_mask"]
    our_output = encoder.forward(tokens=inputs["input_ids"], types=inputs["token_type_ids"], mask=mask)
    real = mask.astype(bool)
    assert relative(np.asarray(our_output.layers)[:, real], outputs["hidden_states"][:, real]) < 1e-5
    assert relative(np.asarray(our_output.last)[real], outputs["hidden_states"][-1][real]) < 1e-5
    ours, theirs = (np.moveaxis(np.asarray(a), 2, 3)[:, real] for a in (our_output.attentions, outputs["attentions"]))
    assert relative(ours, theirs) < 1e-5
    assert relative(np.asarray(our_output.mlm_logits)[real], outputs["mlm_logits"][real]) < 1e-5
    for name in ("pooled", "nsp_logits"):
        assert relative(np.asarray(getattr(our_output, name)), outputs[name]) < 1e-5


def test_models_of_one_configuration_share_what_is_compiled(encoder, texts):
    params = jax.tree.map(lambda array: 2 * np.asarray(array), encoder.params)
    other = PieceEncoder(encoder.family, dataclasses.replace(encoder.config), params, encoder.tokenizer)
    expected = encoder.encode(texts[:3]).last
    compiled = encoder._run._cache_size()
    assert relative(other.encode(texts[:3]).last, expected) > 0.1
    assert other._run._cache_size() == compiled
    assert np.array_equal(encoder.encode(texts[:3]).last, expected)


def test_shapes_of_a_result(encoder, texts):
    """`tests/families/test_packed_encoding.py` compares its numbers with the numbers of single texts."""
    together = encoder.encode(texts, layers="all")
    assert together.last.shape[:2] == together.mask.shape == (37, max(map(len, together.tokens)))
    assert together.layers.shape == (encoder.config.num_layers + 1, *together.last.shape)
    assert not together.last[together.mask == 0].any()
    assert (together.mask.sum(1) == [len(t) for t in together.tokens]).all()
    assert np.array_equal(together.layers[-1], together.last)
    assert relative(encoder.encode(texts[::-1], batch_size=8).last[::-1], together.last) < 1e-5
    assert list(encoder.encode_batches([])) == []


@pytest.mark.long
def test_one_long_text_does_not_make_its_neighbours_long(encoder, pieces):
    long = " ".join(np.random.default_rng(4).choice(pieces, 3000))
    texts = [pieces[0]] * 70 + [long] + [pieces[1]] * 57
    tracemalloc.start()
    widths = []
    for batch in encoder.encode_batches(iter(texts), batch_size=1, overflow="windows", layers="all"):
        widths.append(batch.last.shape[1])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert widths == [3] * 70 + [3002] + [3] * 57
    # Five times 3,002 x 64 floats are 4 MB, and there are two copies while a batch is made; such a row for each of the
    # four texts that are computed together would be 15 MB more.
    assert peak < 12_000_000
    together = list(encoder.encode_batches(texts, batch_size=32, overflow="windows"))
    assert [batch.last.shape[1] for batch in together] == [3, 3, 3002, 3]
    single_batch = encoder.encode([long], overflow="windows")
    assert relative(together[2].last[6], single_batch.last[0]) < 1e-5
    assert relative(together[2].pooled[6], single_batch.pooled[0]) < 1e-5
    assert together[2].mask.sum(1).tolist() == [3] * 6 + [3002] + [3] * 25


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        (["[MASK]"], {"batch_size": 0}, "batch_size=0: use a whole number, at least 1"),
        (["[MASK]"], {"layers": [9]}, "there is no layer 9"),
        (["[MASK]"], {"stride": 0}, "stride=0"),
        (["[MASK]"], {"overflow": "cut"}, "'raise', 'truncate' or 'windows'"),
        (["[MASK]"], {"max_length": 49}, "max_length=49: use a whole number, 3 to"),
        ("[MASK]", {}, "a single string was given"),
    ],
)
def test_batches_refuse_before_anything_is_asked_of_them(encoder, texts, options, message):
    """`tests/encoders/test_arguments.py` has all that is refused."""
    for encode in (encoder.encode_batches, encoder.encode):
        with pytest.raises((ValueError, TypeError), match=message):
            encode(texts, **options)
    with pytest.raises(TypeError, match=r"a generator was given: write list\(texts\), or use encode_batches"):
        encoder.encode(text for text in ["[MASK]"])


@pytest.mark.usefixtures("as_users_run")
def test_wrong_mask_requests_are_refused(encoder):
    with pytest.raises(ValueError, match=r"has no \[MASK\] to fill"):
        encoder.fill_mask("a")
    for top in (0, 201, 2.5, "3", True):
        with pytest.raises((ValueError, TypeError), match=r"top=.*: use a whole number, 1 to 200, the size of the voc"):
            encoder.fill_mask("[MASK]", top=top)


def test_a_bad_text_is_named_by_its_place_among_all(encoder):
    texts = ["[MASK]"] * 130 + ["half \ud83d"]
    with pytest.raises(ValueError, match=r"text 130 holds a lone surrogate, U\+D83D at character 5"):
        list(encoder.encode_batches(texts, batch_size=4))
    with pytest.raises(ValueError, match="text 130 holds a lone surrogate"):
        encoder.check(iter(texts))
    encoder.check(["[MASK] " * 99], overflow="windows")
    with pytest.raises(ValueError, match="text 0 has 101 pieces"):
        encoder.check(["[MASK] " * 99])


def test_one_text_of_many(encoder, texts):
    many = encoder.encode(texts[:4], layers=[0, -1])
    for number, one in enumerate(many):
        assert one.tokens == [many.tokens[number]]
        assert one.last.shape == (1, len(many.tokens[number]), 64)
        assert np.array_equal(one.layers[:, 0], many.layers[:, number, : len(many.tokens[number])])
        assert np.array_equal(one.pooled[0], many.pooled[number])
    assert number == 3


@pytest.mark.usefixtures("as_users_run")
def test_values_of_other_shapes_have_no_words(encoder):
    many = encoder.encode(["[MASK]", "[MASK] [MASK]"], layers="all")
    assert many[-1].tokens == many[1].tokens == many[np.int64(1)].tokens == [many.tokens[1]]
    for values in (many.layers, many.last[:1], many.last[:, :2], many.last[0]):
        with pytest.raises(ValueError, match=r"expected \(2, 4, 64\), one vector per piece"):
            many.words("mean", values)


def test_the_words_that_were_cut_off_have_zeros(encoder, pieces):
    size = encoder.config.max_positions
    for text in (" ".join(pieces[:1] * 60), pieces[:1] * 60):
        [words] = encoder.encode([text], overflow="truncate").words()
        assert words.shape == (60, 64)
        assert (np.abs(words).sum(1) > 0).tolist() == [True] * (size - 2) + [False] * (62 - size)


def test_pooled_of_windows_is_that_of_the_first(encoder, pieces):
    long = np.random.default_rng(5).choice(pieces, 100).tolist()
    windows = encoder.encode([long], overflow="windows")
    first = encoder.encode([long[: encoder.config.max_positions - 2]])
    assert relative(windows.pooled, first.pooled) < 1e-5


def test_windows_give_every_piece_of_a_long_text(encoder, pieces):
    long = " ".join(np.random.default_rng(2).choice(pieces, 200))
    with pytest.raises(ValueError, match=r"text 1 has 202 pieces, the model takes \d+"):
        encoder.encode(["[MASK]", long])
    cut = encoder.encode([long], overflow="truncate")
    assert cut.last.shape[1] == encoder.config.max_positions
    merged = encoder.encode([long, "[MASK]"], overflow="windows", stride=9)
    assert merged.last.shape[1] == 202
    row, size = merged.texts[0], encoder.config.max_positions
    # A piece in the middle of a window, computed by hand.
    place, start = 60, 60 - (size - 2) // 2
    start -= start % 9
    ids = np.concatenate([row.ids[:1], row.ids[1 + start : 1 + start + size - 2], row.ids[-1:]])
    by_hand = np.asarray(encoder.forward(ids[None]).last)[0]
    assert relative(merged.last[0, 1 + place], by_hand[1 + place - start]) < 1e-5
    assert np.abs(merged.last[0]).min(axis=1).max() > 0
    assert (np.abs(merged.last[0]).sum(1) > 0).all()
    question = encoder.encode([("[MASK] [MASK]", long)], overflow="windows")
    assert question.last.shape[1] == 205
    assert (np.abs(question.last[0]).sum(1) > 0).all()


@pytest.mark.usefixtures("as_users_run")
def test_words_are_pooled_from_their_pieces():
    config = dataclasses.replace(load("tests/goldens/bert_tiny").config, vocab_size=200)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = WordPiece([*special, "배", "##를", "play", "##ing", "a"])
    encoder = PieceEncoder(FAMILY, config, load("tests/goldens/bert_tiny").params, tokenizer)
    encoding = encoder.encode(["a 배를 playing", (["배를", "\u200b"], ["a", "playing"])])
    last = encoding.last
    mean, first, final = (encoding.words(how) for how in ("mean", "first", "last"))
    assert np.allclose(mean[0], [last[0, 1], last[0, 2:4].mean(0), last[0, 4:6].mean(0)])
    assert np.allclose(first[0], last[0, [1, 2, 4]])
    assert np.allclose(final[0], last[0, [1, 3, 5]])
    assert np.allclose(mean[1], [last[1, 1:3].mean(0), last[1, 3], last[1, 5], last[1, 6:8].mean(0)])
    assert encoding.offsets[0].tolist() == [[0, 0], [0, 1], [2, 3], [3, 4], [5, 9], [9, 12], [0, 0]]
    layers = encoder.encode(["a 배를"], layers=[0]).layers
    assert encoder.encode(["a 배를"]).words("mean", layers[0])[0].shape == (2, 64)
    assert np.abs(encoder.encode([["\u200b", "a"]]).words()[0]).sum(1).all(), "no word has a vector of zeros"
    with pytest.raises(ValueError, match="text 1 holds an empty word, word 1 of 2: remove it"):
        encoder.encode([["a"], ["a", ""]])
    with pytest.raises(ValueError, match="'mean', 'first' or 'last'"):
        encoding.words("sum")


def test_fill_mask_orders_by_probability(encoder, pieces):
    guesses = encoder.fill_mask(f"{pieces[0]} [MASK] {pieces[1]}", top=200)
    assert [g.probability for g in guesses] == sorted((g.probability for g in guesses), reverse=True)
    assert abs(sum(g.probability for g in guesses) - 1) < 1e-5
    ids = encoder.encode([f"{pieces[0]} [MASK] {pieces[1]}"]).texts[0].ids
    logits = np.asarray(encoder.forward(ids[None]).mlm_logits)[0, 2]
    assert guesses[0].piece == encoder.tokenizer.tokens[int(logits[: encoder.tokenizer.vocab_size].argmax())]
    assert len(encoder.fill_mask("[MASK] [MASK]", top=3)) == 6


def test_fill_mask_counts_the_embeddings_without_a_piece(encoder):
    """As in transformers, the probabilities of all rows add up to one; rows without a piece are no guesses."""
    rows = encoder.params["encoder"]["embeddings"]["word"]
    config = dataclasses.replace(encoder.config, vocab_size=len(rows) + 56)
    params = jax.tree.map(np.asarray, encoder.params)
    params["encoder"]["embeddings"]["word"] = np.concatenate([rows, 2 * rows[:56]])
    params["mlm"]["bias"] = np.concatenate([params["mlm"]["bias"], np.ones(56, np.float32)])
    larger = PieceEncoder(encoder.family, config, params, encoder.tokenizer)
    guesses = larger.fill_mask("[MASK]", top=3)
    logits = np.asarray(larger.forward(larger.encode(["[MASK]"]).texts[0].ids[None]).mlm_logits[0, 1])
    shares = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    assert shares[len(rows) :].sum() > 0.01
    best = np.argsort(-shares[: len(rows)])[:3]
    assert [guess.piece for guess in guesses] == [encoder.tokenizer.tokens[number] for number in best]
    np.testing.assert_allclose([guess.probability for guess in guesses], shares[best], rtol=1e-5)


WRONG_IDS = [
    ({"tokens": np.array([[2, 200, 3]])}, "token id 200 at row 0, column 1 is outside the vocabulary"),
    ({"tokens": np.array([[2, -1, 3]])}, "token id -1"),
    ({"tokens": np.array([[2, 3]]), "types": np.array([[0, 2]])}, "type 2 at row 0, column 1"),
    ({"tokens": np.array([[2, 3]]), "mask": np.array([[1, 2]])}, "mask holds other numbers"),
    ({"tokens": np.array([[2, 3]]), "mask": np.array([[1]])}, r"mask has shape \(1, 1\)"),
    ({"tokens": np.array([2, 3])}, r"tokens has shape \(2,\); expected \[batch, pieces\]"),
    ({"tokens": np.zeros((1, 0), int)}, r"tokens has shape \(1, 0\)"),
    ({"tokens": np.array([[2**32 + 7, 3]])}, "token id 4294967303 at row 0, column 0 is outside the vocabulary"),
    ({"tokens": np.array([[2**63, 3]], np.uint64)}, "token id .* is outside the vocabulary"),
    ({"tokens": np.array([[2, 3]]), "types": np.array([[0, 2**32]])}, "type 4294967296"),
    ({"tokens": np.array([[2, 3]]), "positions": np.array([[0, 2**32]])}, "position 4294967296"),
    ({"tokens": np.array([[2, 3]]), "mask": np.array([[1, 2**32 + 1]])}, "mask holds other numbers"),
    ({"tokens": np.array([[2, 3]]), "segments": np.array([[-1, 1]])}, "segments holds numbers below 0"),
    ({"tokens": np.array([[2, 3]]), "segments": np.array([[1, 2**32]])}, "segments holds numbers .* beyond 32 bits"),
    ({"tokens": np.full((1, 49), 7)}, "49 tokens .* 48 positions"),
]


@pytest.mark.parametrize(("inputs", "message"), WRONG_IDS)
@pytest.mark.usefixtures("as_users_run")
def test_wrong_ids(encoder, inputs, message):
    with pytest.raises((ValueError, TypeError), match=message):
        encoder.forward(**inputs)


def test_weights_without_heads_or_tokenizer_say_so(encoder):
    bare = PieceEncoder(FAMILY, encoder.config, {"encoder": encoder.params["encoder"]}, None, "bare")
    output = bare.forward(np.array([[2, 3]]))
    assert output.mlm_logits is None
    assert output.nsp_logits is None
    with pytest.raises(ValueError, match="bare has no tokenizer"):
        bare.encode(["a"])
    with pytest.raises(ValueError, match="bare has no masked-language-model head; it has: none"):
        PieceEncoder(FAMILY, encoder.config, bare.params, encoder.tokenizer, "bare").fill_mask("[MASK]")
    without = {"embeddings": None, **encoder.params["encoder"]}
    del without["pooler"]
    poolerless = PieceEncoder(
        FAMILY, encoder.config, {"encoder": without, "nsp": encoder.params["nsp"]}, encoder.tokenizer
    )
    assert poolerless.encode(["[MASK]"]).pooled is None
    assert poolerless.forward(np.array([[2, 3]])).nsp_logits is None


def test_a_tokenizer_of_another_model_is_refused(encoder):
    many = WordPiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(str, range(300))])
    with pytest.raises(ValueError, match="the tokenizer has 305 pieces, the model embeddings for 200"):
        PieceEncoder(FAMILY, encoder.config, encoder.params, many)


def test_bfloat16_and_fused_attention_are_close(goldens, encoder, texts):
    expected = encoder.encode(texts[:5]).last
    half = load(goldens / "bert_tiny", dtype="bfloat16").encode(texts[:5])
    assert half.last.dtype == np.float32 and 0 < relative(half.last, expected) < 0.05
    fused = load(goldens / "bert_tiny", attention="fused")
    assert relative(fused.encode(texts[:5]).last, expected) < 1e-5
    assert fused.forward(np.array([[2, 7, 3]])).attentions is None


def test_missing_folders_and_weights_have_clear_errors(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist and is not a hub name"):
        load("./nowhere/at/all")
    with pytest.raises(FileNotFoundError, match=r"holds no weights\. Looked for"):
        load(tmp_path)
