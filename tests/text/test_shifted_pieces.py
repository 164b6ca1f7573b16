"""Tests of SentencePiece models with shifted ids; `test_tokenizer_file` compares them with transformers."""

import io
import json

import pytest
import sentencepiece

from bert_elmo_jax.text import load_tokenizer, train_sentencepiece
from bert_elmo_jax.text.shifted_pieces import spec_of_shifted_model
from bert_elmo_jax.text.tokenizer_folder import is_shifted, prefers_file


@pytest.fixture(scope="module")
def released_model(texts):
    """Return a model as released, with the trainer's own normalisation and special pieces."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=model, vocab_size=150, model_type="unigram", minloglevel=2
    )
    return model.getvalue()


def write(folder, model, **settings):
    folder.mkdir(exist_ok=True)
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    for name, content in settings.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def test_ids_are_those_of_the_model_shifted_by_one(released_model, texts, tmp_path):
    library = sentencepiece.SentencePieceProcessor(model_proto=released_model)
    folder = write(tmp_path / "a", released_model, tokenizer_config={"tokenizer_class": "XLMRobertaTokenizer"})
    tokenizer = load_tokenizer(folder)
    assert tokenizer.vocab_size == library.vocab_size() + 2
    for text in [*texts[:9], "Ｆｕｌｌ  ㎏ ½", "漢字 river"]:
        shifted_ids = [3 if number == 0 else number + 1 for number in library.encode(text)]
        assert tokenizer.encode(text).ids.tolist() == [0, *shifted_ids, 2], text
        assert tokenizer.encode_lines([text])[0].tolist() == shifted_ids
    text = "배를 타고  강을"
    assert tokenizer.decode(tokenizer.encode(text).ids) == tokenizer.normalize(text) == "배를 타고 강을"
    tokenizer.save(tmp_path / "b")
    assert load_tokenizer(tmp_path / "b").fingerprint == tokenizer.fingerprint


def test_folders_that_say_so_are_shifted(released_model, tmp_path):
    assert is_shifted(write(tmp_path / "a", released_model, config={"model_type": "xlm-roberta"}))
    other = write(tmp_path / "b", released_model, config={"model_type": "xlm-roberta"}, tokenizer_config={})
    assert is_shifted(other)
    (other / "tokenizer_config.json").write_text('{"tokenizer_class": "AlbertTokenizer"}')
    assert not is_shifted(other)
    assert not prefers_file(other)
    (other / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    assert not prefers_file(other), "there is no tokenizer.json"
    (other / "tokenizer.json").write_text("{}")
    assert prefers_file(other)


def test_invalid_models_raise(released_model):
    for content in (b"not a model", released_model[: len(released_model) // 2]):
        with pytest.raises(ValueError, match=r"x.model is not a SentencePiece model, or an incomplete one"):
            spec_of_shifted_model(content, "x.model")
    model = train_sentencepiece(["배를 타고"], 20, model="bpe").files()["sentencepiece.model"]
    with pytest.raises(ValueError, match=r"x.model is not a unigram model of 4 or more pieces"):
        spec_of_shifted_model(model, "x.model")
