"""Answers of released readers that transformers' pipeline would give; the goldens are in test_released_heads.py."""

import numpy as np
import pytest

from bert_elmo_jax.data.tasks import Question, Window
from bert_elmo_jax.data.tasks.pipeline_answers import find_pipeline_answers


@pytest.mark.parametrize(("framed", "share"), [(True, 0.5), (False, 1.0)])
def test_the_first_piece_has_a_share_only_if_it_is_a_special_one(framed, share):
    spans = np.array([[-1, -1], [-1, -1], [0, 3]], np.int32)
    ids = np.arange(3, dtype=np.int32)
    window = Window(0, ids, ids, spans, spans[:, 0] >= 0, 0, 0, np.array([-1, -1, 0], np.int32), framed)
    scores, question = np.zeros(3, np.float32), Question("q", "where ?", "sea", (), "dev.json", 1)
    [answer] = find_pipeline_answers([question], [window], [scores], [scores], top_k=2, no_answer=True)
    assert [(one.text, one.probability) for one in answer.candidates] == [
        ("sea", pytest.approx(share**2)), ("", pytest.approx((1 - share) ** 2)),
    ]  # fmt: skip
