"""`.npy` files that grow while they are written."""

import os
from pathlib import Path

import numpy as np

HEADER = 128  # bytes, for arrays of any length; the format requires a multiple of 64


class NpyAppender:
    """A one-dimensional `.npy` file that is written piece by piece; closing it completes the header.

    It is not memory-mapped: a full disk then raises an error that can be caught, instead of a signal.
    """

    def __init__(self, path: Path, dtype: np.dtype):
        self.dtype, self.length = dtype.newbyteorder("<"), 0
        self._file = open(path, "wb")  # noqa: SIM115 -- closed by close()
        self._file.write(b"\0" * HEADER)  # np.load raises on this until close() has written the header

    def append(self, values: np.ndarray) -> None:
        """Append values, which must fit the file's type."""
        self._file.write(np.ascontiguousarray(values, self.dtype).tobytes())
        self.length += len(values)

    def close(self) -> None:
        """Write the header and flush everything to disk."""
        facts = f"{{'descr': '{self.dtype.str}', 'fortran_order': False, 'shape': ({self.length},), }}"
        self._file.seek(0)
        self._file.write(b"\x93NUMPY\x01\x00" + (HEADER - 10).to_bytes(2, "little"))
        self._file.write(facts.ljust(HEADER - 11).encode("latin1") + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def __enter__(self) -> "NpyAppender":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._file.close()
