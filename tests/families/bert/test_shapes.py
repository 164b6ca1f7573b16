"""The shapes of BERT's parameters, and their names in both formats."""

from bert_elmo_jax.families.bert import google
from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.formats import WEIGHTS


def test_example_of_bert_shapes():
    assert WEIGHTS.shapes(BertConfig.preset("tiny"), {"classify": 3})["classify/bias"] == (3,)


def test_names_in_both_formats():
    path = "encoder/layer_11/attention/output/kernel"
    assert WEIGHTS.names(12)[path] == "encoder.layer.11.attention.output.dense.weight"
    table = google.names(12)
    assert table[path] == "encoder/layer_11/attention/output/dense/kernel"
    assert table["encoder/embeddings/type"] == "embeddings/token_type_embeddings"
    assert table["encoder/layer_0/attention/norm/scale"] == "encoder/layer_0/attention/output/LayerNorm/gamma"
    assert table["mlm/norm/bias"] == "cls/predictions/transform/LayerNorm/beta"
    assert (table["mlm/bias"], table["span/bias"]) == ("cls/predictions/output_bias", "cls/squad/output_bias")
    assert (table["nsp/kernel"], table["classify/bias"]) == ("cls/seq_relationship/output_weights", "output_bias")
