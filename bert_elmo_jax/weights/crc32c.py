"""CRC-32C (Castagnoli), the checksum of TensorFlow's checkpoints, vectorised with numpy.

A CRC register is linear over GF(2): running it over n zero bytes multiplies it by a fixed 32 × 32 bit matrix. The
bytes are arranged in rows of `lanes` words. All lanes step through the rows together and are combined at the end.
"""

from functools import lru_cache

import numpy as np
from jaxtyping import UInt8, UInt32

POLYNOMIAL = 0x82F63B78  # reflected
Register = UInt32[np.ndarray, " lanes"]


def _apply(tables: UInt32[np.ndarray, "2 65536"], register: Register) -> Register:
    return tables[0].take(register & 0xFFFF) ^ tables[1].take(register >> 16)


@lru_cache(maxsize=32)
def _skip(log2_words: int) -> UInt32[np.ndarray, "2 65536"]:
    """Return the effect of 2**log2_words zero words on a register: a table for its low and one for its high 16 bits."""
    if log2_words:
        half = _skip(log2_words - 1)
        columns = _apply(half, _apply(half, np.uint32(1) << np.arange(32, dtype=np.uint32)))
    else:
        columns = np.uint32(1) << np.arange(32, dtype=np.uint32)
        for _ in range(32):
            columns = (columns >> 1) ^ np.where(columns & 1, np.uint32(POLYNOMIAL), np.uint32(0))
    tables = np.zeros((2, 65536), np.uint32)
    for bit in range(16):
        for table, column in zip(tables, (columns[bit], columns[16 + bit])):
            table[1 << bit : 2 << bit] = table[: 1 << bit] ^ column
    return tables


def crc32c(data: UInt8[np.ndarray, " bytes"]) -> int:
    """Return the CRC-32C of an array of bytes, at about 1 GB/s."""
    if len(data) < 4:  # too short to absorb the initial register
        short = 0xFFFFFFFF
        for byte in data.tolist():
            short ^= byte
            for _ in range(8):
                short = (short >> 1) ^ (POLYNOMIAL if short & 1 else 0)
        return short ^ 0xFFFFFFFF
    log2_lanes = min((len(data) // 4).bit_length() // 2, 14)  # 2**14 lanes of 4 bytes fit in the cache
    lanes = 1 << log2_lanes
    # The bytes that do not fill a row come first, padded in front to two rows: leading zeros leave a zero register
    # unchanged. There are at least four of them, which absorb the initial register of ones.
    head = 4 + (len(data) - 4) % (4 * lanes)
    first = np.zeros(8 * lanes, np.uint8)
    first[-head:] = data[:head]
    first[-head:][:4] ^= 0xFF
    step = _skip(log2_lanes)
    register = np.zeros(lanes, np.uint32)
    for rows in (first, data[head:]):
        for row in rows.view("<u4").reshape(-1, lanes):
            register = _apply(step, register) ^ row
    for fold in reversed(range(log2_lanes)):
        register = _apply(_skip(fold), register[: 1 << fold]) ^ register[1 << fold :]
    return int(_apply(_skip(0), register)[0]) ^ 0xFFFFFFFF


def unmask(masked: int) -> int:
    """Undo the rotation that LevelDB and TensorFlow apply to stored CRCs."""
    rotated = (masked - 0xA282EAD8) & 0xFFFFFFFF
    return (rotated >> 17 | rotated << 15) & 0xFFFFFFFF
