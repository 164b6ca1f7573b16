"""Examples of `bert_elmo_jax.data.tasks.labels`."""

import re

import pytest

from bert_elmo_jax.data.tasks.examples import TaggedSentence
from bert_elmo_jax.data.tasks.files import BadRow
from bert_elmo_jax.data.tasks.labels import check_tags


def test_example_of_check_tags():
    with pytest.raises(
        BadRow,
        match=re.escape(
            "train.conll:3: the tag 'LOC', expected O, or B-, I-, E- or S- and a type; "
            "correct it, give the column of the tags, or read other tags with entities=False"
        ),
    ):
        check_tags(TaggedSentence(("서울",), ("LOC",), "train.conll", (3,), 0))
