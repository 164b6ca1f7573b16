"""Self-attention, twice: `reference` does everything, `fused` is fast where it applies.

Both understand packed rows: `segments [B, T]` says which sequence of its row a token belongs to (0 is padding), and a
token attends to its own sequence only. Padding counts as a sequence of its own, so that every position attends to at
least itself: no softmax is ever empty, and a row of nothing but padding stays finite. Rows of one sequence each may
give its `lengths [B]` instead.
"""

import math
from typing import Literal

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Float32, Int, PRNGKeyArray

from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.dense import Dense
from bert_elmo_jax.nn.dropout import dropout as drop

Implementation = Literal["reference", "fused"]


def visible(
    tokens: int, segments: Int[AnyArray, "B T"] | None, lengths: Int[AnyArray, " B"] | None, causal: bool
) -> Bool[Array, "_ {tokens} {tokens}"] | None:
    """Which keys (last axis) each query may see, for every row or for all at once; None where each sees every one.

    >>> import numpy as np
    >>> from bert_elmo_jax.nn.attention import visible
    >>> visible(3, segments=np.array([[1, 1, 2]]), lengths=None, causal=True).astype(int).tolist()
    [[[1, 0, 0], [1, 1, 0], [0, 0, 1]]]
    """
    if segments is not None and lengths is not None:
        raise ValueError("attention was given both segments and lengths; give segments for packed rows, else lengths")
    if lengths is not None:
        segments = (jnp.arange(tokens)[None, :] < jnp.asarray(lengths)[:, None]).astype(jnp.int32)
    earlier = jnp.tri(tokens, dtype=bool)[None] if causal else None
    if segments is None:
        return earlier
    same = jnp.asarray(segments)[:, :, None] == jnp.asarray(segments)[:, None, :]
    return same if earlier is None else same & jnp.broadcast_to(earlier, same.shape)


def attention_maps(
    query: Float[Array, "B T A H"],
    key: Float[Array, "B T A H"],
    segments: Int[AnyArray, "B T"] | None = None,
    *,
    lengths: Int[AnyArray, " B"] | None = None,
    causal: bool = False,
) -> Float32[Array, "B A T T"]:
    """How much each query (third axis) attends to each key (last axis): softmax of query · key / √H, in float32.

    >>> import jax.numpy as jnp
    >>> from bert_elmo_jax.nn import attention_maps
    >>> same = jnp.ones((1, 4, 1, 8))
    >>> attention_maps(same, same, jnp.array([[1, 1, 2, 0]]))[0, 0].tolist()
    [[0.5, 0.5, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    """
    scores = jnp.einsum("btah,bsah->bats", query, key, preferred_element_type=jnp.float32)
    scores = scores / math.sqrt(query.shape[-1])
    sees = visible(query.shape[1], segments, lengths, causal)
    if sees is not None:
        scores = jnp.where(jnp.broadcast_to(sees[:, None], scores.shape), scores, -jnp.inf)
    return jax.nn.softmax(scores)


def reference(
    query: Float[Array, "B T A H"],
    key: Float[Array, "B T A H"],
    value: Float[Array, "B T A H"],
    segments: Int[AnyArray, "B T"] | None = None,
    *,
    lengths: Int[AnyArray, " B"] | None = None,
    causal: bool = False,
    dropout: float = 0.0,
    dropout_key: PRNGKeyArray | None = None,
) -> Float[Array, "B T A H"]:
    """Attention written out: any device, any type, dropout on the attention maps where a key is given.

    >>> import jax, jax.numpy as jnp
    >>> from bert_elmo_jax.nn import reference
    >>> values = jnp.arange(3.0).reshape(1, 3, 1, 1)
    >>> reference(jnp.ones((1, 3, 1, 1)), jnp.ones((1, 3, 1, 1)), values, causal=True).ravel().tolist()
    [0.0, 0.5, 1.0]
    """
    maps = attention_maps(query, key, segments, lengths=lengths, causal=causal)
    return jnp.einsum("bats,bsah->btah", drop(maps.astype(value.dtype), dropout, dropout_key), value)


def fused(
    query: Float[Array, "B T A H"],
    key: Float[Array, "B T A H"],
    value: Float[Array, "B T A H"],
    segments: Int[AnyArray, "B T"] | None = None,
    *,
    lengths: Int[AnyArray, " B"] | None = None,
    causal: bool = False,
    dropout: float = 0.0,
    dropout_key: PRNGKeyArray | None = None,
    platform: str | None = None,
) -> Float[Array, "B T A H"]:
    """Attention by `jax.nn.dot_product_attention`: the same numbers as `reference` wherever it can run.

    On a GPU it is cuDNN's kernel, which never writes the attention maps out: 16-bit types only, and fastest without a
    mask or with `lengths` (what it returns for padding is then meaningless); `segments` become an explicit mask. On
    CPU and TPU it is XLA's. `platform` is where the computation will run, JAX's default backend unless given. What it
    cannot do raises: attention dropout anywhere, float32 on a GPU.

    >>> import jax, jax.numpy as jnp
    >>> from bert_elmo_jax.nn import fused, reference
    >>> q, k, v = jax.random.normal(jax.random.key(0), (3, 2, 5, 4, 8))
    >>> bool(jnp.allclose(fused(q, k, v), reference(q, k, v), atol=1e-6))
    True
    """
    platform = jax.default_backend() if platform is None else platform
    gpu = platform in ("gpu", "cuda")
    if dropout_key is not None and dropout > 0:
        raise ValueError(
            f"fused attention has no dropout on the attention maps, but a rate of {dropout} was asked for: "
            "set attention_dropout=0 (the other dropouts stay), or use implementation='reference'"
        )
    if gpu and query.dtype not in (jnp.bfloat16, jnp.float16):
        raise ValueError(
            f"fused attention on a GPU computes in 16 bits, but its inputs are {query.dtype}: "
            "set dtype='bfloat16', or use implementation='reference'"
        )
    if gpu and lengths is not None and segments is None:
        lengths = jnp.asarray(lengths, jnp.int32)
        return jax.nn.dot_product_attention(
            query,
            key,
            value,
            is_causal=causal,
            query_seq_lengths=lengths,
            key_value_seq_lengths=lengths,
            implementation="cudnn",
        )
    sees = visible(query.shape[1], segments, lengths, causal)
    if segments is None and lengths is None:
        sees = None  # is_causal says it all, and lets cuDNN skip what no one sees
    with jax.numpy_dtype_promotion("standard"):  # JAX's own code mixes types, and would not survive the strict mode
        return jax.nn.dot_product_attention(
            query,
            key,
            value,
            mask=None if sees is None else sees[:, None],
            is_causal=causal and sees is None,
            implementation="cudnn" if gpu else "xla",
        )


class SelfAttention(nn.Module):
    """Queries, keys, values, attention by one of the implementations, and the output projection.

    >>> import jax, jax.numpy as jnp
    >>> from bert_elmo_jax.nn import SelfAttention
    >>> variables = SelfAttention(num_heads=2).init(jax.random.key(0), jnp.ones((1, 3, 8)))
    >>> sorted(variables["params"])
    ['key', 'output', 'query', 'value']
    """

    num_heads: int
    implementation: Implementation = "reference"
    causal: bool = False
    dropout: float = 0.0
    stddev: float = 0.02
    dtype: DTypeLike = jnp.float32

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "B T D"],
        segments: Int[AnyArray, "B T"] | None = None,
        *,
        lengths: Int[AnyArray, " B"] | None = None,
        dropout_key: PRNGKeyArray | None = None,
        maps: bool = False,
    ) -> tuple[Float[Array, "B T D"], Float32[Array, "B A T T"] | None]:
        """Attends; with `maps`, returns the attention maps (before dropout) too."""
        b, t, d = x.shape

        def project(name: str) -> Float[Array, "B T A H"]:
            return Dense(d, self.stddev, self.dtype, name=name)(x).reshape(b, t, self.num_heads, -1)

        query, key, value = project("query"), project("key"), project("value")
        if maps and self.implementation == "fused":
            raise ValueError(
                "fused attention never holds the attention maps that were asked for: use implementation='reference'"
            )
        attend = {"reference": reference, "fused": fused}[self.implementation]
        out = attend(
            query,
            key,
            value,
            segments,
            lengths=lengths,
            causal=self.causal,
            dropout=self.dropout,
            dropout_key=dropout_key,
        )
        out = Dense(d, self.stddev, self.dtype, name="output")(out.reshape(b, t, d))
        return out, attention_maps(query, key, segments, lengths=lengths, causal=self.causal) if maps else None
