"""An encoder's layers of a task's sentences, computed once and kept on the disk: a frozen encoder gives the same ones
in every epoch.

A folder holds `cache.json` (which encoder, which sentences, how many of them are done) and `vectors.f32`, the layers of
every word, one sentence after the other. A cache that was stopped goes on where it was; one of another encoder or of
other sentences is refused.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32
from tqdm import tqdm

from bert_elmo_jax.api.streaming import BAR_FROM
from bert_elmo_jax.api.word_encoder import WordEncoder, encode_words, size_of, stack_layers
from bert_elmo_jax.data.npy import write_json
from bert_elmo_jax.data.tasks.word_rows import Batch, WordRow

AT_ONCE = 256  # sentences that are encoded, and written, together: of them similar ones share a batch
Sentences = Sequence[Sequence[str]]


class VectorCache:
    """The layers of the sentences of a folder, read from the disk one sentence at a time.

    >>> import tempfile
    >>> from bert_elmo_jax.api.word_encoder import word_encoder
    >>> folder, sentences = Path(tempfile.mkdtemp()), [("강가의", "은행"), ("the", "bank")]
    >>> cache = fill_cache(folder, word_encoder("tests/goldens/elmo_tiny"), sentences, progress=False)
    >>> cache.layers(("the", "bank")).shape
    (3, 2, 24)
    >>> fill_cache(folder, word_encoder("tests/goldens/bert_tiny"), sentences)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: the vectors in ... are those of another encoder (..., and tests/goldens/bert_tiny is ...): ...
    """

    def __init__(self, folder: Path, sentences: Sentences, layers: int, width: int):
        ends = np.cumsum([0, *map(len, sentences)])
        self._places = {tuple(words): int(at) for words, at in zip(sentences, ends)}
        self._vectors = np.memmap(folder / "vectors.f32", np.float32, "r", shape=(int(ends[-1]), layers, width))

    def layers(self, words: Sequence[str]) -> Float32[np.ndarray, "L T D"]:
        """The layers of a sentence."""
        at = self._places[tuple(words)]
        return np.ascontiguousarray(self._vectors[at : at + len(words)].swapaxes(0, 1))

    def batch(self, rows: Sequence[WordRow], height: int, width: int) -> Batch:
        """The entry of a batch, as `frozen_layers` would compute it."""
        return stack_layers([self.layers(row.words) for row in rows], height, width)


def fill_cache(
    folder: str | Path, encoder: WordEncoder, sentences: Sentences, *, progress: bool | None = None
) -> VectorCache:
    """The cache in a folder, which is made, gone on with, or found to be whole."""
    folder = Path(folder)
    distinct = list(dict.fromkeys(map(tuple, sentences)))
    layers, width = size_of(encoder)
    asked = {
        "encoder": encoder.fingerprint, "sentences": digest(distinct), "count": len(distinct),
        "words": sum(map(len, distinct)), "layers": layers, "width": width,
    }  # fmt: skip
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"{folder} cannot be made ({error.strerror}): choose another folder for the cache") from error
    with _held(folder):
        done = _begun(folder, asked, encoder.source)
        if done < len(distinct):
            bar = len(distinct) - done >= BAR_FROM if progress is None else progress
            _write(folder, encoder, distinct, done, asked, bar)
    return VectorCache(folder, distinct, layers, width)


def digest(sentences: Sentences) -> str:
    """What names sentences.

    >>> digest([("강가의", "은행")]) == digest([("강가의",), ("은행",)])
    False
    """
    text = json.dumps([list(words) for words in sentences])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _begun(folder: Path, asked: dict[str, Any], source: str) -> int:
    """How many sentences a folder has, once what it was made of is found to be what is asked."""
    file, vectors = folder / "cache.json", folder / "vectors.f32"
    size = asked["layers"] * asked["width"] * 4
    if not file.is_file():
        if any(path.name not in ("lock", vectors.name) for path in folder.iterdir()):
            raise ValueError(f"{folder} holds something else than vectors; choose an empty folder for the cache")
        vectors.write_bytes(b"")
        write_json(file, {**asked, "done": 0, "bytes": 0})
        return 0
    try:
        facts = dict(json.loads(file.read_text(encoding="utf-8")))
        done, written = int(facts["done"]), int(facts["bytes"])
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{file} is damaged ({error}); remove {folder}, and the vectors are computed again") from None
    if facts.get("encoder") != asked["encoder"]:
        raise ValueError(
            f"the vectors in {folder} are those of another encoder ({facts.get('encoder')}, and {source} is "
            f"{asked['encoder']}): give that encoder, another folder, or remove this one"
        )
    if facts.get("sentences") != asked["sentences"]:
        raise ValueError(
            f"the vectors in {folder} are those of other sentences ({facts.get('count')} of {facts.get('words')} "
            f"words; here {asked['count']} of {asked['words']}): give those files, another folder, or remove this one"
        )
    there = vectors.stat().st_size if vectors.is_file() else 0
    if there < written or written % size or (done == asked["count"] and written != size * asked["words"]):
        raise ValueError(
            f"{vectors} has {there:,} bytes, {written:,} were written; it is cut: remove {folder}, and the vectors are "
            "computed again"
        )
    os.truncate(vectors, written)  # what was written when the run was stopped, and counts no sentence yet
    return done


def _write(
    folder: Path, encoder: WordEncoder, sentences: Sentences, done: int, asked: dict[str, Any], progress: bool
) -> None:
    with (
        open(folder / "vectors.f32", "ab") as out,
        tqdm(total=len(sentences), initial=done, desc="encoding once", unit="sentences", disable=not progress) as bar,
    ):
        while done < len(sentences):
            some = sentences[done : done + AT_ONCE]
            for layers in encode_words(encoder, some):
                out.write(np.ascontiguousarray(layers.swapaxes(0, 1), "<f4").tobytes())
            out.flush()
            os.fsync(out.fileno())
            done += len(some)
            write_json(folder / "cache.json", {**asked, "done": done, "bytes": out.tell()})
            bar.update(len(some))


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """One process fills a cache at a time; another waits for it."""
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
