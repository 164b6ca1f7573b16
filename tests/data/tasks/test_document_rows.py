"""Documents as rows of ids in parts: few shapes, padding, labels."""

import numpy as np
import pytest

from bert_elmo_jax.data.tasks.document_rows import collate_documents, make_document_rows, shape_parts
from bert_elmo_jax.data.tasks.examples import TextExample


def read(text):
    return np.array([len(word) for word in text.split()], np.int32)


def examples_of(*texts):
    return [TextExample(text, None, "ab"[n % 2], None, "train.csv", n) for n, text in enumerate(texts)]


def test_shapes_fit_and_are_few():
    shapes = {shape_parts(length, 70) for length in range(1, 20_000)}
    for length in range(1, 20_000, 7):
        parts, width = shape_parts(length, 70)
        assert length <= parts * width < max(1.5 * length + 140, 9)
    assert len(shapes) < 40
    assert all(width <= 70 and (parts == 1 or width == 70) for parts, width in shapes)


@pytest.mark.parametrize("part", [2, 3, 50])
def test_a_batch(part):
    rows = make_document_rows(examples_of("a bb ccc", "dddd", "e ff ggg hhhh iiiii"), read, ["a", "b"])
    batch = collate_documents(rows, 4, part)
    words = batch["words"].reshape(4, -1)
    assert batch["words"].shape[2] <= part
    assert words[0, :3].tolist() == [1, 2, 3] and words[2, :5].tolist() == [1, 2, 3, 4, 5]
    assert not words[3].any() and not words[1, 1:].any()
    assert batch["lengths"].tolist() == [3, 1, 5, 0]
    assert batch["labels"].tolist() == [0, 1, 0, 0] and batch["weights"].tolist() == [1, 1, 1, 0]
    assert set(collate_documents(rows, 4, part, targets=False)) == {"words", "lengths"}


def test_fingerprints_tell_ids_and_labels():
    one, same, other, label = (
        make_document_rows(examples_of(text), read, labels)[0].content()
        for text, labels in (("a b", "ab"), ("a b", "ab"), ("a bb", "ab"), ("a b", "ba"))
    )
    assert one == same and len({one, other, label}) == 3
