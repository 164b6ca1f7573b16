"""Snappy blocks from a writer in this file, valid and broken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.weights.sorted_table import decompress

from .conftest import varint


def literal(data: bytes) -> bytes:
    size = len(data) - 1
    if size < 60:
        return bytes([size << 2]) + data
    width = 1 if size < 256 else 2
    return bytes([59 + width << 2]) + size.to_bytes(width, "little") + data


def copy(distance: int, length: int) -> bytes:
    if 4 <= length < 12 and distance < 2048:
        return bytes([distance >> 8 << 5 | length - 4 << 2 | 1, distance & 0xFF])
    if distance < 1 << 16:
        return bytes([length - 1 << 2 | 2]) + distance.to_bytes(2, "little")
    return bytes([length - 1 << 2 | 3]) + distance.to_bytes(4, "little")


def compress(data: bytes) -> bytes:
    """Compress greedily with copies of all earlier bytes, including overlapping ones."""
    out, at = varint(len(data)), 0
    while at < len(data):
        best = (0, 0)
        for start in range(at):
            length = 0
            while at + length < len(data) and length < 64 and data[start + length] == data[at + length]:
                length += 1
            best = max(best, (length, at - start))
        if best[0] >= 4:
            out += copy(best[1], best[0])
            at += best[0]
        else:
            out += literal(data[at : at + 1])
            at += 1
    return out


@given(st.binary(max_size=30) | st.text("ab", max_size=200).map(str.encode))
def test_round_trip(data):
    assert decompress(compress(data)) == data


def test_literals_of_every_width_and_a_far_copy():
    for size in (1, 60, 61, 256, 257, 65536):
        data = bytes(i % 251 for i in range(size))
        assert decompress(varint(size) + literal(data)) == data
    data = bytes(range(256)) * 300
    block = varint(len(data) + 64) + literal(data[:65536]) + literal(data[65536:]) + copy(70000, 64)
    assert decompress(block) == data + data[len(data) - 70000 :][:64]


def test_broken_blocks():
    for block, message in (
        (b"", "ends inside a number"),
        (varint(5) + b"\x10ab", "reaches past its end"),
        (varint(8) + literal(b"ab") + copy(3, 6), "before its start"),
        (varint(8) + literal(b"ab") + copy(0, 6), "before its start"),
        (varint(9) + literal(b"ab"), "holds 2 bytes, but announces 9"),
        (varint(1) + literal(b"ab"), "announces 1"),
        (varint(8) + literal(b"ab") + b"\x01", "ends early"),
        (varint(8) + literal(b"ab") + b"\x02\x01", "ends early"),
    ):
        with pytest.raises(ValueError, match=message):
            decompress(block)
