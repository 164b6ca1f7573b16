"""A whole run: stopped and resumed, loaded, started from fastai's weights, and refused vocabularies."""

import shutil

import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus
from bert_elmo_jax.inference.convert import convert
from bert_elmo_jax.runs.config_files import read_config
from bert_elmo_jax.runs.pretraining import pretrain
from bert_elmo_jax.text import WordVocabulary
from bert_elmo_jax.train.checkpoint import load_params
from bert_elmo_jax.train.metrics import read_metrics
from bert_elmo_jax.weights.parameter_tree import flatten

from .conftest import draw_tensors, save_tensors

SMALL = {"embedding_size": 8, "cell_size": 12}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return toy_corpus(tmp_path_factory.mktemp("corpus"), documents=60, tokenizer="words")


def config_of(corpus, steps=6, **changes):
    config, _ = read_config("experiments/configs/awd_lstm.py:toy")
    config.update({"data": str(corpus), "steps": steps, "batch_size": 8, "length": 8, "spread": 2, "eval_batches": 2})
    config.update({"log_every": 1, "eval_every": steps, "checkpoint_every": 2, "keep": 9, **changes})
    config.model.update(dict.fromkeys(("output_dropout", "weight_dropout", "embedding_dropout"), 0.2))
    config.model.update(SMALL)
    return config


@pytest.fixture(scope="module")
def run(corpus, tmp_path_factory):
    """An uninterrupted run."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert pretrain(config_of(corpus), folder) == 0
    return folder


@pytest.mark.long
def test_a_resumed_run_ends_as_if_left_alone(run, corpus, tmp_path):
    """The run resumes with its parameters, carried state and place in the text."""
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    for step in ("4", "6"):
        shutil.rmtree(copy / "checkpoints" / step)
    assert pretrain(config_of(corpus), copy) == 0
    (_, ours), (_, theirs) = load_params(copy), load_params(run)
    for name, value in flatten(theirs).items():
        np.testing.assert_array_equal(flatten(ours)[name], value, name)
    assert read_metrics(copy)[-1] == read_metrics(run)[-1]


@pytest.mark.long
def test_the_run_is_loaded_and_written_for_fastai(run, tmp_path):
    lm = load(run)
    assert lm.config.layer_sizes == (12, 8) and lm.encode([["ship", "배"]]).last.shape == (1, 2, 8)
    figure = read_metrics(run)[-1]["held_out/perplexity"]
    assert 1 < figure < 10 * lm.config.vocab_size
    convert(str(run), tmp_path / "fastai", to_format="fastai")
    again = load(tmp_path / "fastai")
    assert isinstance(again.vocabulary, WordVocabulary)
    np.testing.assert_allclose(again.encode(["ship"]).last, lm.encode(["ship"]).last, rtol=0, atol=1e-6)


@pytest.mark.long
def test_going_on_from_weights_of_fastai(corpus, tmp_path):
    """The weights keep their sizes, and their vocabulary must be the text's."""
    words = WordVocabulary.load(corpus / "tokenizer")
    start = save_tensors(tmp_path / "start", draw_tensors(len(words), 6, 10, 3))
    words.save(start)
    config = config_of(corpus, steps=2)
    config.optimizer.learning_rate = 1e-9
    assert pretrain(config, tmp_path / "run", init=str(start)) == 0
    before, after = load(start), load(tmp_path / "run")
    assert after.config.layer_sizes == (10, 10, 6)
    assert (after.config.weight_dropout, after.config.input_dropout) == (0.2, 0.0)
    np.testing.assert_allclose(after.forward(words=[[3, 4]]).logits, before.forward(words=[[3, 4]]).logits, atol=1e-4)


@pytest.mark.usefixtures("as_users_run")
def test_a_vocabulary_of_another_language_model(corpus, tmp_path):
    words = [f"w{n}" for n in range(20)]
    start = save_tensors(tmp_path / "start", draw_tensors(23, 6, 10, 2))
    WordVocabulary(["<S>", "</S>", "<UNK>", *words]).save(start)
    with pytest.raises(ValueError, match="the data was not prepared with the vocabulary of --init="):
        pretrain(config_of(corpus), tmp_path / "run", init=str(start))


@pytest.mark.long
@pytest.mark.parametrize(("kind", "direction"), [("sentencepiece", "forward"), ("wordpiece", "backward")])
def test_a_run_on_pieces(one_device, tmp_path, kind, direction):
    """A word has the vector of the piece that is read last; the mark comes before the pieces."""
    corpus = toy_corpus(tmp_path / "corpus", documents=40, tokenizer=kind, vocab_size=800, language="ko")
    config = config_of(corpus, steps=2)
    config.model.direction = direction
    assert pretrain(config, tmp_path / "run") == 0
    lm = load(tmp_path / "run")
    words = ["은행에서배를", "갔다", "\u200b"]  # the last has no piece
    pieces = lm.reads
    each = [pieces.encode_words([word], specials=False).ids.tolist() or [pieces.unk_id] for word in words]
    assert max(map(len, each)) > 1
    ids = [number for one in each for number in one]
    ends = np.cumsum([len(one) for one in each])
    if direction == "backward":
        ids, ends = ids[::-1], len(ids) - np.append(0, ends[:-1])
    mark = pieces.cls_id if direction == "forward" else pieces.sep_id
    expected = lm.forward(words=[[mark, *ids]]).last[0][ends]
    encoding = lm.encode([words, ["배"]])
    np.testing.assert_allclose(encoding.last[0], expected, rtol=0, atol=1e-6)
    batch = lm.word_batch([words, ["배"]], 2, 3)
    layers = lm.word_function()(lm.params["encoder"], batch, None)
    np.testing.assert_allclose(layers[-1, 0, :, :8], expected, rtol=0, atol=1e-6)
