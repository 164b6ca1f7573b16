"""Examples of `bert_elmo_jax.weights.protobuf`."""

from bert_elmo_jax.weights.protobuf import read_varint


def test_example_of_read_varint():
    assert read_varint(bytes([0xAC, 0x02]), 0) == (300, 2)
