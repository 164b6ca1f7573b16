"""Shapes to pad rows of mixed lengths to: few, so that little is compiled, and close, so that little is padded."""

WIDTHS = (16, 32, 64, 96, 128, 192, 256, 384, 512)


def width_for(length: int, limit: int) -> int:
    """Return the width that rows of this length are padded to.

    >>> [width_for(length, 512) for length in (3, 16, 17, 300)], width_for(100, 100), width_for(600, 1024)
    ([16, 16, 32, 384], 100, 1024)
    """
    return min(next((width for width in WIDTHS if width >= length), limit), limit)


def height_for(rows: int, batch_size: int) -> int:
    """Return the number of rows a batch is padded to: a power of two, at most the batch size.

    >>> [height_for(rows, 32) for rows in (1, 3, 17, 32)]
    [1, 4, 32, 32]
    """
    return min(batch_size, 1 << (rows - 1).bit_length())
