"""The ideal reader of a run's held-out text, against the toy world's own figures, and the tables at a toy size."""

import json
import shutil

import jax
import numpy as np
import pytest
from absl import flags

from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus
from bert_elmo_jax.data.pipeline.batches import eval_batches
from bert_elmo_jax.data.rows.masking import Masking
from bert_elmo_jax.data.rows.pieces import PieceExamples
from bert_elmo_jax.data.rows.stream import LanguageModelExamples
from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.family import FAMILY
from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.families.elmo.model import init_elmo_params
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.text import WordVocabulary, load_tokenizer
from bert_elmo_jax.toyworld import ToyWorld, best_masked, word_log_probabilities
from experiments.studies.ceilings import best_masked as masked_scores
from experiments.studies.ceilings import best_next as next_scores
from experiments.studies.ceilings import best_stream as stream_scores
from experiments.studies.ceilings import toy_passages

from .untrained_runs import PIECES, TINY, write_run

WORLDS = {name: ToyWorld(name) for name in ("en", "ko")}
TOY = {"data": "toyworld", "toyworld": {"language": "en,ko"}, "batch_size": 4, "eval_batches": None, "steps": 3}
STREAMS = {"program": "pretrain", "family": "elmo", "reading": "streams", "length": 20, "negatives": 0}


@pytest.fixture(scope="module")
def benchmark(program):
    return program("benchmarks.toyworld")


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert") / "toyworld"
    return toy_corpus(folder, language="en,ko", documents=500, vocab_size=8192, heldout=0.06)


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    folder = tmp_path_factory.mktemp("elmo") / "toyworld"
    return toy_corpus(folder, language="en,ko", documents=150, tokenizer="words", vocab_size=8192, heldout=0.15)


def held_out(pieces, objective, **masking):
    examples = PieceExamples(256, objective, 0.1, "document", Masking(**masking), 1, 0)
    return list(eval_batches(pieces, examples, 8))


@pytest.mark.long
def test_masked_words_are_those_of_best_masked(pieces):
    """On whole documents with only [MASK] as masks, the result equals the toy world's function on the same words."""
    batches = held_out(pieces, "documents", split=(1.0, 0.0, 0.0))
    sentences = toy_passages.Sentences(pieces, WORLDS, load_tokenizer(pieces / "tokenizer").tokens)
    scores, scored_batches = masked_scores.best_masked_rows(batches, sentences, pairs=False)
    counts = {name: int(sum(batch["mlm_weights"].sum() for batch in scored_batches[name])) for name in WORLDS}
    for name, world in WORLDS.items():
        passages = [passage for b in batches for *_, [passage], _ in toy_passages.list_examples(b, sentences)]
        passages = [passage for passage in passages if passage.language == name]
        texts = [" ".join(passage.words) for passage in passages]
        best = best_masked(world, texts, [passage.hidden for passage in passages])
        assert counts[name] == scores.count[name] == best.count > 50
        assert scores.right[name] == pytest.approx(best.accuracy * best.count)
        assert scores.expected[name] == pytest.approx(best.expected * best.count)
    masked = sum(batch["mlm_weights"].sum() for batch in batches)
    assert 0.5 * masked < sum(counts.values()) <= masked


@pytest.mark.long
def test_words_left_standing_are_known_and_random_ones_are_not(pieces):
    sentences = toy_passages.Sentences(pieces, WORLDS, load_tokenizer(pieces / "tokenizer").tokens)
    unchanged, _ = masked_scores.best_masked_rows(held_out(pieces, "nsp", split=(0.0, 0.0, 1.0)), sentences, pairs=True)
    assert all(unchanged.right[name] == unchanged.expected[name] == unchanged.count[name] for name in WORLDS)
    masked, _ = masked_scores.best_masked_rows(held_out(pieces, "nsp", split=(1.0, 0.0, 0.0)), sentences, pairs=True)
    random, _ = masked_scores.best_masked_rows(held_out(pieces, "nsp", split=(0.0, 1.0, 0.0)), sentences, pairs=True)
    # A random token may be the true one, which is left standing then.
    assert abs(sum(masked.right.values()) - sum(random.right.values())) <= 2
    assert masked.right["next"] > 0.9 * masked.count["next"] > 0


@pytest.mark.long  # documents that were split are below
def test_examples_that_were_cut_are_left_out(pieces):
    tokens = load_tokenizer(pieces / "tokenizer").tokens
    sentences = toy_passages.Sentences(pieces, WORLDS, tokens)
    [(text, language), *_] = sentences.language.items()
    ids = np.array([tokens.index(word) for word in text])
    assert sentences.passage(ids, [1]).text.split()[1] == "[MASK]"
    assert sentences.passage(np.tile(ids, 2), []) == toy_passages.Passage(language, [*text] * 2, [])
    assert sentences.passage(ids[1:], []) is None and sentences.passage(ids[:-1], []) is None
    other = next(words for words, other_language in sentences.language.items() if other_language != language)
    mixed = [*ids, *(tokens.index(word) for word in other)]
    assert sentences.passage(np.array(mixed), []) is None


def document(world, number):
    words, ends = [], []
    for sentence in world.document(number).sentences:
        words += [*sentence.words, "</S>"]
        ends += [False] * len(sentence.words) + [True]
    return words, ends


def test_a_row_of_documents_is_read_as_documents():
    names, numbers = ["ko", "en", "ko"], [3, 4, 5]
    parts = [document(WORLDS[name], number) for name, number in zip(names, numbers)]
    words = [word for part, _ in parts for word in part]
    ends = np.array([end for _, part in parts for end in part])
    log_probs, language = stream_scores.best_stream(words, ends, WORLDS)
    texts = [WORLDS[name].document(number).text.replace("\n", " ") for name, number in zip(names, numbers)]
    each = [word_log_probabilities(WORLDS[name], [text], "document")[0] for name, text in zip(names, texts)]
    # The row begins anywhere, one sentence in nine is the first of a document; the last document need not be over.
    expected = sum(part.sum() for part in each) - each[-1][-1] - np.log(9) - 3 * np.log(2)
    assert log_probs.sum() == pytest.approx(expected)
    assert language == [name for name, (part, _) in zip(names, parts) for _ in part]
    assert not log_probs[ends].any()


def test_a_row_that_begins_amid_a_document_knows_less():
    words, ends = document(WORLDS["en"], 4)
    full_row, _ = stream_scores.best_stream(words, np.array(ends), WORLDS)
    cut = ends.index(True) + 1
    part, _ = stream_scores.best_stream(words[cut:], np.array(ends)[cut:], WORLDS)
    assert part[0] < full_row[cut] and len(part) == len(full_row) - cut


def test_unknown_words_are_not_scored():
    words, ends = document(WORLDS["ko"], 4)
    words[2] = "<UNK>"
    log_probs, language = stream_scores.best_stream(words, np.array(ends), WORLDS)
    assert log_probs[2] == pytest.approx(0) and language[2:4] == ["", "ko"] and np.isfinite(log_probs).all()


@pytest.mark.parametrize("reading", ["streams", "sentences"])
def test_every_target_is_scored_once_in_either_direction(words, reading):
    vocabulary = WordVocabulary.load(words / "tokenizer")
    batches = list(eval_batches(words, LanguageModelExamples(reading, 20), 4))
    sums, scored_batches = stream_scores.best_stream_rows(batches, vocabulary.words, vocabulary.eos_id, WORLDS)
    for direction in ("forward", "backward"):
        targets, weights = f"{direction}_targets", f"{direction}_weights"
        for number, batch in enumerate(batches):
            both = sum(scored_batches[name][number][weights] for name in WORLDS)
            known_targets = batch[targets] != vocabulary.unk_id
            if direction == "forward":
                np.testing.assert_array_equal(both, batch[weights] * known_targets)
            for name, world in WORLDS.items():
                mine = batch[targets][scored_batches[name][number][weights] > 0]
                assert {vocabulary.words[n] for n in mine} <= {*world.network.words, "<S>", "</S>", "<UNK>"}
    assert all(total < 0 and count > 100 for total, count in sums.values())


def test_whole_documents_of_pieces_have_the_probability_of_their_words(pieces):
    tokens = load_tokenizer(pieces / "tokenizer").tokens
    documents = next_scores.read_documents(pieces, tokens, WORLDS)
    batches = list(eval_batches(pieces, PieceExamples(256, "documents", 0.0, masking=Masking(kind="next")), 8))
    sums, scored_batches = next_scores.select_documents(batches, documents, list(WORLDS))
    for name, world in WORLDS.items():
        texts = []
        for batch, part in zip(batches, scored_batches[name]):
            for row in np.flatnonzero(part["mlm_weights"].any(axis=1)).tolist():
                ids = batch["tokens"][row][batch["segments"][row] == 1]
                assert part["mlm_weights"][row].sum() == len(ids) - 1  # each piece, and the end
                texts.append(" ".join(next_scores.join_pieces([tokens[n] for n in ids[1:-1]])))
        assert len(texts) > 5
        expected = sum(log_probs.sum() for log_probs in word_log_probabilities(world, texts, "document")) - len(
            texts
        ) * np.log(2)
        assert sums[name][0] == pytest.approx(expected)
        assert sums[name][1] == sum(part["mlm_weights"].sum() for part in scored_batches[name])


def test_documents_that_were_split_are_left_out(pieces):
    documents = next_scores.read_documents(pieces, load_tokenizer(pieces / "tokenizer").tokens, WORLDS)
    batches = list(eval_batches(pieces, PieceExamples(16, "documents", 0.0, masking=Masking(kind="next")), 8))
    sums, _ = next_scores.select_documents(batches, documents, list(WORLDS))
    # A few documents have one short sentence.
    assert sum(count for _, count in sums.values()) < 0.3 * sum(batch["mlm_weights"].sum() for batch in batches)


def table(benchmark, folder, capsys):
    flags.FLAGS.run = str(folder)
    benchmark.main()
    return capsys.readouterr().out.splitlines()


@pytest.mark.long
def test_bert_beside_the_best(benchmark, pieces, capsys):
    tokenizer = load_tokenizer(pieces / "tokenizer")
    model = BertConfig(vocab_size=tokenizer.vocab_size, **TINY, max_positions=128)
    params = init_params(FAMILY, model, jax.random.key(0), ("mlm", "nsp"))
    fields = {**PIECES, **TOY, "family": "bert", "length": 128, "objective": "nsp", "short_share": 0.1, "sequences": 4}
    write_run(pieces.parent, model, params, tokenizer, **fields)
    lines = table(benchmark, pieces.parent, capsys)
    rows = {line[:24].strip(): line[24:].split() for line in lines[2:6]}
    assert "step 3" in lines[0] and list(rows)[2:] == ["masked words", "next sentence"]
    model, best, expected, _, count = rows["masked words"]
    assert float(model) < 0.2 and 0.5 < float(best) < 0.8 and abs(float(best) - float(expected)) < 0.1
    assert int(count.replace(",", "")) > 100
    assert float(rows["next sentence"][1]) > 0.9 and "mlm_accuracy" in lines[-1]


@pytest.mark.long
def test_elmo_beside_the_best(benchmark, words, capsys):
    vocabulary = WordVocabulary.load(words / "tokenizer")
    model = ElmoConfig.preset("toy", vocab_size=len(vocabulary), cell_size=8, projection_size=4, filters=((1, 4),))
    params = init_elmo_params(model, jax.random.key(0), lm=True)
    fields = {**TOY, **STREAMS}
    write_run(words.parent, model, params, vocabulary, **fields)
    lines = table(benchmark, words.parent, capsys)
    rows = {line.split()[0]: [float(figure.replace(",", "")) for figure in line.split()[1:]] for line in lines[2:]}
    assert set(rows) == {"en", "ko", "all"}
    forward, backward, mean, true, ratio, count = rows["all"]
    # A model that knows nothing finds all words alike; the README's figures count a word in its document.
    assert mean == pytest.approx((forward + backward) / 2, abs=0.01) and mean > 300 and ratio > 30
    assert rows["en"][3] < true < rows["ko"][3] and 3 < true < 8
    assert count == rows["en"][5] + rows["ko"][5]


@pytest.mark.long
def test_a_smaller_world_has_a_best_of_its_own(benchmark, program, tmp_path, capsys):
    """Sentences are scored by their own world: another world does not know their probabilities."""
    size = {"topics": 4, "words": 2}
    corpus = toy_corpus(tmp_path / "toyworld", documents=60, tokenizer="words", vocab_size=8192, heldout=0.2, **size)
    vocabulary = WordVocabulary.load(corpus / "tokenizer")
    model = ElmoConfig.preset("toy", vocab_size=len(vocabulary), cell_size=8, projection_size=4, filters=((1, 4),))
    params = init_elmo_params(model, jax.random.key(0), lm=True)
    trues = []
    for world in ({}, size):
        shutil.copytree(corpus, tmp_path / str(len(world)) / "toyworld")
        fields = {**TOY, **STREAMS, "toyworld": {"language": "en", **world}}
        write_run(tmp_path / str(len(world)), model, params, vocabulary, **fields)
        lines = table(benchmark, tmp_path / str(len(world)), capsys)
        trues.append(float(lines[2].split()[4]))
    assert trues[1] < trues[0] < 2 * trues[1]
    runs = [str(tmp_path / "0"), str(tmp_path / "2")]
    assert [
        program("bert_elmo_jax.inference.toy_worlds").find_common_world(folders, "ko").topics
        for folders in ([], runs[:1], runs)
    ] == [24, 24, 4]


def test_other_runs_are_refused(benchmark, tmp_path, capsys):
    with pytest.raises(ValueError, match=r"is not a run directory"):
        table(benchmark, tmp_path, capsys)
    (tmp_path / "run.json").write_text(json.dumps({**TOY, "data": "corpora/novels"}))
    with pytest.raises(ValueError, match="corpora/novels"):
        table(benchmark, tmp_path, capsys)
