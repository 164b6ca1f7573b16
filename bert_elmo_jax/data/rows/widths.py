"""Shapes to pad rows of mixed lengths to: few, so that little is compiled, and close, so that little is padded."""

import math

import numpy as np
from jaxtyping import Int64

Shapes = dict[str, tuple[tuple[int, ...], type[np.generic]]]
WIDTHS = (16, 32, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096, 8192)


def width_for(length: int, limit: int) -> int:
    """Return the width that rows of this length are padded to.

    >>> [width_for(length, 512) for length in (3, 17, 300)], width_for(100, 100)
    ([16, 32, 384], 100)
    """
    return min(next((width for width in WIDTHS if width >= length), limit), limit)


def round_up(number: int, unit: int) -> int:
    """Return the next multiple of `unit`.

    >>> round_up(66, 8)
    72
    """
    return math.ceil(number / unit) * unit


def height_for(rows: int, batch_size: int) -> int:
    """Return the number of rows a batch is padded to: a power of two, at most the batch size.

    >>> [height_for(rows, 32) for rows in (1, 3, 17, 32)]
    [1, 4, 32, 32]
    """
    return min(batch_size, 1 << (rows - 1).bit_length())


def enumerate_runs(lengths: Int64[np.ndarray, "runs"]) -> tuple[Int64[np.ndarray, "N"], Int64[np.ndarray, "N"]]:
    """Return the run of each element, and its place in the run, of runs of these lengths laid end to end."""
    run = np.repeat(np.arange(len(lengths)), lengths)
    return run, np.arange(len(run)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
