"""Examples of `bert_elmo_jax.families.bert.huggingface`."""

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.huggingface import bert_shapes


def test_example_of_bert_shapes():
    assert bert_shapes(BertConfig.preset("tiny"), {"classify": 3})["classify/bias"] == (3,)
