"""Attention over an example of a task: the pieces that were read, and shares of each layer that add up."""

import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.data.tasks import TextExample
from bert_elmo_jax.runs.task_report import SHOWN, attention_maps, draw_attention

from .test_task_model import write


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return load(write(tmp_path_factory.mktemp("runs") / "sst2", "sst2", labels=("노잼", "재미")))


def test_shares_of_the_pieces_that_were_read(model, tmp_path_factory):
    names, maps = attention_maps(model, "강가에 배가 있다")
    assert names[0] == "[CLS]" and names[-1] == "[SEP]" and "배가" in names
    assert maps.shape == (model.config.num_layers, len(names), len(names))
    np.testing.assert_allclose(maps.sum(axis=-1), 1, rtol=1e-5)
    heads = model.forward(np.array([model.tokenizer.encode("강가에 배가 있다").ids])).attentions
    np.testing.assert_allclose(maps, np.asarray(heads)[:, 0].mean(axis=1), rtol=1e-5, atol=1e-7)
    # An example of a file is the same.
    example = TextExample("강가에 배가 있다", None, "재미", None, "dev.tsv", 2)
    again = attention_maps(model, example)
    assert again[0] == names
    np.testing.assert_array_equal(again[1], maps)
    assert "배가" in draw_attention(model, example)
    # Of a long text, the report shows the beginning.
    assert f"The first {SHOWN} of 30 pieces." in draw_attention(model, "the ship " * 14)
    assert attention_maps(model, "the ship " * 14)[1].shape[1:] == (30, 30)


def test_models_and_inputs_without_maps_are_refused(model, tmp_path):
    run = write(tmp_path, "sst2", labels=("노잼", "재미"))
    with pytest.raises(ValueError, match='fused attention, which keeps no maps: load it with attention="refer'):
        attention_maps(load(run, attention="fused"), "배")
    with pytest.raises(ValueError, match="input 0 is"):
        attention_maps(model, ("두 개의", "글"))
