"""Self-attention by a function that is chosen by name: `reference`, `fused`, on TPUs `splash`, or a registered one.

`reference` supports everything, and `fused` is faster. All support packed rows: `segments [B, T]` numbers the sequences
of a row (0 is padding), and a token attends only to its own sequence. Padding counts as a sequence, so that no softmax
is empty and rows of padding stay finite. For rows of one sequence, give `lengths [B]` instead. With `window`, a token
attends only to that many tokens on each side. `bias` is added to the scaled scores, for relative positions; `splash`
does not take it.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Float32, Int, PRNGKeyArray

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.dropout import dropout as drop
from bert_elmo_jax.nn.layers import Dense
from bert_elmo_jax.nn.matrix_product import float32_scores
from bert_elmo_jax.nn.rotary import Angles, rotate
from bert_elmo_jax.nn.splash import splash


def visible(
    tokens: Any,  # a whole number, or the symbol of an export
    segments: Int[AnyArray, "B T"] | None,
    lengths: Int[AnyArray, " B"] | None,
    causal: bool,
    window: int | None = None,
) -> Bool[Array, "_ T T"] | None:
    """Return the mask of the keys (last axis) that each query may see, or None if it may see all.

    >>> visible(4, None, None, causal=False, window=1)[0].astype(int).tolist()
    [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]
    >>> visible(3, jnp.array([[1, 1, 2]]), None, causal=True)[0].astype(int).tolist()
    [[1, 0, 0], [1, 1, 0], [0, 0, 1]]
    """
    if segments is not None and lengths is not None:
        raise ValueError("attention got both segments and lengths; give segments for packed rows, else lengths")
    if lengths is not None:
        segments = (jnp.arange(tokens)[None, :] < jnp.asarray(lengths)[:, None]).astype(jnp.int32)
    near = jnp.tri(tokens, dtype=bool)[None] if causal else None
    if window is not None:
        band = jnp.tri(tokens, k=window, dtype=bool) & jnp.tri(tokens, k=window, dtype=bool).T
        near = band[None] if near is None else near & band[None]
    if segments is None:
        return near
    same = jnp.asarray(segments)[:, :, None] == jnp.asarray(segments)[:, None, :]
    return same if near is None else same & jnp.broadcast_to(near, same.shape)


def attention_maps(
    query: Float[Array, "B T A H"],
    key: Float[Array, "B T A H"],
    segments: Int[AnyArray, "B T"] | None = None,
    *,
    lengths: Int[AnyArray, " B"] | None = None,
    causal: bool = False,
    window: int | None = None,
    bias: Float[Array, "_ A T T"] | None = None,
) -> Float32[Array, "B A T T"]:
    """Return the attention of each query (third axis) to each key (last axis), in float32.

    It is softmax(query · key / √H + bias), where a bias may have one row for all.

    >>> same = jnp.ones((1, 4, 1, 8))
    >>> attention_maps(same, same, jnp.array([[1, 1, 2, 0]]))[0, 0].tolist()
    [[0.5, 0.5, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    """
    scores = float32_scores(partial(jnp.einsum, "btah,bsah->bats"), query, key)
    scores = scores / math.sqrt(query.shape[-1])
    if bias is not None:
        scores = scores + jnp.broadcast_to(bias.astype(jnp.float32), scores.shape)
    sees = visible(query.shape[1], segments, lengths, causal, window)
    if sees is not None:
        scores = jnp.where(jnp.broadcast_to(sees[:, None], scores.shape), scores, -jnp.inf)
    return jax.nn.softmax(scores)


def reference(
    query: Float[Array, "B T A H"],
    key: Float[Array, "B T A H"],
    value: Float[Array, "B T A V"],
    segments: Int[AnyArray, "B T"] | None = None,
    *,
    lengths: Int[AnyArray, " B"] | None = None,
    causal: bool = False,
    window: int | None = None,
    bias: Float[Array, "_ A T T"] | None = None,
    dropout: float = 0.0,
    dropout_key: PRNGKeyArray | None = None,
) -> Float[Array, "B T A V"]:
    """Compute attention on any device and in any type, with dropout on the attention maps if a key is given.

    >>> values = jnp.arange(3.0).reshape(1, 3, 1, 1)
    >>> reference(jnp.ones((1, 3, 1, 1)), jnp.ones((1, 3, 1, 1)), values, causal=True).ravel().tolist()
    [0.0, 0.5, 1.0]
    """
    maps = attention_maps(query, key, segments, lengths=lengths, causal=causal, window=window, bias=bias)
    return jnp.einsum("bats,bsah->btah", drop(maps.astype(value.dtype), dropout, dropout_key), value)


def fused(
    query: Float[Array, "B T A H"],
    key: Float[Array, "B T A H"],
    value: Float[Array, "B T A H"],
    segments: Int[AnyArray, "B T"] | None = None,
    *,
    lengths: Int[AnyArray, " B"] | None = None,
    causal: bool = False,
    window: int | None = None,
    bias: Float[Array, "_ A T T"] | None = None,
    dropout: float = 0.0,
    dropout_key: PRNGKeyArray | None = None,
    platform: str | None = None,
    mask_gradients: bool = True,
) -> Float[Array, "B T A H"]:
    """Compute attention by `jax.nn.dot_product_attention`; raise on attention dropout, and on float32 on a GPU.

    On a GPU this is cuDNN's kernel, which never stores the attention maps: fastest without a mask or with `lengths`
    (outputs at padding are then zeros); `segments` and `window` become an explicit mask. On CPU and TPU it is XLA's.
    `platform` is where the computation will run, by default JAX's default backend. With `mask_gradients=False`, the
    gradients of the inputs are undefined at padding, and the caller masks them.

    >>> q, k, v = jax.random.normal(jax.random.key(0), (3, 2, 5, 4, 8))
    >>> bool(jnp.allclose(fused(q, k, v), reference(q, k, v), atol=1e-6))
    True
    """
    platform = jax.default_backend() if platform is None else platform
    gpu = platform in ("gpu", "cuda")
    if dropout_key is not None and dropout > 0:
        raise ValueError(
            f"fused attention has no dropout on the attention maps, but got a rate of {dropout}: "
            "set attention_dropout=0 (the other dropouts stay), or use attention='reference'"
        )
    if gpu and query.dtype not in (jnp.bfloat16, jnp.float16):
        raise ValueError(
            f"fused attention on a GPU computes in 16 bits, but its inputs are {query.dtype}: "
            "set dtype='bfloat16', or use attention='reference'"
        )
    # is_causal and lengths instead of a mask let cuDNN skip masked keys.
    by_lengths = gpu and lengths is not None and segments is None and window is None
    real = jnp.asarray(lengths, jnp.int32) if by_lengths else None
    no_mask = by_lengths or (segments is None and lengths is None and window is None)
    mask = None if no_mask else visible(query.shape[1], segments, lengths, causal, window)
    if real is not None:  # cuDNN defines neither outputs nor gradients at padding, and 0 · NaN would spoil the weights'
        inside = (jnp.arange(query.shape[1])[None, :] < real[:, None])[:, :, None, None]
        if mask_gradients:
            query, key, value = (_mask_gradient(x, inside) for x in (query, key, value))
    with jax.numpy_dtype_promotion("standard"):  # JAX's own code mixes types
        out = jax.nn.dot_product_attention(
            query,
            key,
            value,
            bias=None if bias is None else bias.astype(query.dtype),
            mask=None if mask is None else mask[:, None],
            is_causal=causal and mask is None,
            query_seq_lengths=real,
            key_value_seq_lengths=real,
            implementation="cudnn" if gpu else "xla",
        )
    return out if real is None else jnp.where(inside, out, jnp.zeros_like(out))


@jax.custom_vjp
def _mask_gradient(x: Array, inside: Array) -> Array:
    """Return `x`, whose gradient is zero elsewhere."""
    return x


def _mask_backward(inside: Array, g: Array) -> tuple[Array, None]:
    return jnp.where(inside, g, jnp.zeros_like(g)), None


_mask_gradient.defvjp(lambda x, inside: (x, inside), _mask_backward)


# (query, key, value, segments, *, lengths, causal, window, bias, dropout, dropout_key) -> output, as in `reference`
Attend = Callable[..., Array]
BUILT_IN: Mapping[str, Attend] = {"reference": reference, "fused": fused, "splash": splash}  # equal up to rounding
REGISTERED: dict[str, Attend] = {}


def register_attention(name: str, attend: Attend) -> None:
    """Let every transformer compute its self-attention by a function, with `attention=name` in its configuration.

    `attend` is called like `reference`, with `bias` only in families of relative positions. It must keep the sequences
    of packed rows apart, and may refuse what it does not support. Another function of the same name replaces the first,
    and the compiled functions of this process are dropped. A file that calls this must be imported in every process
    that trains or loads such a model.

    >>> def uniform(query, key, value, segments=None, **options):
    ...     return reference(0 * query, key, value, segments, **options)
    >>> register_attention("uniform", uniform)
    >>> layer = SelfAttention(num_heads=2, attention="uniform")
    >>> layer.init_with_output(jax.random.key(0), jnp.ones((1, 3, 8)))[0][0].shape
    (1, 3, 8)
    """
    if name in BUILT_IN or name in ("bidirectional", "causal"):
        raise ValueError(f"attention {name!r} is a name of this package: register your function under another one")
    if not callable(attend):
        raise TypeError(f"attention {name!r}: {attend!r:.60} is given; expected a function called like `reference`")
    arguments = {"lengths": None, "causal": False, "window": None, "dropout": 0.0, "dropout_key": None}
    try:
        inspect.signature(attend).bind("query", "key", "value", "segments", **arguments)
    except TypeError as error:
        raise TypeError(
            f"attention {name!r}: {error}; it is called as attend(query, key, value, segments, "
            f"{', '.join(f'{argument}=…' for argument in arguments)}); accept **options for those that it does not use"
        ) from None
    if REGISTERED.get(name, attend) is not attend:
        jax.clear_caches()
    REGISTERED[name] = attend


def get_attention(name: str) -> Attend:
    """Return the function of a name; raise if there is none."""
    functions = {**BUILT_IN, **REGISTERED}
    if name not in functions:
        raise ValueError(
            f"attention is {name!r}; it is one of {', '.join(functions)}{did_you_mean(name, functions)} (for an "
            "attention of your own, first import the file that registers it)"
        )
    return functions[name]


def check_bias(name: str) -> None:
    """Raise if an attention takes no bias of relative positions.

    >>> check_bias("splash")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: attention 'splash' has no argument bias, ...
    """
    parameters = inspect.signature(get_attention(name)).parameters.values()
    if not any(part.name == "bias" or part.kind is inspect.Parameter.VAR_KEYWORD for part in parameters):
        raise ValueError(
            f"attention {name!r} has no argument bias, which the relative positions of this model need: use "
            "attention='reference' or 'fused'"
        )


def choose_attention(stored: str, requested: str | None) -> str:
    """Return the attention of a stored model: the one requested (None: the reference) if the numbers stay the same.

    A model that was trained with a registered function keeps it, unless another registered one is requested.
    """
    requested = requested or "reference"
    return stored if stored not in BUILT_IN and requested in BUILT_IN else requested


class SelfAttention(nn.Module):
    """Multi-head self-attention with projections of queries, keys, values and output.

    >>> variables = SelfAttention(num_heads=2).init(jax.random.key(0), jnp.ones((1, 3, 8)))
    >>> sorted(variables["params"])
    ['key', 'output', 'query', 'value']
    """

    num_heads: int
    attention: str = "reference"  # the name of a function
    causal: bool = False
    dropout: float = 0.0
    stddev: float | None = 0.02
    dtype: DTypeLike = jnp.float32
    window: int | None = None
    use_bias: bool = True
    output_stddev: float | None = None  # of the output's kernel; None: `stddev`
    cut: float = 2.0  # of the initialiser, in standard deviations
    key_size: int | None = None  # of a query or key of one head; None: D / heads
    value_size: int | None = None  # of a value of one head; None: D / heads
    key_value_heads: int | None = None  # of keys and values, each for several queries; None: num_heads

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "B T D"],
        segments: Int[AnyArray, "B T"] | None = None,
        *,
        lengths: Int[AnyArray, " B"] | None = None,
        angles: Angles | None = None,
        dropout_key: PRNGKeyArray | None = None,
        maps: bool = False,
        scale: Float[AnyArray, ""] | None = None,
        bias: Float[AnyArray, "_ A T T"] | None = None,
    ) -> tuple[Float[Array, "B T D"], Float32[Array, "B A T T"] | None]:
        """Return the output and, with `maps`, the attention maps before dropout.

        `angles` rotate queries and keys, `scale` multiplies the queries, and `bias` is added to the scores.
        """
        b, t, d = x.shape
        how: dict[str, Any] = {"dtype": self.dtype, "use_bias": self.use_bias, "cut": self.cut}

        def project(name: str, size: int | None, heads: int) -> Float[Array, "B T A _"]:
            width = (d // self.num_heads if size is None else size) * heads
            return Dense(width, self.stddev, name=name, **how)(x).reshape(b, t, heads, -1)

        pairs = self.key_value_heads or self.num_heads
        query, key = project("query", self.key_size, self.num_heads), project("key", self.key_size, pairs)
        value = project("value", self.value_size, pairs)
        if angles is not None:
            query, key = rotate(query, angles), rotate(key, angles)
        if pairs < self.num_heads:
            key, value = (jnp.repeat(part, self.num_heads // pairs, axis=2) for part in (key, value))
        if scale is not None:
            query = query * jnp.asarray(scale).astype(query.dtype)
        if maps and self.attention != "reference":
            raise ValueError(f"{self.attention} attention cannot return the attention maps: use attention='reference'")
        rules: dict[str, Any] = {"lengths": lengths, "causal": self.causal, "window": self.window}
        if bias is not None:
            rules["bias"] = bias
        out = get_attention(self.attention)(
            query, key, value, segments, **rules, dropout=self.dropout, dropout_key=dropout_key
        )
        stddev = self.stddev if self.output_stddev is None else self.output_stddev
        out = Dense(d, stddev, name="output", **how)(out.reshape(b, t, -1))
        return out, attention_maps(query, key, segments, **rules) if maps else None
