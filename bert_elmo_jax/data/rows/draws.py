"""Random numbers by address: the n-th draw under a key is found without making those before it."""

import hashlib

import numpy as np
from jaxtyping import Float64

# What a key is for, so that no two uses share their numbers.
ORDER, CONTENT, MASKS, CORPORA = range(4)
BLOCK = 4  # numbers that Philox makes for each step of its counter


def generator(*key: int) -> np.random.Generator:
    """A generator that depends on the key alone.

    >>> generator(0, 5).random() == generator(0, 5).random()
    True
    """
    return np.random.Generator(np.random.Philox(key=_number(key)))


def uniforms(key: tuple[int, ...], first: int, rows: int, width: int) -> Float64[np.ndarray, "rows {width}"]:
    """Rows `first` to `first + rows` of an endless table of numbers from [0, 1) that the key names.

    >>> whole = uniforms((0, 5), 0, rows=10, width=6)
    >>> bool((whole[7:9] == uniforms((0, 5), 7, rows=2, width=6)).all())
    True
    """
    padded = -(-width // BLOCK) * BLOCK
    philox = np.random.Philox(key=_number(key), counter=first * (padded // BLOCK))
    return np.random.Generator(philox).random((rows, padded))[:, :width]


def _number(key: tuple[int, ...]) -> int:
    """A number of 128 bits for a key; numpy's own SeedSequence would take (1,) and (1, 0) for the same."""
    return int.from_bytes(
        hashlib.blake2b(",".join(str(int(k)) for k in key).encode(), digest_size=16).digest(), "little"
    )
