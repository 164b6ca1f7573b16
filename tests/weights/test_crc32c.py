"""CRC-32C against published vectors and a bit-by-bit implementation."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.weights.crc32c import crc32c, unmask

from .conftest import masked, slow_crc32c


def test_published_vectors():
    """RFC 3720, B.4."""
    for data, crc in (
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
        (b"", 0),
    ):
        assert crc32c(np.frombuffer(data, np.uint8)) == crc


def test_every_short_length_and_every_row_boundary():
    rng = np.random.default_rng(0)
    for size in [*range(300), 4095, 4096, 4097, 16383, 16384, 16387, 70001]:
        data = rng.integers(0, 256, size, dtype=np.uint8)
        assert crc32c(data) == slow_crc32c(data.tobytes()), size


@given(st.binary(max_size=2000), st.integers(0, 2**32 - 1))
def test_any_bytes_and_the_mask_is_inverted(data, crc):
    assert crc32c(np.frombuffer(data, np.uint8)) == slow_crc32c(data)
    assert unmask(int.from_bytes(masked(crc), "little")) == crc
