"""The base of the encoders of all families: fingerprints (equal for equal numbers, from any file) and streams."""

import dataclasses
import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import jax
import numpy as np
from jaxtyping import Array, Float32, PRNGKeyArray

from bert_elmo_jax.weights.parameter_tree import flatten

READ_AHEAD = 4  # batches that are sorted together
BAR_FROM = 300  # texts: below, a bar would only flicker

R = TypeVar("R")
E = TypeVar("E")


class Encoder:
    """Configuration, weights, and the tokenizer or vocabulary; a family's encoder adds `encode` and `extract`."""

    def __init__(self, config: Any, params: Mapping[str, Any], reads: Any, source: str):
        self.config, self.source, self._reads = config, source, reads
        self.params: dict[str, Any] = jax.device_put(dict(params))

    @property
    def num_layers(self) -> int:
        """The number of the last layer; layer 0 has a vector for each token by itself."""
        return self.config.num_layers

    @property
    def width(self) -> int:
        """The size of a vector in each layer."""
        return self.config.hidden_size

    @property
    def reads(self) -> Any:
        """The tokenizer or vocabulary that belongs to the weights in a run directory."""
        return self._reads

    @property
    def fingerprint(self) -> str:
        """The fingerprint of configuration (without dropout, which changes no vector), weights and `reads`."""
        known = {field.name for field in dataclasses.fields(self.config)} & {"dropout", "attention_dropout"}
        config = dataclasses.replace(self.config, **dict.fromkeys(known, 0.0))
        return fingerprint(config, self.params, self._reads.fingerprint if self._reads else "")

    def check_words(self) -> None:
        """Raise if words cannot be encoded: the tokenizer or vocabulary is missing."""
        raise NotImplementedError

    def word_layers(
        self, sentences: Iterable[Sequence[str]], layers: Sequence[int], *, pieces: Any = "mean", batch_size: int = 32
    ) -> Iterator[Float32[np.ndarray, "L words D"]]:
        """Yield the layers of each sentence's words; `pieces` is "mean", "first" or "last"."""
        raise NotImplementedError

    def word_batch(self, sentences: Sequence[Sequence[str]], height: int, width: int) -> dict[str, np.ndarray]:
        """Return the arrays that `word_function` reads, for a network that fine-tunes this encoder."""
        raise NotImplementedError

    def word_function(self) -> Callable[[Any, Mapping[str, Any], PRNGKeyArray | None], Array]:
        """Return the function `(encoder parameters, batch, key) -> layers [L, B, T, D]`; a key means dropout."""
        raise NotImplementedError


def fingerprint(config: Any, params: Mapping[str, Any], words: str = "") -> str:
    """Return 16 hex digits for a configuration, its parameters and the fingerprint of its vocabulary (`words`)."""
    digest = hashlib.sha256(f"{config} {words}".encode())
    for path, value in sorted(flatten(params).items()):
        array = np.ascontiguousarray(value)
        digest.update(f"{path} {array.shape} {array.dtype}".encode())
        digest.update(array.data)
    return digest.hexdigest()[:16]


def stream(
    texts: Iterator[Any],
    batch_size: int,
    read: Callable[[Any, int], R],
    room: Callable[[R], E],
    fill: Callable[[list[E], list[R]], object],
    join: Callable[[Sequence[E]], E],
) -> Iterator[E]:
    """Yield batches of `batch_size` texts; `read` makes rows, `fill` computes them into `room`."""
    numbered = ((text, number) for number, text in enumerate(texts))
    while rows := [read(*text) for text in itertools.islice(numbered, batch_size * READ_AHEAD)]:
        # Texts of similar length are computed together but yielded in order, so a few batches are in memory: each
        # text with its own length, because padding to one long text would make all of them long.
        held = [room(row) for row in rows]
        fill(held, rows)
        while held:
            batch = join(held[:batch_size])
            del held[:batch_size]
            yield batch
