"""A minimal reader of protocol buffers: variable-length integers and the fields of a message."""

from collections.abc import Iterator
from typing import Any


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the variable-length integer at an offset of `data`, and the offset after it."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise ValueError("it ends inside a number")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("it holds a number of more than 64 bits")


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the fields of a message in order, as (number, integer) or (number, bytes of a text or nested message)."""
    at = 0
    while at < len(message):
        tag, at = read_varint(message, at)
        kind = tag & 7
        if kind == 0:
            value, at = read_varint(message, at)
            yield tag >> 3, value
            continue
        if kind == 2:
            size, at = read_varint(message, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"it holds a protocol buffer field of the unknown kind {kind}")
        if at + size > len(message):
            raise ValueError("a field reaches past the end of its message")
        content = message[at : at + size]
        at += size
        yield tag >> 3, content if kind == 2 else int.from_bytes(content, "little")
