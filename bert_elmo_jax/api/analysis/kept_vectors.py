"""The vectors of a corpus, computed once for each encoder and kept on disk, a file a layer.

A run that is stopped goes on where it was. The folder is named for what is in it (the encoder's fingerprint, and that
of the words), so that vectors of another model or of other text are never mistaken for these.
"""

import contextlib
import fcntl
import hashlib
import itertools
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Float32
from tqdm import tqdm

from bert_elmo_jax.api.analysis.word_layers import Source, Words, layers_of, word_layers
from bert_elmo_jax.api.streaming import BAR_FROM, READ_AHEAD
from bert_elmo_jax.data.npy import write_json

Span = tuple[int, int]


@dataclass(frozen=True)
class KeptVectors:
    """A vector for every span of words that was asked for, in their order; each layer is a file, mapped into memory.

    >>> KeptVectors(Path("vectors"), (0, 1, 2), rows=10, width=24).layers
    (0, 1, 2)
    """

    folder: Path
    layers: tuple[int, ...]
    rows: int
    width: int

    def layer(self, number: int) -> Float32[np.ndarray, "rows D"]:
        """The vectors of a layer, read when they are used."""
        if number not in self.layers:
            raise ValueError(f"there is no layer {number} among those that were kept: {self.layers}")
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
    batch_size: int = 32,
    progress: bool | None = None,
) -> KeptVectors:
    """Compute the vectors of each sentence's words, or of its spans (the mean of their words), or find them there.

    >>> import tempfile
    >>> from bert_elmo_jax import load
    >>> elmo = load("tests/goldens/elmo_tiny")
    >>> kept = keep_vectors(elmo, [["강가의", "은행"], ["배"]], tempfile.mkdtemp(), spans=[[(0, 2)], [(0, 1)]])
    >>> kept.layers, kept.layer(2).shape
    ((0, 1, 2), (2, 24))
    """
    numbers = layers_of(source, layers)
    asked = [[(n, n + 1) for n in range(len(words))] for words in sentences] if spans is None else spans
    _check_spans(sentences, asked)
    facts = {"encoder": source.fingerprint, "layers": list(numbers), "content": _digest(sentences, asked)}
    here = Path(folder) / f"{facts['encoder']}-{facts['content']}-{'_'.join(map(str, numbers))}"
    here.mkdir(parents=True, exist_ok=True)
    used = [n for n, some in enumerate(asked) if len(some)]  # a sentence of which nothing is asked costs nothing
    total = sum(map(len, asked))
    with _locked(here):
        state = _state(here)
        done, rows, width = (state[name] for name in ("sentences", "rows", "width"))
        if done < len(used) or not width:
            rest = used[done:]
            computed = word_layers(source, (sentences[n] for n in rest), numbers, batch_size=batch_size)
            with contextlib.ExitStack() as held, tqdm(
                total=len(used), initial=done, desc=f"vectors of {Path(source.source).name}", unit="sentences",
                disable=not (len(rest) >= BAR_FROM if progress is None else progress),
            ) as bar:  # fmt: skip
                files = [held.enter_context(_opened(_file(here, n), 4 * rows * width)) for n in numbers]
                # Whole rounds of what is sorted together, so that a stop changes no batch, and no rounding.
                for part in _portions(zip(rest, computed), batch_size * READ_AHEAD):
                    for n, values in part:
                        pooled = _pool(values, asked[n])
                        width, rows = pooled.shape[2], rows + pooled.shape[1]
                        for file, layer in zip(files, pooled):
                            file.write(np.ascontiguousarray(layer, "<f4").tobytes())
                    for file in files:
                        file.flush()
                        os.fsync(file.fileno())
                    done += len(part)
                    write_json(here / "done.json", {"sentences": done, "rows": rows, "width": width})
                    bar.update(len(part))
    if rows != total:
        raise ValueError(f"{here} holds {rows} vectors where {total} were asked for; remove it, and run this again")
    return KeptVectors(here, numbers, rows, width)


def _pool(values: Float32[np.ndarray, "L words D"], spans: Sequence[Span]) -> Float32[np.ndarray, "L spans D"]:
    if all(end == first + 1 for first, end in spans):
        return values[:, [first for first, _ in spans]]
    return np.stack([values[:, first:end].mean(axis=1) for first, end in spans], axis=1)


def _portions(items: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while part := list(itertools.islice(items, size)):
        yield part


def _file(folder: Path, layer: int) -> Path:
    return folder / f"layer_{layer:02}.f32"


@contextlib.contextmanager
def _opened(file: Path, size: int) -> Iterator[BinaryIO]:
    """A file to write behind what is certain to be in it."""
    with open(file, "ab") as stream:
        if os.fstat(stream.fileno()).st_size < size:
            raise ValueError(f"{file} is shorter than done.json beside it says; remove {file.parent} to begin anew")
        stream.truncate(size)  # what was written after the last mark may be torn
        yield stream


def _state(folder: Path) -> dict[str, int]:
    file = folder / "done.json"
    if not file.is_file():
        return {"sentences": 0, "rows": 0, "width": 0}
    try:
        state = json.loads(file.read_text(encoding="utf-8"))
        return {name: int(state[name]) for name in ("sentences", "rows", "width")}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file} is damaged ({error}); remove {folder} to begin anew") from None


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"another run is writing {folder}; wait for it, or stop it first") from None
        yield


def _check_spans(sentences: Sequence[Words], spans: Sequence[Sequence[Span]]) -> None:
    if len(spans) != len(sentences):
        raise ValueError(f"{len(sentences)} sentences and {len(spans)} lists of spans: give one for each sentence")
    if not any(map(len, spans)):
        raise ValueError("no word is asked for: give sentences with words")
    for n, (words, some) in enumerate(zip(sentences, spans)):
        for first, end in some:
            if not 0 <= first < end <= len(words):
                raise ValueError(f"span ({first}, {end}) of sentence {n}, which has {len(words)} words")


def _digest(sentences: Sequence[Words], spans: Sequence[Sequence[Span]]) -> str:
    digest = hashlib.sha256()
    for words, some in zip(sentences, spans):
        digest.update(json.dumps([list(words), [list(span) for span in some]]).encode())
    return digest.hexdigest()[:16]
