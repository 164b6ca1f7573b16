"""LevelDB's sorted string table, the format of a TensorFlow checkpoint's index.

A file is a sequence of blocks and a footer of 48 bytes: the handles of two blocks (the second lists all the others) and
a magic number. Every block is followed by a compression byte and the masked CRC-32C of block and byte. In a block, a
key is stored as the length it shares with the previous key, and its remaining bytes.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bert_elmo_jax.files import read_bytes
from bert_elmo_jax.weights.crc32c import crc32c, unmask
from bert_elmo_jax.weights.protobuf import read_varint
from bert_elmo_jax.weights.stored import what_is

MAGIC = (0xDB4775248B80FB57).to_bytes(8, "little")
FOOTER = 48
MOST_BYTES = 1 << 24  # of all blocks, and of all keys with their values; the index of BERT-large has 200,000
LONGEST_KEY = 1 << 16  # far beyond any name; without a limit, shared prefixes could grow keys endlessly


def is_table(path: Path) -> bool:
    """Return whether a file ends like a sorted string table."""
    if not path.is_file() or path.stat().st_size < FOOTER:
        return False
    with path.open("rb") as file:
        file.seek(-len(MAGIC), 2)
        return file.read() == MAGIC


def _block(file: bytes, handle: bytes) -> bytes:
    """Return the block at a handle (offset and size), verified and decompressed."""
    offset, at = read_varint(handle, 0)
    size, _ = read_varint(handle, at)
    if offset + size + 5 > len(file) - FOOTER:
        raise ValueError(f"a block should end at byte {offset + size + 5}, but the file has {len(file)} bytes")
    content, compression = file[offset : offset + size], file[offset + size]
    stored = int.from_bytes(file[offset + size + 1 : offset + size + 5], "little")
    if crc32c(np.frombuffer(file, np.uint8, size + 1, offset)) != unmask(stored):
        raise ValueError(f"the checksum of the block at byte {offset} is wrong: the file is damaged")
    if compression == 0:
        return content
    if compression == 1:
        return decompress(content)
    raise ValueError(f"the block at byte {offset} has the unknown compression {compression} (known: 0 none, 1 snappy)")


def decompress(data: bytes) -> bytes:
    """Return the decompressed content of a block in Snappy's raw format.

    The low two bits of a tag byte select a literal or a copy of earlier output, and the width of the copy's distance.
    """
    size, at = read_varint(data, 0)
    if size > MOST_BYTES:
        raise ValueError(f"the compressed block announces {size:,} bytes, which no index of tensors has")
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
        from_byte = len(output) - number
        pattern = bytes(output[from_byte : from_byte + length])  # a copy that overlaps its own output repeats
        output += (pattern * (length // len(pattern) + 1))[:length]
    if len(output) != size:
        raise ValueError(f"the compressed block holds {len(output)} bytes, but announces {size}")
    return bytes(output)


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    restarts = int.from_bytes(block[-4:], "little")
    end = len(block) - 4 - 4 * restarts
    if len(block) < 4 or end < 0:
        raise ValueError("a block is shorter than its list of restarts")
    at, key = 0, b""
    while at < end:
        shared, at = read_varint(block, at)
        unshared, at = read_varint(block, at)
        length, at = read_varint(block, at)
        if shared > len(key) or at + unshared + length > end or shared + unshared > LONGEST_KEY:
            raise ValueError("an entry reaches past its block")
        key = key[:shared] + block[at : at + unshared]
        at += unshared
        yield key, block[at : at + length]
        at += length


def read_table(path: Path) -> dict[bytes, bytes]:
    """Return all keys and values of a sorted string table, verifying the checksum of every block."""
    file = read_bytes(path)
    if file[-len(MAGIC) :] != MAGIC or len(file) < FOOTER:
        raise ValueError(
            f"{path} is not the index of a TensorFlow checkpoint, or it is cut short: it does not end with the magic "
            f"number of a sorted string table. The file has {len(file)} bytes and is {what_is(path)}."
        )
    footer = file[-FOOTER:]
    try:
        _block(file, footer)  # the meta index, empty in checkpoints: only verified
        _, at = read_varint(footer, 0)
        _, at = read_varint(footer, at)
        index = _block(file, footer[at:])
        table, blocks, size = dict[bytes, bytes](), 0, 0
        for _, handle in _entries(index):
            block = _block(file, handle)
            blocks += len(block)
            for key, value in _entries(block):
                table[key] = value
                size += len(key) + len(value)
                if max(blocks, size) > MOST_BYTES:  # keys that share their beginnings, or blocks that overlap
                    raise ValueError(f"it holds more than {MOST_BYTES:,} bytes, which no index of tensors does")
        return table
    except ValueError as problem:
        raise ValueError(f"{path} is a damaged checkpoint index: {problem}.") from None
