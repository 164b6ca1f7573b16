"""Shapes to pad rows of mixed lengths to: few, so that little is compiled, and close, so that little is padded."""

WIDTHS = (16, 32, 64, 96, 128, 192, 256, 384, 512)


def width_for(length: int, limit: int) -> int:
    """Return the width that rows of this length are padded to."""
    return min(next((width for width in WIDTHS if width >= length), limit), limit)


def height_for(rows: int, batch_size: int) -> int:
    """Return the number of rows a batch is padded to: a power of two, at most the batch size."""
    return min(batch_size, 1 << (rows - 1).bit_length())
