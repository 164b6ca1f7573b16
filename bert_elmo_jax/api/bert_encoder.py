"""A BERT that people use: texts in, vectors out, whatever their number and lengths."""

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, no_type_check

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Float, Int
from tqdm import tqdm

from bert_elmo_jax.api.encoded import Encoded
from bert_elmo_jax.api.rows import Overflow, Row, Text, check_texts, height_for, to_row, width_for
from bert_elmo_jax.heads import MaskedLM, NextSentence
from bert_elmo_jax.models.bert import Bert, BertConfig, Output, check_batch, layer_numbers
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.text import Tokenizer

Layers = Literal["all"] | Sequence[int] | None
BAR_FROM = 300  # texts: below, a bar would only flicker
READ_AHEAD = 4  # batches that `encode_batches` sorts together


@no_type_check  # JAX rebuilds it around whatever a tree operation returns, not only around arrays of these shapes
@struct.dataclass
class ForwardOutput:
    """Everything the model says about a batch of ids; what the weights have no head for is None."""

    last: Float[Array, "B T D"]
    layers: Float[Array, "L+1 B T D"] | None = None
    attentions: Float[Array, "L B A T T"] | None = None
    pooled: Float[Array, "B D"] | None = None
    mlm_logits: Float[Array, "B T V"] | None = None
    nsp_logits: Float[Array, "B 2"] | None = None


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
        the second text is windowed). Rows are sorted by length on the way through and come back in order. A progress
        bar shows from a few hundred texts on, or as `progress` says.
        """
        check_texts(texts)
        rows = self._rows(texts, 0, overflow, stride, max_length)
        return self._encode(rows, batch_size, layers, len(rows) >= BAR_FROM if progress is None else progress)

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

        >>> from bert_elmo_jax import load
        >>> encoder = load("tests/goldens/bert_tiny")
        >>> [len(batch) for batch in encoder.encode_batches(("[MASK]" for _ in range(5)), batch_size=2)]
        [2, 2, 1]
        """
        stream, done = iter(texts), 0
        while chunk := list(itertools.islice(stream, batch_size * READ_AHEAD)):
            rows = self._rows(chunk, done, overflow, stride, max_length)
            done += len(chunk)
            # Texts of similar length are computed together but given out in order, so a few batches are held.
            whole = self._encode(rows, batch_size, layers, progress=False)
            for start in range(0, len(rows), batch_size):
                yield whole[start : start + batch_size]

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
        given = {"tokens": tokens, "types": types, "mask": mask, "positions": positions, "segments": segments}
        arrays = {name: None if a is None else to_ids(name, a, np.shape(tokens)) for name, a in given.items()}
        if mask is not None and segments is not None:
            raise ValueError("mask and segments were both given; segments says which pieces are real as well")
        if arrays["mask"] is not None and not np.isin(arrays["mask"], (0, 1)).all():
            raise ValueError("mask holds other numbers than 0 (padding) and 1 (real); packed rows give segments")
        ids = arrays["tokens"]
        assert ids is not None
        check_batch(self.config, ids, arrays["types"], arrays["positions"])
        wanted = Wanted(
            layers=tuple(range(self.config.num_layers + 1)),
            attentions=self.config.implementation == "reference",
            mlm="mlm" in self.params,
            nsp="nsp" in self.params and "pooler" in self.params["encoder"],
        )
        real = arrays["mask"] if segments is None else arrays["segments"]
        return self._run(self.params, ids, arrays["types"], arrays["positions"], real, wanted=wanted)

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
        if not 1 <= top <= self.tokenizer.vocab_size:
            raise ValueError(f"top={top}: use 1 to {self.tokenizer.vocab_size}, the size of the vocabulary")
        [row] = self._rows([text], 0, "raise", None, None)
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

    def _rows(
        self, texts: Sequence[Text], first: int, overflow: Overflow, stride: int | None, max_length: int | None
    ) -> list[Row]:
        if overflow not in ("raise", "truncate", "windows"):
            raise ValueError(f"overflow={overflow!r} is not known; use 'raise', 'truncate' or 'windows'")
        limit = self.config.max_positions
        if max_length is not None and not 3 <= max_length <= limit:
            raise ValueError(f"max_length={max_length}: use 3 to {limit}, the positions of this model")
        size = max_length or limit
        return [to_row(t, first + n, self.tokenizer, size, overflow, stride) for n, t in enumerate(texts)]

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

    def _encode(self, rows: Sequence[Row], batch_size: int, layers: Layers, progress: bool) -> Encoded:
        if batch_size < 1:
            raise ValueError(f"batch_size={batch_size}: use at least 1")
        wanted = Wanted(layers=tuple(layer_numbers(layers, self.config.num_layers)))
        units = [(n, window) for n, row in enumerate(rows) for window in range(len(row.windows))]
        units.sort(key=lambda unit: -len(rows[unit[0]].columns(unit[1])))  # longest first: no surprise at the end
        shape = (len(rows), max(map(len, rows)), self.config.hidden_size)
        last, mask = np.zeros(shape, np.float32), np.zeros(shape[:2], np.int32)
        hidden = np.zeros((len(wanted.layers), *shape), np.float32) if layers is not None else None
        pooled = np.zeros((shape[0], shape[2]), np.float32) if "pooler" in self.params["encoder"] else None
        owners = [row.owners() for row in rows]
        with tqdm(total=len(units), desc="encoding", unit="rows", disable=not progress) as bar:
            for at in range(0, len(units), batch_size):
                batch = units[at : at + batch_size]
                output = self._run(
                    self.params, *self._batch([(rows[n], w) for n, w in batch], batch_size), wanted=wanted
                )
                values = jax.device_get((output.last, output.layers, output.pooled))
                for k, (n, window) in enumerate(batch):
                    columns = rows[n].columns(window)
                    mine = owners[n][columns] == window
                    last[n, columns[mine]] = values[0][k, : len(columns)][mine]
                    mask[n, : len(rows[n])] = 1
                    if hidden is not None:
                        hidden[:, n, columns[mine]] = values[1][:, k, : len(columns)][:, mine]
                    if pooled is not None and window == 0:
                        pooled[n] = values[2][k]
                bar.update(len(batch))
        texts = tuple(row.encoding for row in rows)
        return Encoded(last, mask, texts, tuple(row.words for row in rows), pooled, hidden)


class Wanted(NamedTuple):
    """Which outputs to compute; what is not wanted costs nothing."""

    layers: tuple[int, ...] = ()
    attentions: bool = False
    mlm: bool = False
    nsp: bool = False


def run(
    config: BertConfig,
    params: Mapping[str, Any],
    tokens: Int[AnyArray, "B T"],
    types: Int[AnyArray, "B T"] | None,
    positions: Int[AnyArray, "B T"] | None,
    segments: Int[AnyArray, "B T"] | None,
    *,
    wanted: Wanted,
) -> ForwardOutput:
    """The model and the heads that are wanted, as one pure function."""
    output: Output = Bert(config, add_pooler="pooler" in params["encoder"]).apply(  # type: ignore[assignment]
        {"params": params["encoder"]},
        tokens,
        types,
        positions,
        segments,
        layers=wanted.layers or None,
        attentions=wanted.attentions,
    )
    mlm: Any = None
    nsp: Any = None
    if wanted.mlm:
        words = params["encoder"]["embeddings"]["word"]
        mlm = MaskedLM(config).apply({"params": params["mlm"]}, output.last, words)
    if wanted.nsp:
        nsp = NextSentence(config).apply({"params": params["nsp"]}, output.pooled)
    return ForwardOutput(output.last, output.layers, output.attentions, output.pooled, mlm, nsp)


def to_ids(name: str, values: Any, shape: tuple[int, ...]) -> Int[np.ndarray, "B T"]:
    """Ids as an array of 32-bit numbers, of the shape that the tokens have."""
    array = np.asarray(values)
    if not (np.issubdtype(array.dtype, np.integer) or array.dtype == bool):
        raise TypeError(f"{name} holds {array.dtype}; expected whole numbers")
    if array.ndim != 2 or array.shape != shape or 0 in shape:
        raise ValueError(f"{name} has shape {array.shape}; expected [batch, pieces] as tokens, which have {shape}")
    return array.astype(np.int32)
