"""Static vectors: one step against a plain loop, vectors of gensim, files and refusals, training on a toy text."""

import gzip
import os
import struct
from unicodedata import normalize

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ml_collections import ConfigDict

from bert_elmo_jax import load
from bert_elmo_jax.data.pipeline.windows import Text
from bert_elmo_jax.data.rows.word_windows import (
    CountExamples,
    Frequencies,
    SubwordLists,
    WindowExamples,
    count_batch,
    plan_count_rows,
    plan_window_rows,
    window_batch,
)
from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.static.config import StaticConfig
from bert_elmo_jax.families.static.encoder import StaticEncoder
from bert_elmo_jax.families.static.files import MAGIC, read_config
from bert_elmo_jax.families.static.model import init_static_params
from bert_elmo_jax.families.static.objective import glove_loss, touched_by_counts, touched_by_windows, window_loss
from bert_elmo_jax.inference.run_directory import write_run_directory
from bert_elmo_jax.inference.word_encoder import encode_words, word_encoder
from bert_elmo_jax.runs.pretraining import start_model
from bert_elmo_jax.runs.with_network import open_vectors, save_encoder
from bert_elmo_jax.text import WordVocabulary
from bert_elmo_jax.text.subwords import Subwords
from bert_elmo_jax.text.vector_files import write_vectors

DRAW = np.random.default_rng(0)
WORDS = ["<S>", "</S>", "<UNK>", "the", "bank", "of", "river", "은행", "강가의", "ship"]
SIZE, ROWS, LENGTH, NEGATIVES = len(WORDS), 2, 7, 4


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def draw_params(method, buckets=30):
    config = StaticConfig(SIZE, 5, method=method, buckets=buckets)
    params = init_static_params(config, jax.random.key(0), ("context",))
    return config, jax.tree.map(lambda leaf: jnp.asarray(DRAW.normal(size=leaf.shape), jnp.float32), params)


def draw_batch():
    return {
        "words": DRAW.integers(3, SIZE, (ROWS, LENGTH)).astype(np.int32),
        "segments": np.array([[1, 1, 1, 1, 2, 2, 2], [1, 1, 1, 1, 1, 0, 0]], np.int32),
        "reach": np.array([[3, 1, 2], [2, 3, 2]], np.int32),  # of the words in the middle
        "negatives": DRAW.integers(3, SIZE, (ROWS, NEGATIVES)).astype(np.int32),
    }


def word_rows(method, examples):
    """Return for each word the rows of the table that make its vector."""
    if method != "fasttext":
        return [[number] for number in range(SIZE)]
    lists = SubwordLists(WORDS, examples)
    return [lists.rows[a:b].tolist() for a, b in zip(lists.ends, lists.ends[1:])]


@pytest.mark.parametrize("method", ["skipgram", "cbow", "fasttext"])
def test_loss_and_gradient_of_a_plain_loop(method):
    examples = WindowExamples(buckets=30 if method == "fasttext" else 0)
    config, params = draw_params(method)
    batch = draw_batch()
    rows = word_rows(method, examples)
    table = np.asarray(params["encoder"]["embeddings"]["word"], np.float64)
    context = np.asarray(params["context"]["embedding"], np.float64)
    total, pairs, table_gradient, context_gradient = 0.0, 0, np.zeros_like(table), np.zeros_like(context)
    share = 3 / NEGATIVES

    def compare(vector, target, label, weight):
        """Add the loss of one pair, and return the gradient of the vector."""
        nonlocal total
        score = vector @ context[target]
        total -= weight * np.log(sigmoid(score if label else -score))
        slope = weight * (sigmoid(score) - label)
        context_gradient[target] += slope * vector
        return slope * context[target]

    for r in range(ROWS):
        segments, words = batch["segments"][r], batch["words"][r]
        for i in range(2, LENGTH - 2):
            near = [j for j in range(LENGTH) if 0 < abs(i - j) <= batch["reach"][r, i - 2]]
            near = [j for j in near if segments[i] == segments[j] > 0]
            if not near:
                continue
            read = [rows[words[j]] for j in near] if method == "cbow" else [rows[words[i]]]
            read = [row for each in read for row in each]
            vector = table[read].mean(axis=0)
            targets = [words[i]] if method == "cbow" else words[near]
            gradient = sum(compare(vector, target, 1, 1.0) for target in targets)
            for negative in batch["negatives"][r]:
                other_targets = sum(target != negative for target in targets)
                gradient = gradient + compare(vector, negative, 0, share * other_targets)
            pairs += len(targets)
            np.add.at(table_gradient, read, gradient)  # undivided, as in word2vec and fastText

    if method == "fasttext":
        batch = SubwordLists(WORDS, examples)(batch, 1)
    sums = window_loss(config, 3, ROWS)
    terms, metrics, _ = sums(params, batch, None, None)
    assert float(terms[method][0]) == pytest.approx(total, rel=1e-5) and float(terms[method][1]) == 1.0
    assert float(metrics["per_pair"][1]) == pairs
    gradients = jax.grad(lambda params: sums(params, batch, None, None)[0][method][0])(params)
    np.testing.assert_allclose(gradients["encoder"]["embeddings"]["word"], table_gradient, atol=1e-4)
    np.testing.assert_allclose(gradients["context"]["embedding"], context_gradient, atol=1e-4)


def test_glove_of_a_plain_loop():
    _, params = draw_params("glove")
    batch = {name: DRAW.integers(3, SIZE, (2, 5)).astype(np.int32) for name in ("words", "neighbours")}
    batch["counts"] = np.array([[1, 300, 0.2, 50, 0], [2, 7, 0, 0, 0]], np.float32)
    total = 0.0
    for word, neighbour, count in zip(*(batch[name].ravel() for name in ("words", "neighbours", "counts"))):
        if count:
            product = params["encoder"]["embeddings"]["word"][word] @ params["context"]["embedding"][neighbour]
            biases = params["context"]["word_bias"][word] + params["context"]["bias"][neighbour]
            total += 0.5 * min(1, (count / 100) ** 0.75) * float(product + biases - np.log(count)) ** 2
    terms, metrics, _ = glove_loss(2)(params, batch, None, None)
    assert float(terms["glove"][0]) == pytest.approx(total, rel=1e-5) and float(metrics["per_pair"][1]) == 6


def run_of_one_step(folder, method):
    """Write a model after one step on a text with a word below min_count; return its configuration and parameters."""
    vocabulary = WordVocabulary([*WORDS[:-1], "zebra"], np.array([0, 0, 0, 6, 6, 6, 6, 6, 6, 1]))
    frequencies = Frequencies.of(vocabulary, min_count=5)
    tokens = np.array([*range(3, SIZE), *range(3, SIZE - 1)] * 3)
    text = Text(tokens, np.array([0, len(tokens)]), np.array([0, 1]))
    config = StaticConfig(SIZE, 5, method=method, buckets=30)
    params = jax.tree.map(np.array, init_static_params(config, jax.random.key(0), ("context",)))
    if method == "glove":
        touched = touched_by_counts(
            count_batch(plan_count_rows(text, CountExamples(length=99), frequencies, (0,)), 0, 1)
        )
    else:
        examples = WindowExamples(length=50, negatives=NEGATIVES, buckets=config.gram_rows)
        rows = plan_window_rows(text, examples, frequencies, (0,))
        batch = window_batch(rows, 0, 1, examples=examples, ends=frequencies.ends)
        batch = SubwordLists(vocabulary.words, examples)(batch, 1) if config.gram_rows else batch
        touched = touched_by_windows(method)(batch)
    tables = {"encoder/embeddings/word": params["encoder"]["embeddings"]["word"]}
    tables |= {f"context/{name}": table for name, table in params["context"].items()}
    for name, table in tables.items():
        table[np.asarray(touched[name])] += 0.1  # as an optimizer does
    write_run_directory(folder, config, params, vocabulary, run={})
    return config, params


@pytest.mark.parametrize("method", ["skipgram", "cbow", "glove", "fasttext"])
def test_words_below_min_count_are_unknown(method, tmp_path):
    config, params = run_of_one_step(tmp_path, method)
    run = load(tmp_path)
    assert run.words == tuple(WORDS[3:-1]) and "zebra" not in run and "river" in run
    assert open_vectors(str(tmp_path))[1](["zebra", "river"]).words == ("river",)
    table = params["encoder"]["embeddings"]["word"]
    table = table + params["context"]["embedding"] if method == "glove" else table
    rows = [[number] for number in range(SIZE)]
    if method == "fasttext":
        lists = SubwordLists([*WORDS[:-1], "zebra"], WindowExamples(buckets=config.buckets))
        rows = [lists.rows[first:end].tolist() for first, end in zip(lists.ends, lists.ends[1:])]
        np.testing.assert_allclose(run.vector("zebra"), table[rows[-1][1:]].mean(axis=0), atol=1e-7)  # its n-grams
    else:
        assert run.count_unknown(["zebra", "river"]) == 1
    expected = [table[rows[number]].mean(axis=0) for number in range(3, SIZE - 1)]
    np.testing.assert_allclose(run.vectors_of(WORDS[3:-1]), expected, atol=1e-7)


@pytest.mark.parametrize("method", ["skipgram", "cbow", "fasttext"])
def test_words_that_were_only_drawn_as_negatives_are_unknown(method, tmp_path):
    config, params = run_of_one_step(tmp_path, method)
    vocabulary, table = WordVocabulary([*WORDS[:-1], "zebra"]), params["encoder"]["embeddings"]["word"]
    drawn = {**params, "context": {"embedding": params["context"]["embedding"] + 0.1}}
    assert StaticEncoder(config, drawn, vocabulary).words == tuple(WORDS[3:-1])
    earlier = {**params, "encoder": {"embeddings": {"word": table * np.float32(1.1)}}}  # a run that drew all digits
    assert StaticEncoder(config, earlier, vocabulary).words == tuple(WORDS[3:-1])


@pytest.mark.parametrize("method", ["skipgram", "glove"])
def test_words_of_a_file_keep_their_vectors_in_a_run_whose_text_lacks_them(method):
    config = StaticConfig(SIZE, 5, method=method)
    params = jax.tree.map(np.array, init_static_params(config, jax.random.key(0), ("context",)))
    table = np.random.default_rng(1).normal(size=(SIZE, 5)).astype(np.float32)
    table[:3], table[4] = 0, [0.5, -1, 2, 0.25, 3]  # the marks; numbers with few digits, as in bfloat16
    for rows in params["context"].values():
        rows[6] += 0.1  # the only word that a step has read
    run = StaticEncoder(config, {**params, "encoder": {"embeddings": {"word": table}}}, WordVocabulary(WORDS))
    assert run.words == tuple(WORDS[3:])
    unread = [n for n in range(3, SIZE) if n != 6]
    np.testing.assert_array_equal(run.vectors_of([WORDS[n] for n in unread]), table[unread])


def test_a_run_from_a_file_of_vectors_says_how_to_prepare_its_text(tmp_path):
    write_vectors(tmp_path / "a.vec", ["sea"], np.ones((1, 2), np.float32))
    expected = r"convert --from=.*a\.vec --to=RUN --to_format=run`, and prepare the data again with --tokenizer=RUN$"
    with pytest.raises(ValueError, match=expected):
        start_model(get_family("static"), ConfigDict(), str(tmp_path / "a.vec"), WordVocabulary(WORDS))


@pytest.mark.parametrize("method", ["skipgram", "glove", "fasttext"])
def test_task_networks_read_the_vectors_of_a_run(method, tmp_path):
    """The head `context`, which task networks lack, once was missing where the vectors were made."""
    run_of_one_step(tmp_path / "run", method)
    run, encoder = load(tmp_path / "run"), word_encoder(str(tmp_path / "run"))
    words = [*WORDS[3:-1], "zebra"]
    [[layer]] = encode_words(encoder, [words])
    np.testing.assert_array_equal(layer, run.vectors_of(words))
    trained = encoder.word_function()(encoder.params["encoder"], encoder.word_batch([words], 1, len(words)), None)
    np.testing.assert_allclose(trained[0, 0], layer, atol=1e-7)
    save_encoder(tmp_path / "network" / "encoder", encoder)
    stored = word_encoder(str(tmp_path / "network" / "encoder"))
    assert set(stored.params) == {"encoder"} and stored.fingerprint == encoder.fingerprint
    np.testing.assert_array_equal(encode_words(stored, [words])[0][0], layer)


@pytest.fixture(scope="module")
def vectors(goldens):
    return load(goldens / "static_tiny" / "gensim.bin")


def test_vectors_of_fasttext_as_gensim_has_them(vectors, goldens):
    with np.load(goldens / "static_tiny" / "gensim.npz") as golden:
        np.testing.assert_allclose(vectors.vectors_of(list(golden["words"])), golden["vectors"], atol=1e-7)
    assert "rivers" not in vectors and "river" in vectors
    assert vectors.similarity("rivers", "river") > vectors.similarity("rivers", "money")  # by their common n-grams


def test_neighbours_and_analogies(vectors):
    near = vectors.neighbours("river", top=3)
    cosines = {word: vectors.similarity("river", word) for word in vectors.words if word != "river"}
    best = sorted(cosines.items(), key=lambda pair: -pair[1])[:3]
    assert near == [(word, pytest.approx(cosine, abs=1e-6)) for word, cosine in best]
    assert [word for word, _ in vectors.neighbours(vectors.vector("river"), top=1)] == ["river"]
    assert {word for word, _ in vectors.analogy("river", "ship", "sea", top=9)} == set(vectors.words) - {
        "river", "ship", "sea",
    }  # fmt: skip
    assert len(vectors.neighbours("river", top=100)) == len(vectors.words) - 1


def test_scores_of_pairs_and_analogies(vectors, tmp_path):
    pairs = [("river", "bank"), ("sea", "ship"), ("은행", "money")]
    lines = [f"{a}\t{b}\t{vectors.similarity(a, b):.4f}" for a, b in pairs]
    (tmp_path / "pairs.txt").write_text("\n".join(["word 1\tword 2\tscore", *lines]), encoding="utf-8")
    assert vectors.score_pairs(tmp_path / "pairs.txt") == {"spearman": pytest.approx(1.0), "share": 1.0}
    d = vectors.analogy("river", "ship", "sea")[0].word
    (tmp_path / "questions.txt").write_text(f": group\nriver ship sea {d}\nriver ship sea zzz\n", encoding="utf-8")
    assert vectors.score_analogies(tmp_path / "questions.txt") == {"accuracy": 1.0, "share": 0.5}
    (tmp_path / "pairs.txt").write_text("a\tb\t1\nc\td\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"pairs\.txt:2: .*expected two words and a number"):
        vectors.score_pairs(tmp_path / "pairs.txt")
    (tmp_path / "pairs.txt").write_text("# pairs\nsea\tship\t\nsea\tboat\tx\nsea\tbank\t2\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"pairs\.txt:2: .*expected two words and a number"):
        vectors.score_pairs(tmp_path / "pairs.txt")


def test_scores_of_pairs_in_capitals_and_in_quotes(vectors, tmp_path):
    file = tmp_path / "pairs.csv"
    pairs = [("River", "Bank"), ("sea", "ship"), ("은행", "MONEY")]
    lines = [f'"{a}", "{b}",{vectors.similarity(a.lower(), b.lower()):.4f}' for a, b in pairs]
    file.write_text("\n".join(lines), encoding="utf-8")
    assert vectors.score_pairs(file) == {"spearman": pytest.approx(1.0), "share": 1.0}
    file.write_text("river,bank,9\nsea,ship,9\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"pairs\.csv: the scores of all 2 pairs that have vectors are equal"):
        vectors.score_pairs(file)
    questions = tmp_path / "questions.txt"
    answer = vectors.analogy("river", "ship", "sea")[0].word
    questions.write_text(f"River ship SEA {answer.upper()}\n", encoding="utf-8")
    assert vectors.score_analogies(questions) == {"accuracy": 1.0, "share": 1.0}


def test_analogies_in_a_file_of_decomposed_words(tmp_path):
    words = ["강", "바다", "배", "기차"]
    write_vectors(tmp_path / "a.vec", [normalize("NFD", word) for word in words], np.eye(4, dtype=np.float32))
    for form in ("NFC", "NFD"):
        (tmp_path / "questions.txt").write_text(normalize(form, " ".join(words)), encoding="utf-8")
        scores = load(tmp_path / "a.vec").score_analogies(tmp_path / "questions.txt")
        assert scores == {"accuracy": 1.0, "share": 1.0}


@pytest.mark.parametrize("number", [0.0, np.nan, np.inf])
def test_a_vector_without_a_direction_has_no_neighbours(vectors, number):
    with pytest.raises(ValueError, match="the vector is zero, or holds NaN or infinity"):
        vectors.neighbours(np.full(16, number, np.float32))


def test_the_length_of_a_vector_does_not_matter(vectors):
    river = vectors.vector("river")
    for factor in (1e-30, 1e30):
        near = vectors.neighbours(river * np.float32(factor), top=3)
        assert [word for word, _ in near] == [word for word, _ in vectors.neighbours(river, top=3)]
        assert near[0].similarity == pytest.approx(1.0)


def test_pairs_of_simlex_as_published(vectors, tmp_path):
    lines = ["word1\tword2\tPOS\tSimLex999\tconc(w1)"]
    pairs = [("river", "bank"), ("sea", "ship"), ("은행", "money")]
    lines += [f"{a}\t{b}\tN\t{vectors.similarity(a, b):.4f}\t4.5" for a, b in pairs]
    (tmp_path / "SimLex-999.txt").write_text("\n".join(lines), encoding="utf-8")
    assert vectors.score_pairs(tmp_path / "SimLex-999.txt")["spearman"] == pytest.approx(1.0)


@pytest.mark.parametrize("score", ["NaN", "inf", "high"])
def test_scores_of_pairs_that_are_no_numbers_are_named(vectors, tmp_path, score):
    (tmp_path / "pairs.csv").write_text(f"river,bank,7\nsea,ship,{score}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=rf"pairs\.csv:2: 'sea,ship,{score}'; expected two words and a number"):
        vectors.score_pairs(tmp_path / "pairs.csv")


def test_analogies_of_words_with_zeros_lower_the_share(tmp_path):
    (tmp_path / "v.txt").write_text("a 1 2\nb 3 4\nd 1 1\nzeros 0 0\n", encoding="utf-8")
    vectors, questions = load(tmp_path / "v.txt"), tmp_path / "questions.txt"
    assert "zeros" not in vectors
    questions.write_text("a b zeros d\na b d a\n", encoding="utf-8")  # no word is left to answer the second
    assert vectors.score_analogies(questions) == {"accuracy": 0.0, "share": 0.5}
    questions.write_text("a b zeros d\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"questions\.txt: none of 1 questions has vectors for its words"):
        vectors.score_analogies(questions)


def test_a_vector_of_another_width_is_refused(vectors):
    with pytest.raises(ValueError, match=r"the vector has the shape \(15,\), expected \(16,\)"):
        vectors.neighbours(np.ones(15, np.float32))


def test_sentence_vectors_are_means(vectors):
    [mean] = vectors.sentence_vectors([["the", "river"]])
    np.testing.assert_allclose(mean, vectors.vectors_of(["the", "river"]).mean(axis=0), atol=1e-7)


@pytest.mark.parametrize(
    ("name", "format"), [("v.txt", "word2vec"), ("v.vec", None), ("v.txt", "glove"), ("v.bin", None)]
)
def test_files_round_trip(vectors, tmp_path, name, format):
    vectors.save_vectors(tmp_path / name, format)
    read = load(tmp_path / name)
    assert read.words == vectors.words
    np.testing.assert_array_equal(read.vectors_of(read.words), vectors.vectors_of(vectors.words))
    with pytest.raises(ValueError, match=r"'rivr' is not among the 10 words .*did you mean river"):
        read.vector("rivr")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.txt", b"a 1.5 2\nb 1.5 2 3\nc 1 2\n", r"v\.txt:2: "),
        ("v.txt", b"a 1 2\nb 1 2 3\nc 1 2\n", r"v\.txt:2: more than 2 numbers"),
        ("v.txt", b"a 1 2\nb 1\nc 1 2\n", r"v\.txt:2: 1 number behind 'b', expected 2"),
        ("v.txt", b"", "v.txt is empty"),
        ("v.txt", b"3 2\na 1 2\nb 1 2\n", r"v\.txt:1: its first line counts 3 vectors, 2 follow"),
        ("v.txt", b"a 1 2\n\xff\xfe 1 2\n", r"v\.txt:2: .*is not UTF-8"),
        ("v.bin", b"", "v.bin is empty"),
        ("v.bin", b"9000000000 300\na ", "its first line promises 9,000,000,000 vectors of 300 numbers"),
        ("v.bin", b"1 1\na \0\0\0\0b \0\0\0\0", "6 bytes follow the 1 vectors"),
        ("v.bin", b"1 1\n\xff \0\0\0\0", "the word of vector 1, b'.xff', is not UTF-8"),
        ("v.vec.gz", gzip.compress(b"a 1 2\n"), r"v\.vec\.gz is packed; unpack it with gunzip"),
        ("v.bin.gz", gzip.compress(b"1 1\na \0\0\0\0"), r"v\.bin\.gz is packed; unpack it with gunzip"),
        ("v.bin", gzip.compress(b"1 1\na \0\0\0\0"), r"v\.bin is packed; unpack it with gunzip"),
        ("v.vec.zip", b"PK\x03\x04", r"v\.vec\.zip is packed; unpack it with unzip"),
        ("v.bin", b"2 2\na 0.1 0.2\nb 0.3 0.4\n", r"v\.bin is text, .*: give it the ending \.vec or \.txt"),
        ("v.bin", b"what is this", "expected the number of vectors and their width"),
        ("v.bin", b"\xba\x16\x4f\x2f\x0c", "is no complete model of fastText"),
    ],
)
def test_refused_files(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load(tmp_path / name)


def pack_fasttext(words=("the", "cat"), width=4, buckets=5, shortest=3, longest=6, kind=2, version=12, **other):
    """Return the bytes of a small model of fastText."""
    rows = np.full((other.get("rows", len(words) + buckets), max(width, 0)), other.get("number", 1), "<f4")
    head = struct.pack("<13i", version, width, 5, 1, 1, 5, 1, 1, kind, buckets, shortest, longest, 100)
    counts = struct.pack("<d3i2q", 1e-4, other.get("count", len(words)), len(words), 0, 10, -1)
    listed = b"".join(word.encode() + b"\0" + struct.pack("<qb", 3, 0) for word in words)
    return MAGIC + head + counts + listed + struct.pack("<?2q", False, *rows.shape) + rows.tobytes()


FILES = [
    ("cut.bin", pack_fasttext()[:-3], "no complete model of fastText"),
    ("more.bin", pack_fasttext() + b"x" * 99, "its last 82 bytes are no"),
    ("endless.bin", pack_fasttext()[:100] + b"x" * 99, "does not end"),
    ("buckets.bin", pack_fasttext(buckets=-1, rows=1), "no model of fastText: .* -1 buckets"),
    ("width.bin", pack_fasttext(width=-1), "no model of fastText: .* width -1"),
    ("kind.bin", pack_fasttext(kind=-7), "no model of fastText: version 12, kind -7"),
    ("version.bin", pack_fasttext(version=99), "no model of fastText: version 99"),
    ("longest.bin", pack_fasttext(longest=2**31 - 1), r"longest\.bin: longest is 2,147,483,647; at most 100"),
    ("shortest.bin", pack_fasttext(shortest=-5), r"shortest\.bin: shortest is -5"),
    ("large.bin", pack_fasttext(number=3e38), r"NaN, infinity or numbers above 1e\+15"),
    ("long.bin", b"1 2\nthe " + bytes(4000), r"long\.bin: 3,992 bytes follow the 1 vectors"),
    ("digits.txt", b"the 1_0 2\ncat 3 4\n", r"digits\.txt:1: '1_0' behind 'the', expected a number"),
]


@pytest.mark.parametrize(("name", "content", "message"), FILES, ids=[name for name, *_ in FILES])
def test_hostile_files_of_vectors(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load(tmp_path / name)


def test_a_file_that_is_mended_is_read_again(tmp_path):
    file = tmp_path / "v.bin"
    file.write_bytes(pack_fasttext(shortest=7))
    for _ in range(2):
        with pytest.raises(ValueError, match=r"v\.bin: longest is 6, below shortest, 7"):
            load(file)
    file.write_bytes(pack_fasttext(shortest=3))
    assert load(file).words == ("the", "cat")
    read_config(file)  # without the weights
    file.write_bytes(pack_fasttext(words=("sea", "ship")))
    os.utime(file, ns=(1, 1))
    assert load(file).words == ("sea", "ship")


def test_a_shortest_gram_of_no_characters_has_one_as_in_fasttext(tmp_path):
    for shortest in (0, 1):
        (tmp_path / f"{shortest}.bin").write_bytes(pack_fasttext(shortest=shortest))
    none, one = (load(tmp_path / f"{shortest}.bin") for shortest in (0, 1))
    assert none.config == one.config and none.config.shortest == 1
    np.testing.assert_array_equal(none.vectors_of(["zebra", "the"]), one.vectors_of(["zebra", "the"]))


def test_a_byte_order_mark_is_no_part_of_a_word(tmp_path):
    (tmp_path / "valid.bin").write_bytes(pack_fasttext())
    (tmp_path / "marked.txt").write_bytes(b"\xef\xbb\xbfthe 1 2\ncat 3 4\n")
    assert load(tmp_path / "valid.bin").words == load(tmp_path / "marked.txt").words == ("the", "cat")


def test_words_with_spaces_of_unicode_are_kept_and_others_counted(tmp_path):
    (tmp_path / "v.vec").write_text("4 2\nsea 1 2\nNew\u00a0York 3 4\n배\u3000산 5 6\nNew York 7 8\n", encoding="utf-8")
    with pytest.warns(UserWarning, match=r"v\.vec: 1 words with white space are left out, such as 'New York'"):
        read = load(tmp_path / "v.vec")
    assert read.words == ("sea", "New\u00a0York", "배\u3000산")
    (tmp_path / "marks.txt").write_text("<UNK> 1 2\nsea 1 2\n</S> 3 4\n", encoding="utf-8")
    with pytest.warns(UserWarning, match=r"marks\.txt: the vectors of </S>, <UNK> are left out"):
        assert load(tmp_path / "marks.txt").words == ("sea",)
    read.save_vectors(tmp_path / "again.vec")
    assert load(tmp_path / "again.vec").words == read.words


def test_words_of_fasttext_that_are_not_utf8_are_escaped_as_by_gensim(tmp_path):
    (tmp_path / "v.bin").write_bytes(pack_fasttext(("the", "naïve")).replace("ï".encode(), b"\xef"))
    assert load(tmp_path / "v.bin").words == ("the", r"na\xefve")


def test_words_that_are_cut_inside_a_letter_are_left_out(tmp_path):
    """word2vec.c cuts long words after 100 bytes, and has no other trace of it."""
    words, vectors = ["sea", "배", "한", "산"], np.arange(4, dtype=np.float32)[:, None] + 1
    for name in ("v.bin", "v.txt"):
        write_vectors(tmp_path / name, words, vectors, "binary" if name == "v.bin" else "word2vec")
        content = (tmp_path / name).read_bytes().replace("한".encode(), "한".encode()[:2])
        (tmp_path / name).write_bytes(content)
        with pytest.warns(UserWarning, match=rf"{name}: 1 of 4 words are left out, because they are not UTF-8"):
            read = load(tmp_path / name)
        assert read.words == ("sea", "배", "산") and read.vectors_of(["배", "산"]).ravel().tolist() == [2.0, 4.0]


def test_the_end_of_a_line_has_no_grams_as_in_fasttext():
    subwords = Subwords(first=3, buckets=9)
    assert subwords.rows("</s>") == [] and len(subwords.rows("s>")) > 0
