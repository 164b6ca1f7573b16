"""RoBERTa's padding: on the left, and none in packed rows."""

import numpy as np
import pytest

from bert_elmo_jax import load

from ..close_outputs import assert_close


@pytest.fixture(scope="module")
def golden(goldens):
    folder = goldens / "roberta_tiny"
    return load(folder), np.load(folder / "inputs.npz"), np.load(folder / "outputs.npz")


def test_padded_on_the_left_the_numbers_are_the_same(golden):
    model, inputs, outputs = golden
    shifts = 40 - inputs["attention_mask"].sum(1)
    ids, mask, logits = (
        np.stack([np.roll(row, shift, axis=0) for row, shift in zip(array, shifts)])
        for array in (inputs["input_ids"], inputs["attention_mask"], outputs["logits"])
    )
    assert mask[:, 0].sum() == 1  # three rows begin with padding
    assert_close(model.forward(ids, mask=mask).logits, logits, mask == 1)


def test_packed_texts_have_the_vectors_of_padded_ones(golden):
    model, *_ = golden
    texts = ["The sea", ("a ship", "the harbour at night"), "배를 타고", ["two", "words"], "x"]
    packed = model.encode(texts)
    assert packed.last.shape[0] == 5 and model.work.positions < 5 * packed.last.shape[1]  # texts share rows
    tokens, mask = np.full((5, 40), model.tokenizer.pad_id), np.zeros((5, 40), int)
    for n, encoding in enumerate(packed.texts):
        tokens[n, : len(encoding)], mask[n, : len(encoding)] = encoding.ids, 1
    padded = np.asarray(model.forward(tokens, mask=mask).last)
    for n, encoding in enumerate(packed.texts):
        np.testing.assert_allclose(packed.last[n, : len(encoding)], padded[n, : len(encoding)], atol=2e-5)
