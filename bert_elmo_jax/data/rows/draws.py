"""Random numbers by position: the n-th draw under a key can be computed without the draws before it."""

import hashlib

import numpy as np
from jaxtyping import Float64

# The last element of a key is its purpose, so that no two purposes share random numbers.
ORDER, CONTENT, MASKS, CORPORA, SIZES, DAMAGE = range(6)
BLOCK = 4  # numbers that Philox generates per step of its counter


def generator(*key: int) -> np.random.Generator:
    """Return a random generator that depends only on the key."""
    return np.random.Generator(np.random.Philox(key=_number(key)))


def uniforms(key: tuple[int, ...], first: int, rows: int, width: int) -> Float64[np.ndarray, "rows {width}"]:
    """Return rows `first` to `first + rows` of the key's infinite table of uniform numbers in [0, 1)."""
    padded = -(-width // BLOCK) * BLOCK
    philox = np.random.Philox(key=_number(key), counter=first * (padded // BLOCK))
    return np.random.Generator(philox).random((rows, padded))[:, :width]


def _number(key: tuple[int, ...]) -> int:
    """Return a key as a 128-bit number; numpy's SeedSequence does not distinguish (1,) from (1, 0)."""
    text = ",".join(str(int(k)) for k in key)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "little")
