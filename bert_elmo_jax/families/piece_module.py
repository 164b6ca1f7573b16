"""The encoder that all transformers on pieces share: embeddings, layers, the last norm, the pooler."""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bert_elmo_jax.encoders.arguments import too_long
from bert_elmo_jax.families.family import Output
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.layer_loop import LayerCall, run_layers
from bert_elmo_jax.nn.layers import layer_numbers
from bert_elmo_jax.nn.transformer import Layer, Pooler, at_positions


class PooledRows(NamedTuple):
    """The rows of a batch as poolers read them: one vector per row, one at each of `firsts`, or one `every` piece."""

    tokens: Int[AnyArray, "B T"]
    segments: Int[AnyArray, "B T"] | None
    lengths: Int[AnyArray, " B"] | None
    firsts: Int[AnyArray, "B S"] | None
    every: bool
    positions: Int[AnyArray, "B T"]
    deterministic: bool = True


class PieceModule(nn.Module):
    """An encoder of pieces. With `deterministic=False` it needs `rngs={"dropout": key}`.

    A family defines `embed`, and the other methods where it differs from the Transformer of Vaswani et al. 2017.
    """

    config: Any  # a PieceConfig
    add_pooler: bool = True

    POOLER: ClassVar[str] = "tanh"  # the pooler's activation

    @nn.compact
    def __call__(
        self,
        tokens: Int[AnyArray, "B T"],
        types: Int[AnyArray, "B T"] | None = None,
        positions: Int[AnyArray, "B T"] | None = None,
        segments: Int[AnyArray, "B T"] | None = None,
        *,
        lengths: Int[AnyArray, " B"] | None = None,
        nsp_positions: Int[AnyArray, "B S"] | None = None,
        pool_pieces: bool = False,
        deterministic: bool = True,
        layers: str | Sequence[int] | None = None,
        attentions: bool = False,
    ) -> Output:
        """Encode a batch.

        `types` default to 0, and a family without types ignores them. `positions` are counted along the row (packed
        rows must give theirs). `segments` are 0 for padding and 1, 2, … for the sequences of a row; rows of one
        sequence can give `lengths` instead; with neither, every piece is real. `layers` is "all" or layer numbers (0 is
        the embeddings, -1 the last; if norms come first, the last is the only one that is normalised). The pooled
        vector is taken at the row's first piece, at each of `nsp_positions`, or with `pool_pieces` at every piece.
        """
        c = self.config
        if not hasattr(tokens, "shape"):
            raise TypeError(
                f"tokens are a {type(tokens).__name__}; give an array of ids, as `tokenizer.batch(texts)` does"
            )
        numbers = layer_numbers(layers, c.num_layers)
        # One key for the embeddings and one per layer, for every way to run the layers.
        keys = None if deterministic else jax.random.split(self.make_rng("dropout"), c.num_layers + 1)
        if positions is None:
            if c.limits_rows and tokens.shape[1] > c.max_positions:
                raise ValueError(too_long(tokens.shape[1], c.max_positions))
            positions = self.count_positions(tokens)
        x = self.embed(tokens, types, positions, None if keys is None else keys[0])
        x, hidden, maps = run_layers(
            self, self.layer_calls(positions), x, segments, lengths, None if keys is None else keys[1:],
            numbers=numbers, maps=attentions, scales=self.scales(),
        )  # fmt: skip
        if (norm := self.last_norm()) is not None:
            x = norm(x)
            if hidden is not None:
                hidden = jnp.stack([x if n == c.num_layers else hidden[i] for i, n in enumerate(numbers)])
        rows = PooledRows(tokens, segments, lengths, nsp_positions, pool_pieces, positions, deterministic)
        return Output(x, hidden, maps, self.pool(x, rows) if self.add_pooler else None)

    def count_positions(self, tokens: Int[AnyArray, "B T"]) -> Int[Array, "B T"]:
        """Return the positions of rows that give none."""
        return jnp.broadcast_to(jnp.arange(tokens.shape[1])[None, :], tokens.shape)

    def embed(
        self,
        tokens: Int[AnyArray, "B T"],
        types: Int[AnyArray, "B T"] | None,
        positions: Int[AnyArray, "B T"],
        key: PRNGKeyArray | None,
    ) -> Float[Array, "B T D"]:
        """Return layer 0, the input of the first layer; a key means dropout."""
        raise NotImplementedError

    def layer_calls(self, positions: Int[AnyArray, "B T"]) -> Sequence[LayerCall]:
        """Return the layers."""
        return [LayerCall(Layer(self.config, parent=None))] * self.config.num_layers

    def scales(self) -> Float[Array, " L"] | None:
        """Return the last argument of each layer, if layers differ in a number."""
        return None

    def last_norm(self) -> nn.Module | None:
        """Return the norm after the last layer."""
        return None

    def pool(self, x: Float[Array, "B T D"], rows: PooledRows) -> Float[Array, "B D"] | Float[Array, "B S D"]:
        """Return the pooled vectors."""
        return Pooler(self.config, self.POOLER, name="pooler")(x, rows.firsts, rows.every)


def first_or_mean(x: Float[Array, "B T D"], rows: PooledRows, mean: bool) -> Float[Array, "B S D"]:
    """Return the vectors at `firsts` (by default the first of a row), or the means of the sequences that begin there.

    >>> x, segments = jnp.array([[[1.0], [3.0], [5.0], [9.0]]]), jnp.array([[1, 1, 2, 0]])
    >>> rows = PooledRows(segments, segments, None, jnp.array([[0, 2]]), False, segments)
    >>> first_or_mean(x, rows, mean=True).ravel().tolist()
    [2.0, 5.0]
    """
    b, t, _ = x.shape
    firsts = jnp.zeros((b, 1), jnp.int32) if rows.firsts is None else jnp.asarray(rows.firsts)
    if not mean:
        return at_positions(x, firsts)
    segments = rows.segments
    if segments is None:
        lengths = jnp.full((b,), t) if rows.lengths is None else jnp.asarray(rows.lengths)
        segments = (jnp.arange(t)[None, :] < lengths[:, None]).astype(jnp.int32)
    segments = jnp.asarray(segments)
    if rows.firsts is None:  # padding may come first
        firsts = jnp.argmax(segments > 0, axis=1)[:, None]
    inside = segments[:, None, :] == jnp.take_along_axis(segments, firsts, axis=1)[:, :, None]
    # A row of padding has the mean of its padding, which is finite and not read.
    shares = inside.astype(jnp.float32)
    shares = shares / jnp.broadcast_to(shares.sum(axis=2, keepdims=True), shares.shape)
    return jnp.einsum("bst,btd->bsd", shares, x.astype(jnp.float32)).astype(x.dtype)
