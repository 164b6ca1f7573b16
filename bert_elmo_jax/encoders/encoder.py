"""The base of the encoders of all families: fingerprints (equal for equal numbers, from any file) and streams."""

import dataclasses
import functools
import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import jax
import numpy as np
from jaxtyping import Array, Float32, PRNGKeyArray

from bert_elmo_jax.encoders.warm_up import warm_up
from bert_elmo_jax.weights.parameter_tree import flatten

READ_AHEAD = 4  # batches of sentences that are sorted together
PIECES_AHEAD = 1024  # pieces that are packed together, for each row of a batch
MOST_AHEAD = 32  # batches of texts that are packed together; a multiple of READ_AHEAD
BAR_FROM = 300  # texts: below, a bar would only flicker

R = TypeVar("R")
E = TypeVar("E")
_COUNTING = threading.Lock()
Computed = functools.cached_property


@dataclasses.dataclass
class Work:
    """The work of an encoder: the pieces of its texts (in windows, some count twice), and the positions computed.

    >>> print(Work(pieces=7_383, positions=7_680))
    7,383 pieces in 7,680 positions (3.9% padding)
    """

    pieces: int = 0
    positions: int = 0
    cut: int = 0  # texts that were longer than the model reads, and lost their ends

    def add(self, pieces: int, positions: int) -> None:
        """Count a batch; several threads may."""
        with _COUNTING:
            self.pieces += pieces
            self.positions += positions

    @property
    def padding(self) -> float:
        """The share of padding among the positions."""
        return 1 - self.pieces / self.positions if self.positions else 0.0

    def __str__(self) -> str:
        return f"{self.pieces:,} pieces in {self.positions:,} positions ({self.padding:.1%} padding)"


class Loaded:
    """A model that `load` returns: it can be pickled, and it computes only in the process that loaded it.

    Compiled functions and all other values of a `cached_property` are not pickled; they are made again when needed.
    """

    _params: dict[str, Any]
    _process: int | None = None
    warm_up = warm_up

    @property
    def params(self) -> dict[str, Any]:
        """The parameters."""
        self.check_process()
        return self._params

    def check_process(self) -> None:
        """Raise in a fork of the process that loaded the model: JAX would wait forever for threads that it lacks."""
        if self._process not in (None, os.getpid()):
            raise RuntimeError(
                f"this model was loaded in process {self._process}, and JAX cannot compute in a fork of it: load the "
                'model after the fork, or start processes with multiprocessing.get_context("spawn")'
            )

    def __getstate__(self) -> dict[str, Any]:
        computed = {
            name for kind in type(self).__mro__ for name, value in vars(kind).items() if isinstance(value, Computed)
        }
        return {name: value for name, value in vars(self).items() if name not in computed}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update({**state, "_process": os.getpid()})


class Encoder(Loaded):
    """Configuration, weights, and the tokenizer or vocabulary; a family's encoder adds `encode` and `extract`."""

    ROUND: ClassVar[int] = READ_AHEAD  # batches: texts before and after a multiple of these are not computed together

    def __init__(self, config: Any, params: Mapping[str, Any], reads: Any = None, source: str = "weights"):
        self.config, self.source, self._reads = config, source, reads
        self._params, self._process = jax.device_put(dict(params)), os.getpid()
        self.work = Work()  # since this encoder was made; ELMo's is not counted

    @property
    def module(self) -> Any:
        """The Linen module with this configuration; `module.apply(variables, …)` returns its output.

        It takes parameters with the same parts as this encoder's, and names any other part. Where these have no pooler,
        one of `init_pooler` may be added.

        >>> from bert_elmo_jax import load
        >>> encoder = load("tests/goldens/bert_tiny")
        >>> inputs = encoder.tokenizer.batch(["[MASK] [MASK]"], length=8)
        >>> encoder.module.apply(encoder.variables, **inputs).last.shape
        (1, 8, 64)
        """
        from bert_elmo_jax.nn.checked_module import bind_parts  # encoding does not import it

        return bind_parts(self._build_module(), tuple(self._params["encoder"]), takes_pooler=self._lacks_pooler)

    @property
    def variables(self) -> dict[str, Any]:
        """The parameters of `module`, as it takes them: `{"params": params["encoder"]}`."""
        return {"params": self.params["encoder"]}

    def _build_module(self) -> Any:
        """Return the Linen module of the configuration."""
        raise NotImplementedError

    @property
    def _lacks_pooler(self) -> bool:
        """True if the family's heads read a pooler with parameters, which these weights do not have."""
        return False

    @property
    def num_layers(self) -> int:
        """The number of the last layer; layer 0 has the vectors of the tokens without their context."""
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
        rates = {field.name for field in dataclasses.fields(self.config)} & {"dropout", "attention_dropout"}
        config = dataclasses.replace(self.config, **dict.fromkeys(rates, 0.0))
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
    blank: Callable[[R], E],
    fill: Callable[[list[E], list[R]], object],
    join: Callable[[Sequence[E]], E],
    pieces: Callable[[R], int] | None = None,
) -> Iterator[E]:
    """Yield batches of `batch_size` texts; `read` makes rows, `fill` computes them into `room`.

    Only the texts of one round are in memory. `pieces` counts the pieces of a row; without it a round has a fixed
    number of texts.
    """
    for rows in _rounds(texts, batch_size, read, pieces):
        # Each text has its own length, because padding to one long text would make all of them long.
        encoded = [blank(row) for row in rows]
        fill(encoded, rows)
        while encoded:
            batch = join(encoded[:batch_size])
            del encoded[:batch_size]
            yield batch


def _rounds(
    texts: Iterator[Any], batch_size: int, read: Callable[[Any, int], R], pieces: Callable[[R], int] | None
) -> Iterator[list[R]]:
    """Yield the rows that are computed together, so that rows of similar lengths meet, or short ones share a row.

    A round has whole batches, and ends at every multiple of `MOST_AHEAD` batches: a program that stops there and goes
    on later computes the same rounds, with the same rounding errors.
    """
    enough = batch_size * (READ_AHEAD if pieces is None else PIECES_AHEAD)
    rows: list[R] = []
    size = 0
    for number, text in enumerate(texts):
        rows.append(read(text, number))
        size += 1 if pieces is None else pieces(rows[-1])
        batches, part = divmod(number + 1, batch_size)
        if not part and (size >= enough or not batches % MOST_AHEAD):
            yield rows
            rows, size = [], 0
    if rows:
        yield rows
