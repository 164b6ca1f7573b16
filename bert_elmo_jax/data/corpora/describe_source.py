"""The size and the fingerprint of an input."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from bert_elmo_jax.data.arrow_files import arrow_files
from bert_elmo_jax.data.corpora.reading import Source

SAMPLE, SAMPLES = 1 << 16, 64  # bytes of a block, and blocks, of which the fingerprint of a large file is made


def describe(path: str, plain: str) -> Source:
    """Return a source with its size and a fingerprint: of 64 blocks of it, or of a file up to 4 MB as a whole."""
    if Path(plain).is_dir():
        # Not all files of the folder: `datasets` keeps what it has computed beside them.
        parts = [describe(str(file), str(file)) for file in sorted(arrow_files(plain))]
        texts = ["".join(part.sample for part in parts), "".join(part.earlier_sample for part in parts)]
        sample, earlier = (hashlib.sha256(text.encode()).hexdigest()[:32] for text in texts)
        return Source(path, plain, sum(part.size for part in parts), sample, earlier_sample=earlier)
    size = Path(plain).stat().st_size
    last = max(0, size - SAMPLE)
    blocks = [0, *range(SAMPLE, size, SAMPLE)]
    if len(blocks) > SAMPLES:
        blocks = [last * k // (SAMPLES - 1) for k in range(SAMPLES)]
    head_middle_tail = sorted({0, max(0, size // 2 - SAMPLE // 2), last})
    sample, earlier = (_hash_blocks(plain, size, places) for places in (blocks, head_middle_tail))
    return Source(path, plain, size, sample, earlier_sample=earlier)


def _hash_blocks(path: str, size: int, places: Sequence[int]) -> str:
    digest = hashlib.sha256(str(size).encode())
    with open(path, "rb") as raw:
        for place in places:
            raw.seek(place)
            digest.update(raw.read(SAMPLE))
    return digest.hexdigest()[:32]
