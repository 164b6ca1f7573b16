"""Examples of `bert_elmo_jax.families.family`."""

from bert_elmo_jax.families.family import check_choices, encoder_depth


def test_example_of_encoder_depth():
    assert [encoder_depth(path) for path in ("embeddings/word", "layer_3/attention/key/bias", "pooler/bias")] == [
        0,
        4,
        None,
    ]


def test_example_of_check_choices():
    from bert_elmo_jax.families.bert.config import BertConfig

    assert check_choices(BertConfig(attention="causal")) is None
