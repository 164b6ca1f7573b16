"""Vectors of the words of a corpus, computed once and kept on disk, one file per layer.

`vectors.json` in the same folder has the fingerprints of the encoder and of the words, and the number of vectors. A
stopped run continues where it was; vectors of another encoder or of other text are refused.
"""

import contextlib
import hashlib
import json
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Float32

from bert_elmo_jax.encoders.encoder import BAR_FROM, READ_AHEAD
from bert_elmo_jax.files import LockHeld, lock, read_json, write_json
from bert_elmo_jax.inference.word_layers import Pieces, Source, Words, choose_layers, word_layers
from bert_elmo_jax.progress_bars import progress_bar

Span = tuple[int, int]
DESCRIPTION = "vectors.json"


@dataclass(frozen=True)
class KeptVectors:
    """One vector per requested span of words, in their order; each layer is a memory-mapped file."""

    folder: Path
    layers: tuple[int, ...]
    rows: int
    width: int

    def layer(self, number: int) -> Float32[np.ndarray, "rows D"]:
        """Return the vectors of a layer, memory-mapped."""
        if number not in self.layers:
            raise ValueError(f"there is no layer {number} among the kept layers {self.layers}")
        if not self.rows:
            return np.zeros((0, self.width), np.float32)
        return np.memmap(_file(self.folder, number), np.float32, "r", shape=(self.rows, self.width))


def keep_vectors(
    source: Source,
    sentences: Sequence[Words],
    folder: str | Path,
    *,
    spans: Sequence[Sequence[Span]] | None = None,
    layers: Sequence[int] | None = None,
    pieces: Pieces = "mean",
    batch_size: int = 32,
    progress: bool | None = None,
) -> KeptVectors:
    """Return the vectors of each sentence's words, or of its spans (the mean of their words), computed if necessary."""
    folder = Path(folder)
    numbers = choose_layers(source, layers)
    word_spans = [[(n, n + 1) for n in range(len(words))] for words in sentences] if spans is None else spans
    _check_spans(sentences, word_spans)
    used = [n for n, sentence_spans in enumerate(word_spans) if len(sentence_spans)]  # the others are not encoded
    description = {
        "encoder": source.fingerprint, "content": _digest(sentences, spans), "sentences": len(used),
        "vectors": sum(map(len, word_spans)), "layers": list(numbers), "pieces": pieces,
    }  # fmt: skip
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"cannot make {folder} ({error.strerror}): choose another folder for vectors") from error
    with _hold(folder):
        done, rows, width = _begun(folder, description, source.source)
        remaining = used[done:]
        computed = word_layers(source, (sentences[n] for n in remaining), numbers, pieces=pieces, batch_size=batch_size)
        shown = bool(remaining) and (len(remaining) >= BAR_FROM if progress is None else progress)
        with contextlib.ExitStack() as stack, progress_bar(
            len(used), f"vectors of {Path(source.source).name}", "sentences", initial=done, shown=shown
        ) as bar:  # fmt: skip
            files = [stack.enter_context(_opened(_file(folder, n), 4 * rows * width)) for n in numbers]
            part = batch_size * getattr(source, "ROUND", READ_AHEAD)
            for number, (n, values) in enumerate(zip(remaining, computed), 1):
                pooled = _pool(values, word_spans[n])
                width, rows = pooled.shape[2], rows + pooled.shape[1]
                for file, layer in zip(files, pooled):
                    file.write(np.ascontiguousarray(layer, "<f4").tobytes())
                bar.update()
                # Whole rounds of sentences that are computed together: a stop then changes no batch, and no rounding.
                if number % part == 0 or number == len(remaining):
                    for file in files:
                        file.flush()
                        os.fsync(file.fileno())
                    write_json(
                        folder / DESCRIPTION, {**description, "done": done + number, "rows": rows, "width": width}
                    )
    return KeptVectors(folder, numbers, rows, width)


@dataclass(frozen=True)
class VectorFolder:
    """A folder for the vectors of several encoders and texts, each pair in a folder of its own inside.

    >>> import tempfile
    >>> from bert_elmo_jax import load
    >>> folder = VectorFolder(tempfile.mkdtemp(), layers=[-1])
    >>> for model in ("tests/goldens/bert_tiny", "tests/goldens/elmo_tiny"):
    ...     folder.compute(load(model), [["강가의", "은행"]]).layers
    (3,)
    (2,)
    """

    folder: str | Path
    layers: Sequence[int] | None = None
    batch_size: int = 32

    def compute(
        self, source: Source, sentences: Sequence[Words], spans: Sequence[Sequence[Span]] | None = None
    ) -> KeptVectors:
        """Return the vectors of words or spans as `keep_vectors` does."""
        numbers = choose_layers(source, self.layers)
        name = f"{source.fingerprint}-{_digest(sentences, spans)}-{'_'.join(map(str, numbers))}"
        options: Any = {"spans": spans, "layers": self.layers, "batch_size": self.batch_size}
        return keep_vectors(source, sentences, Path(self.folder, name), **options)


def _pool(values: Float32[np.ndarray, "L words D"], spans: Sequence[Span]) -> Float32[np.ndarray, "L spans D"]:
    if all(end == first + 1 for first, end in spans):
        return values[:, [first for first, _ in spans]]
    return np.stack([values[:, first:end].mean(axis=1) for first, end in spans], axis=1)


def _file(folder: Path, layer: int) -> Path:
    return folder / f"layer_{layer:02}.f32"


@contextlib.contextmanager
def _opened(file: Path, size: int) -> Iterator[BinaryIO]:
    """Open a file to append after its first `size` bytes."""
    with open(file, "ab") as stream:
        size_there = os.fstat(stream.fileno()).st_size
        if size_there < size:
            raise ValueError(
                f"{file} has {size_there:,} bytes, and {size:,} were written: it is truncated. Remove {file.parent} to "
                "compute the vectors again"
            )
        if size_there > size:  # later bytes may be incomplete
            stream.truncate(size)
        yield stream


def _begun(folder: Path, request: dict[str, Any], source: str) -> tuple[int, int, int]:
    """Return the counts of sentences and vectors in a folder, and their width; raise if they are of another request."""
    file = folder / DESCRIPTION
    if not file.is_file():
        if any(path.name != "lock" and path.suffix != ".f32" for path in folder.iterdir()):
            raise ValueError(f"{folder} holds other files than vectors; choose an empty folder for them")
        write_json(file, {**request, "done": 0, "rows": 0, "width": 0})
        return 0, 0, 0
    try:
        stored = read_json(file)
        progress = int(stored["done"]), int(stored["rows"]), int(stored["width"])
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{file} is damaged ({error}); remove {folder} to compute the vectors again") from None
    if stored.get("encoder") != request["encoder"]:
        raise ValueError(
            f"the vectors in {folder} belong to another encoder ({stored.get('encoder')}, and {source} is "
            f"{request['encoder']}): give that encoder, another folder, or remove this one"
        )
    if stored.get("content") != request["content"]:
        raise ValueError(
            f"the vectors in {folder} belong to other sentences ({stored.get('vectors')} vectors of "
            f"{stored.get('sentences')} sentences; here {request['vectors']} of {request['sentences']}): give those "
            "files, another folder, or remove this one"
        )
    for name in ("layers", "pieces"):
        if stored.get(name) != request[name]:
            raise ValueError(
                f"the vectors in {folder} were computed with {name}={stored.get(name)}, not {request[name]}: give "
                "another folder, or remove this one"
            )
    if progress[0] == request["sentences"] and progress[1] != request["vectors"]:
        raise ValueError(
            f"{folder} holds {progress[1]} vectors, expected {request['vectors']}; remove it to compute them again"
        )
    return progress


@contextlib.contextmanager
def _hold(folder: Path) -> Iterator[None]:
    """Hold a folder; a second process waits, and then finds the vectors computed."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(lock(folder / "lock"))
        except LockHeld:
            warnings.warn(f"another run is writing {folder}; waiting for it", stacklevel=3)
            stack.enter_context(lock(folder / "lock", wait=True))
        yield


def _check_spans(sentences: Sequence[Words], spans: Sequence[Sequence[Span]]) -> None:
    if len(spans) != len(sentences):
        raise ValueError(f"{len(sentences)} sentences and {len(spans)} lists of spans: give one for each sentence")
    if not any(map(len, spans)):
        raise ValueError("there is no word: give sentences with words")
    for n, (words, sentence_spans) in enumerate(zip(sentences, spans)):
        for first, end in sentence_spans:
            if not 0 <= first < end <= len(words):
                raise ValueError(f"span ({first}, {end}) of sentence {n}, which has {len(words)} words")


def _digest(sentences: Sequence[Words], spans: Sequence[Sequence[Span]] | None) -> str:
    """Return a hash of words and spans; None means one span per word."""
    digest = hashlib.sha256()
    for n, words in enumerate(sentences):
        sentence_spans = None if spans is None else [list(span) for span in spans[n]]
        digest.update(json.dumps([list(words), sentence_spans]).encode())
    return digest.hexdigest()[:16]
