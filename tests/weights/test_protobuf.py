"""Fields of protocol buffers."""

from bert_elmo_jax.weights.protobuf import fields, read_varint


def test_fields_are_numbers_and_bytes():
    assert read_varint(bytes([0xAC, 0x02]), 0) == (300, 2)
    assert list(fields(bytes([0x08, 0x96, 0x01, 0x12, 0x02]) + b"hi")) == [(1, 150), (2, b"hi")]
