"""The few shapes that rows of mixed lengths are padded to, so that compilation happens a handful of times."""

# Few enough that compilation is a handful, close enough that little is padded: sorted rows rarely waste a fifth.
WIDTHS = (16, 32, 64, 96, 128, 192, 256, 384, 512)


def width_for(length: int, limit: int) -> int:
    """The width that rows of this length are padded to.

    >>> [width_for(length, 512) for length in (3, 16, 17, 300)], width_for(100, 100), width_for(600, 1024)
    ([16, 16, 32, 384], 100, 1024)
    """
    return min(next((width for width in WIDTHS if width >= length), limit), limit)


def height_for(rows: int, batch_size: int) -> int:
    """The number of rows a batch is filled up to: the batch size, or for the last one a power of two.

    >>> [height_for(rows, 32) for rows in (1, 3, 17, 32)]
    [1, 4, 32, 32]
    """
    return min(batch_size, 1 << (rows - 1).bit_length())
