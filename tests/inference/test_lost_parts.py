"""Loading, saving and converting keep all that decides a prediction, or refuse."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.heads import Classify
from bert_elmo_jax.heads.features import Features
from bert_elmo_jax.heads.sentence_head import Dense, SentenceHead, init_sentence_head
from bert_elmo_jax.inference import save
from bert_elmo_jax.inference.convert import convert

from ..conftest import GOLDENS

TEXTS = ["[MASK] [UNK]", "[UNK] [MASK] [MASK]"]


@pytest.fixture(scope="module")
def sentence_folder(tmp_path_factory):
    encoder = load(GOLDENS / "bert_tiny")
    encoder.sentence_head = SentenceHead(("cls",), (Dense(64, 8), "normalize"), 20)
    encoder.params["sentence"] = init_sentence_head(encoder.sentence_head, jax.random.key(0))
    folder = tmp_path_factory.mktemp("sentences") / "model"
    encoder.save_sentences(folder)
    return folder


def test_an_int8_model_takes_no_adapter(tmp_path):
    convert(str(GOLDENS / "bert_tiny"), tmp_path / "int8", dtype="int8")
    with pytest.raises(ValueError, match="an int8 model: load the model that it was made from"):
        load(tmp_path / "int8", adapter=GOLDENS / "peft_bert")


def test_a_classifier_on_a_sentence_model_classifies(sentence_folder, tmp_path):
    expected = load(GOLDENS / "bert_tiny", adapter=GOLDENS / "peft_bert").predict(TEXTS)
    convert(str(sentence_folder), tmp_path / "merged", adapter=str(GOLDENS / "peft_bert"))
    for model in (load(sentence_folder, adapter=GOLDENS / "peft_bert"), load(tmp_path / "merged")):
        for label, other in zip(model.predict(TEXTS), expected):
            assert label.label == other.label
            assert label.probability == pytest.approx(other.probability, abs=1e-6)


def test_an_own_loop_keeps_the_sentence_head(sentence_folder, tmp_path):
    encoder = load(sentence_folder)
    save(tmp_path / "mine", encoder, {"encoder": encoder.params["encoder"]})
    np.testing.assert_allclose(load(tmp_path / "mine").sentences(TEXTS), encoder.sentences(TEXTS), atol=1e-6)
    encoder.pooling_unread = "1_Pooling is missing"
    del encoder.sentence_head
    with pytest.raises(ValueError, match="the pooling of its vectors is not known"):
        save(tmp_path / "unread", encoder)


def test_a_head_that_reads_other_layers_is_converted_with_them(tmp_path):
    encoder = load(GOLDENS / "bert_tiny")
    features = Features((1,))
    head = Classify(2).init(jax.random.key(0), jnp.zeros((1, encoder.width)))["params"]
    params = {"encoder": encoder.params["encoder"], "classify": head}
    save(tmp_path / "run", encoder, params, labels=["bad", "good"], features=features)
    expected = [label.probability for label in load(tmp_path / "run").predict(TEXTS)]
    convert(str(tmp_path / "run"), tmp_path / "copy", to_format="run")
    assert [label.probability for label in load(tmp_path / "copy").predict(TEXTS)] == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"trained with config\.features.* use --to_format=run"):
        convert(str(tmp_path / "run"), tmp_path / "theirs")
    assert not (tmp_path / "theirs").exists()


@pytest.mark.long
def test_an_untrusted_checkpoint_of_a_run_is_read(tmp_path):
    convert(str(GOLDENS / "bert_tiny"), tmp_path / "run", to_format="run")
    loaded = load(tmp_path / "run" / "checkpoints" / "0", untrusted=True)
    assert loaded.heads == load(tmp_path / "run").heads
