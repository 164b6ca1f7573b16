"""GPT-1 and GPT-2 from a folder: limits, and causality."""

import numpy as np
import pytest

from bert_elmo_jax import load

# No strict dtypes: the model is loaded as users load it.


def test_a_text_longer_than_the_model(goldens):
    model = load(goldens / "gpt_tiny")
    with pytest.raises(ValueError, match="rows of 41 tokens were given to a model with 40 positions"):
        model.forward(tokens=np.zeros((1, 41), np.int32))


def test_a_folder_without_a_tokenizer_takes_ids_only(goldens):
    model = load(goldens / "gpt_tiny")
    with pytest.raises(ValueError, match=r"has no tokenizer.*forward\(\) takes ids"):
        model.encode(["a"])


@pytest.mark.parametrize("name", ["gpt_tiny", "gpt2_tiny"])
def test_a_piece_sees_none_after_it(goldens, name):
    model = load(goldens / name)
    tokens = np.arange(24, dtype=np.int32).reshape(2, 12)
    changed = tokens.copy()
    changed[:, 7:] += 30
    ours, theirs = (np.asarray(model.forward(tokens=ids).logits) for ids in (tokens, changed))
    np.testing.assert_array_equal(ours[:, :7], theirs[:, :7])
    assert np.abs(ours[:, 7:] - theirs[:, 7:]).max() > 0.1
