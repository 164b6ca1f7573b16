"""A BERT that people use: texts in, vectors out, whatever their number and lengths."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int
from tqdm import tqdm

from bert_elmo_jax.data.rows.widths import height_for, width_for
from bert_elmo_jax.encoders.arguments import (
    Layers,
    check_fit,
    check_layers,
    check_list,
    check_stream,
    check_whole,
    to_ids,
)
from bert_elmo_jax.encoders.encoded import Encoded, blank, join
from bert_elmo_jax.encoders.fingerprint import fingerprint
from bert_elmo_jax.encoders.rows import Overflow, Row, Text, to_row
from bert_elmo_jax.encoders.streaming import BAR_FROM, stream
from bert_elmo_jax.families.bert.forward import ForwardOutput, Wanted, run
from bert_elmo_jax.families.bert.model import BertConfig, check_batch
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.text import Tokenizer


class Guess(NamedTuple):
    """A piece that may stand in a gap: number of the gap in the text, the piece, its probability."""

    mask: int
    piece: str
    probability: float


class BertEncoder:
    """Weights, tokenizer and compiled model; made by `load`.

    >>> from bert_elmo_jax import load
    >>> encoder = load("tests/goldens/bert_tiny")
    >>> encoding = encoder.encode(["[MASK] [MASK]", "[MASK]"], layers=[0, -1])
    >>> encoding.last.shape, encoding.pooled.shape, encoding.layers.shape, encoding.mask.tolist()
    ((2, 4, 64), (2, 64), (2, 2, 4, 64), [[1, 1, 1, 1], [1, 1, 1, 0]])
    """

    def __init__(
        self, config: BertConfig, params: Mapping[str, Any], tokenizer: Tokenizer | None, source: str = "weights"
    ):
        if tokenizer is not None and tokenizer.vocab_size > config.vocab_size:
            raise ValueError(
                f"{source}: the tokenizer has {tokenizer.vocab_size} pieces, the model embeddings for "
                f"{config.vocab_size}; they do not belong together"
            )
        self.config, self.source = config, source
        self.params: dict[str, Any] = jax.tree.map(jnp.asarray, dict(params))
        self._tokenizer = tokenizer
        # Compiled once for each shape of batch and each set of outputs.
        self._run = jax.jit(functools.partial(run, config), static_argnames="wanted")

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that came with the weights."""
        if self._tokenizer is None:
            raise ValueError(
                f"{self.source} has no tokenizer (vocab.txt, tokenizer.json or a SentencePiece model): copy one there "
                "to encode texts; forward() takes ids"
            )
        return self._tokenizer

    @property
    def fingerprint(self) -> str:
        """What names this model: the same for the same vectors, wherever it was loaded from."""
        config = dataclasses.replace(self.config, dropout=0.0, attention_dropout=0.0)  # which change no vector
        return fingerprint(config, self.params, self._tokenizer.fingerprint if self._tokenizer else "")

    @property
    def heads(self) -> tuple[str, ...]:
        """The heads that the weights have."""
        return tuple(name for name in self.params if name != "encoder")

    def encode(
        self,
        texts: Sequence[Text],
        *,
        batch_size: int = 32,
        layers: Layers = None,
        overflow: Overflow = "raise",
        stride: int | None = None,
        max_length: int | None = None,
        progress: bool | None = None,
    ) -> Encoded:
        """The vectors of texts: strings, lists of words, or pairs (tuples) of these.

        A text of more pieces than `max_length` (the model's positions unless given) raises, is cut
        (`overflow="truncate"`), or is encoded in windows that begin every `stride` pieces (half a window unless given),
        each piece's vector taken from the window that shows most context around it (`overflow="windows"`; of a pair
        the second text is windowed; `pooled` is that of the first window). Rows are sorted by length on the way through
        and come back in order. A progress bar shows from a few hundred texts on, or as `progress` says.
        """
        check_list(texts)
        batch_size, wanted = self._wishes(batch_size, layers)
        read = self._reader(overflow, stride, max_length)
        rows = [read(text, number) for number, text in enumerate(texts)]
        encoded = self._blank(rows, wanted)
        self._fill(list(encoded), rows, batch_size, wanted, len(rows) >= BAR_FROM if progress is None else progress)
        return encoded

    def encode_batches(
        self,
        texts: Iterable[Text],
        *,
        batch_size: int = 32,
        layers: Layers = None,
        overflow: Overflow = "raise",
        stride: int | None = None,
        max_length: int | None = None,
    ) -> Iterator[Encoded]:
        """As `encode`, a batch at a time and in order, for more texts than fit into memory.

        What is asked is checked at once, each text when its turn comes (`check` looks at all of them beforehand).

        >>> from bert_elmo_jax import load
        >>> encoder = load("tests/goldens/bert_tiny")
        >>> [len(batch) for batch in encoder.encode_batches(("[MASK]" for _ in range(5)), batch_size=2)]
        [2, 2, 1]
        """
        check_stream(texts)
        batch_size, wanted = self._wishes(batch_size, layers)
        return self._stream(iter(texts), batch_size, wanted, self._reader(overflow, stride, max_length))

    def check(
        self,
        texts: Iterable[Text],
        *,
        overflow: Overflow = "raise",
        stride: int | None = None,
        max_length: int | None = None,
    ) -> None:
        """Raise what `encode` would raise of these texts, at the cost of the tokenizer alone.

        >>> from bert_elmo_jax import load
        >>> load("tests/goldens/bert_tiny").check(["[MASK]", ""])
        Traceback (most recent call last):
        bert_elmo_jax.encoders.rows.BadText: text 1 is empty, or has nothing the tokenizer knows: ''
        """
        check_stream(texts)
        read = self._reader(overflow, stride, max_length)
        for number, text in enumerate(texts):
            read(text, number)

    def forward(
        self,
        tokens: Int[AnyArray, "B T"],
        types: Int[AnyArray, "B T"] | None = None,
        mask: Int[AnyArray, "B T"] | None = None,
        *,
        positions: Int[AnyArray, "B T"] | None = None,
        segments: Int[AnyArray, "B T"] | None = None,
    ) -> ForwardOutput:
        """Everything the model says about ids: all layers, attention maps, and the logits of the heads it has.

        Fused attention never holds its maps: `attentions` is None there.

        `mask` is 1 at real pieces, 0 at padding; without it all are real. Rows packed with several texts give
        `segments` (which text a piece is of, 0 for padding) and `positions` instead.

        >>> from bert_elmo_jax import load
        >>> output = load("tests/goldens/bert_tiny").forward(np.array([[2, 7, 9, 3]]))
        >>> output.layers.shape, output.mlm_logits.shape, output.nsp_logits.shape
        ((4, 1, 4, 64), (1, 4, 200), (1, 2))
        """
        if mask is not None and segments is not None:
            raise ValueError("mask and segments were both given; segments says which pieces are real as well")
        ids = to_ids("tokens", tokens)
        given = {"types": types, "mask": mask, "positions": positions, "segments": segments}
        arrays = {name: None if a is None else to_ids(name, a, ids.shape) for name, a in given.items()}
        if arrays["mask"] is not None and not np.isin(arrays["mask"], (0, 1)).all():
            raise ValueError("mask holds other numbers than 0 (padding) and 1 (real); packed rows give segments")
        check_batch(self.config, ids, arrays["types"], arrays["positions"])
        if arrays["segments"] is not None and not ((arrays["segments"] >= 0) & (arrays["segments"] < 2**31)).all():
            raise ValueError(
                "segments holds numbers below 0 or beyond 32 bits; 0 is padding, and 1, 2, … say which text of its row "
                "a piece is of"
            )
        wanted = Wanted(
            layers=tuple(range(self.config.num_layers + 1)),
            attentions=self.config.implementation == "reference",
            mlm="mlm" in self.params,
            nsp="nsp" in self.params and "pooler" in self.params["encoder"],
        )
        real = arrays["mask"] if segments is None else arrays["segments"]
        inputs = [None if a is None else a.astype(np.int32) for a in (ids, arrays["types"], arrays["positions"], real)]
        return self._run(self.params, *inputs, wanted=wanted)

    def fill_mask(self, text: Text, top: int = 5) -> list[Guess]:
        """The likeliest pieces for each [MASK] of a text, best first.

        >>> from bert_elmo_jax import load
        >>> [guess.mask for guess in load("tests/goldens/bert_tiny").fill_mask("[MASK] [MASK]", top=2)]
        [0, 0, 1, 1]
        """
        if "mlm" not in self.params:
            raise ValueError(
                f"{self.source} has no masked-language-model head; it has: {', '.join(self.heads) or 'none'}"
            )
        top = check_whole("top", top, 1, self.tokenizer.vocab_size, "the size of the vocabulary")
        row = self._reader("raise", None, None)(text, 0)
        places = np.flatnonzero(row.encoding.ids == self.tokenizer.mask_id)
        if not len(places):
            raise ValueError(f"{text!r} has no {self.tokenizer.tokens[self.tokenizer.mask_id]} to fill")
        batch = self._batch([(row, 0)], 1)
        output = self._run(self.params, *batch, wanted=Wanted(mlm=True))
        known = np.asarray(output.mlm_logits[0, places, : self.tokenizer.vocab_size])
        chances = np.asarray(jax.nn.softmax(jnp.asarray(known), axis=-1))
        best = np.argsort(-chances, axis=-1, kind="stable")[:, :top]
        return [
            Guess(gap, self.tokenizer.tokens[i], float(chances[gap, i]))
            for gap, order in enumerate(best)
            for i in order
        ]

    def _wishes(self, batch_size: int, layers: Layers) -> tuple[int, tuple[int, ...] | None]:
        return check_whole("batch_size", batch_size, 1), check_layers(layers, self.config.num_layers)

    def _reader(self, overflow: Overflow, stride: int | None, max_length: int | None) -> Callable[[Text, int], Row]:
        """The function from a text and its number to its row."""
        size, overflow, stride = check_fit(overflow, stride, max_length, self.config.max_positions)
        return functools.partial(to_row, tokenizer=self.tokenizer, size=size, overflow=overflow, stride=stride)

    def _blank(self, rows: Sequence[Row], wanted: tuple[int, ...] | None) -> Encoded:
        return blank(
            [row.encoding for row in rows],
            [row.words for row in rows],
            self.config.hidden_size,
            layers=None if wanted is None else len(wanted),
            pooled="pooler" in self.params["encoder"],
        )

    def _stream(
        self, texts: Iterator[Text], batch_size: int, wanted: tuple[int, ...] | None, read: Callable[[Text, int], Row]
    ) -> Iterator[Encoded]:
        def room(row: Row) -> Encoded:
            return self._blank([row], wanted)

        def fill(held: list[Encoded], rows: list[Row]) -> None:
            self._fill(held, rows, batch_size, wanted, progress=False)

        return stream(texts, batch_size, read, room, fill, join)

    def _batch(
        self, units: Sequence[tuple[Row, int]], batch_size: int
    ) -> tuple[np.ndarray, np.ndarray, None, np.ndarray]:
        """Tokens, types, positions (as usual) and mask of windows of rows, padded to a known width and height."""
        columns = [row.columns(window) for row, window in units]
        width = width_for(max(map(len, columns)), self.config.max_positions)
        shape = (height_for(len(units), batch_size), width)
        tokens, types, mask = (
            np.full(shape, self.config.pad_id, np.int32),
            np.zeros(shape, np.int32),
            np.zeros(shape, np.int32),
        )
        for n, ((row, _), places) in enumerate(zip(units, columns)):
            tokens[n, : len(places)] = row.encoding.ids[places]
            types[n, : len(places)] = row.encoding.types[places]
            mask[n, : len(places)] = 1
        return tokens, types, None, mask

    def _fill(
        self,
        targets: Sequence[Encoded],
        rows: Sequence[Row],
        batch_size: int,
        wanted: tuple[int, ...] | None,
        progress: bool,
    ) -> None:
        """Compute rows, and write the vectors of each into the room there is for it."""
        units = [(n, window) for n, row in enumerate(rows) for window in range(len(row.windows))]
        units.sort(key=lambda unit: -rows[unit[0]].length(unit[1]))  # longest first: no surprise at the end
        owners = [row.owners() for row in rows]
        with tqdm(total=len(units), desc="encoding", unit="rows", disable=not progress) as bar:
            for at in range(0, len(units), batch_size):
                batch = units[at : at + batch_size]
                inputs = self._batch([(rows[n], window) for n, window in batch], batch_size)
                output = self._run(self.params, *inputs, wanted=Wanted(layers=wanted or ()))
                last, layers, pooled = jax.device_get((output.last, output.layers, output.pooled))
                for k, (n, window) in enumerate(batch):
                    columns = rows[n].columns(window)
                    mine = np.flatnonzero(owners[n][columns] == window)
                    target = targets[n]
                    target.last[0, columns[mine]] = last[k, mine]
                    if target.layers is not None:
                        target.layers[:, 0, columns[mine]] = layers[:, k, mine]
                    if target.pooled is not None and window == 0:
                        target.pooled[0] = pooled[k]
                bar.update(len(batch))
