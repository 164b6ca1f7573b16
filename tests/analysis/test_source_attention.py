"""Attention from a translation to its source, between words and as pictures."""

import re

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.analysis.source_attention import (
    SourceAttention,
    attention_to_source,
    draw_source_attention,
    write_source_attention,
)
from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.families.transformer.config import TransformerConfig
from bert_elmo_jax.families.transformer.translator import Translator
from bert_elmo_jax.text import load_tokenizer


@pytest.fixture(scope="module")
def model(goldens):
    tokenizer = load_tokenizer(goldens / "tokenizers" / "marian")
    config = TransformerConfig(
        tokenizer.vocab_size, 16, 2, 4, 24, 40, pad_id=tokenizer.pad_id,
        start_id=tokenizer.cls_id, end_ids=(tokenizer.sep_id,),
    )  # fmt: skip
    params = init_params(get_family("transformer"), config, jax.random.key(0), ("decoder",), pooler=False)
    return Translator(config, jax.tree.map(lambda x: 3 * x, params), tokenizer, "toy")


def test_pieces_are_joined_to_words(model):
    source, target = "the bank of the river", "강을 건너서"
    attention = attention_to_source(model, source, target)
    assert attention.source == ("the", "bank", "of", "the", "river", "</s>") and attention.maps.shape == (2, 4, 3, 6)
    assert attention.target == ("강을", "건너서", "</s>")
    np.testing.assert_allclose(attention.maps.sum(-1), 1, rtol=1e-5)
    read, written = model.tokenizer.encode(source), model.tokenizer.encode_target(target, specials=False)
    assert len(written) > 2
    target_ids = [model.config.start_id, *written.ids.tolist()]
    pieces = np.asarray(model.forward(source=read.ids[None], target=[target_ids]).cross_attentions)[:, 0]
    first, river = written.word_ids == 0, read.word_ids == 4
    expected = pieces[:, :, : len(written)][:, :, first].mean(2)[..., river].sum(-1)
    np.testing.assert_allclose(attention.maps[:, :, 0, 4], expected, rtol=1e-5)
    np.testing.assert_allclose(attention.maps[:, :, 2, 5], pieces[:, :, -1, -1], rtol=1e-5)


def test_without_a_target_the_model_translates(model):
    attention = attention_to_source(model, "the river")
    best = model.best_translations(["the river"])[0]
    starts = model.tokenizer.word_starts[[number for number in best.ids if number != model.config.end_ids[0]]]
    starts[0] = True
    assert len(attention.target) == starts.sum() + best.finished and (attention.target[-1] == "</s>") == best.finished
    assert model.translate(["the river"]) == [best.text]


def test_pictures(model, tmp_path):
    attention = SourceAttention(("a", "b"), ("가",), np.array([[[[0.25, 0.75]], [[0.75, 0.25]]]]))
    [mean] = draw_source_attention(attention)
    assert (mean.rows, mean.columns) == (("가",), ("a", "b")) and mean.values.tolist() == [[0.5, 0.5]]
    first, second = draw_source_attention(attention, [-1], [1, 0])
    assert first.title == "layer 1, head 1" and second.values.tolist() == [[0.25, 0.75]]
    page = write_source_attention(tmp_path / "page.html", model, [("the river", "강을"), ("the bank", None)])
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") == 4 and "강을" in text and re.search(r"<h2>the bank</h2>", text)
    assert repr(attention_to_source(model, "the river", "강을")).startswith("SourceAttention(2 layers, 4 heads, 2")


def test_wrong_numbers_and_a_model_that_does_not_translate(goldens):
    single = SourceAttention(("a",), ("b",), np.ones((1, 2, 1, 1)))
    for layers, heads, message in (
        ([0], None, "layer 0 is the embeddings"),
        ([2], None, "there is no layer 2"),
        (None, [2], "there is no head 2"),
    ):
        with pytest.raises(ValueError, match=message):
            draw_source_attention(single, layers, heads)
    with pytest.raises(ValueError, match="does not translate"):
        attention_to_source(load(goldens / "bert_tiny"), "the river")
