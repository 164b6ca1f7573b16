"""Snappy's raw block format, which compressed checkpoint tables use."""

from bert_elmo_jax.weights.protobuf import read_varint


def decompress(data: bytes) -> bytes:
    """Return the decompressed content of a snappy block.

    The low two bits of a tag byte select a literal or a copy of earlier output, and the width of the copy's distance.
    """
    size, at = read_varint(data, 0)
    output = bytearray()
    while at < len(data) and len(output) <= size:
        tag = data[at]
        kind, width = tag & 3, (0, 1, 2, 4)[tag & 3]
        length = (tag >> 2) + 1
        if kind == 0 and length > 60:
            width = length - 60
        number = int.from_bytes(data[at + 1 : at + 1 + width], "little")
        at += 1 + width
        if at > len(data):
            raise ValueError("the compressed block ends early")
        if kind == 0:
            length = number + 1 if width else length
            if at + length > len(data):
                raise ValueError("a literal of the compressed block reaches past its end")
            output += data[at : at + length]
            at += length
            continue
        if kind == 1:
            length, number = 4 + (tag >> 2 & 7), (tag & 0xE0) << 3 | number
        if not 0 < number <= len(output):
            raise ValueError("a copy of the compressed block reaches before its start")
        pattern = bytes(output[-number:][:length])  # a copy that overlaps its own output repeats
        output += (pattern * (length // len(pattern) + 1))[:length]
    if len(output) != size:
        raise ValueError(f"the compressed block holds {len(output)} bytes, but announces {size}")
    return bytes(output)
