"""One vector per text: pooling over its pieces, then dense layers and normalisation, as in sentence-transformers.

Reimers and Gurevych 2019, https://arxiv.org/abs/1908.10084.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Float32, Int, PRNGKeyArray

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.heads.features import pieces_of_segments
from bert_elmo_jax.nn.activations import gelu
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.pooling import LOW

MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
SIMILARITIES = ("cosine", "dot", "dot_product", "euclidean", "manhattan")
NAME = "sentence"  # of the dense layers in the parameter tree
ACTIVATIONS: Mapping[str, Any] = {
    "identity": lambda x: x,
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
    "gelu": gelu,
    "sigmoid": jax.nn.sigmoid,
    "silu": jax.nn.silu,
}


@dataclass(frozen=True)
class Dense:
    """A dense layer after the pooling, and its activation."""

    inputs: int
    outputs: int
    bias: bool = True
    activation: str = "tanh"

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            hint = did_you_mean(self.activation, ACTIVATIONS)
            raise ValueError(f"activation {self.activation!r} is not known; use {', '.join(ACTIVATIONS)}{hint}")


@dataclass(frozen=True)
class SentenceHead:
    """Settings for turning a text into one vector.

    Several `pooling` modes are concatenated. `layers` are dense layers and the word "normalize", in order. `prompts`
    are (name, text); a prompt is put before a text, and `default_prompt` names the one used unless another is asked
    for. Without `include_prompt` its pieces are left out of the pooling. A text is cut to `max_length` pieces, and
    lower-cased first if `lowercase`. Vectors are cut to their first `vector_width` numbers unless another width is
    asked for.

    >>> SentenceHead(("cls", "mean"), (Dense(128, 32), "normalize")).width(64)
    32
    """

    pooling: tuple[str, ...] = ("mean",)
    layers: tuple[Any, ...] = ()  # Dense, or "normalize"
    max_length: int | None = None  # None: the positions of the model
    lowercase: bool = False
    prompts: tuple[tuple[str, str], ...] = ()
    default_prompt: str | None = None
    include_prompt: bool = True
    similarity: str = "cosine"
    vector_width: int | None = None  # None: all numbers

    def __post_init__(self) -> None:
        for mode in self.pooling:
            if mode not in MODES:
                raise ValueError(f"pooling {mode!r} is not known; use {', '.join(MODES)}{did_you_mean(mode, MODES)}")
        if self.similarity not in SIMILARITIES:
            raise ValueError(f"similarity {self.similarity!r} is not known; use {', '.join(SIMILARITIES)}")
        if not self.pooling:
            raise ValueError(f"no pooling is given; use one or several of {', '.join(MODES)}")
        if self.default_prompt is not None and self.default_prompt not in dict(self.prompts):
            names = ", ".join(dict(self.prompts)) or "none"
            raise ValueError(f"the default prompt {self.default_prompt!r} is not among the prompts ({names})")

    def width(self, hidden_size: int) -> int:
        """Return the size of a text's vector; raise if a dense layer reads vectors of another size."""
        width = hidden_size * len(self.pooling)
        for layer in self.layers:
            if isinstance(layer, Dense):
                if layer.inputs != width:
                    raise ValueError(f"a dense layer reads vectors of {layer.inputs}, but gets {width}")
                width = layer.outputs
        return width

    def default_width(self, hidden_size: int) -> int:
        """Return the size of a vector if no width is requested.

        >>> SentenceHead(vector_width=32).default_width(64)
        32
        """
        width = self.width(hidden_size)
        return min(self.vector_width or width, width)

    @property
    def prompt(self) -> str:
        """The text of the default prompt, "" without one."""
        return "" if self.default_prompt is None else dict(self.prompts)[self.default_prompt]

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every parameter by its path in a model's tree.

        >>> SentenceHead(layers=(Dense(64, 8, bias=False),)).shapes()
        {'sentence/dense_0/kernel': (64, 8)}
        """
        table: dict[str, tuple[int, ...]] = {}
        for n, layer in enumerate(layer for layer in self.layers if isinstance(layer, Dense)):
            table[f"{NAME}/dense_{n}/kernel"] = (layer.inputs, layer.outputs)
            if layer.bias:
                table[f"{NAME}/dense_{n}/bias"] = (layer.outputs,)
        return table


def init_sentence_head(head: SentenceHead, key: PRNGKeyArray) -> dict[str, Any]:
    """Return fresh parameters of the dense layers: `{"dense_0": …}`; {} without any."""
    params: dict[str, Any] = {}
    for path, shape in head.shapes().items():
        _, layer, name = path.split("/")
        layer_key = jax.random.fold_in(key, int(layer.removeprefix("dense_")))
        value = jax.nn.initializers.lecun_normal()(layer_key, shape) if name == "kernel" else jnp.zeros(shape)
        params.setdefault(layer, {})[name] = value
    return params


def sentence_vectors(
    head: SentenceHead,
    params: Mapping[str, Any],
    x: Float[AnyArray, "B T D"],
    segments: Int[AnyArray, "B T"],
    positions: Int[AnyArray, "B T"],
    number: int,
    skip: int = 0,
) -> Float32[Array, "B {number} E"]:
    """Return the vectors of the texts 1 to `number` of each row; `params` are the dense layers' parameters.

    `positions` count from 0 in every text, and the first `skip` pieces are not pooled. Segments without pieces have
    meaningless, but finite vectors.

    >>> head = SentenceHead(("mean",), ("normalize",))
    >>> x, segments = jnp.array([[[3.0, 0.0], [3.0, 8.0], [9.0, 9.0]]]), jnp.array([[1, 1, 0]])
    >>> sentence_vectors(head, {}, x, segments, jnp.array([[0, 1, 0]]), 1).round(3).tolist()
    [[[0.6000000238418579, 0.800000011920929]]]
    """
    segments, positions = jnp.asarray(segments), jnp.asarray(positions)
    pooled = pool_texts(jnp.asarray(x), segments, positions, number, head.pooling, skip)
    dense = 0
    for layer in head.layers:
        if layer == "normalize":
            from bert_elmo_jax.losses.similarity import unit  # loading an encoder imports no losses

            pooled = unit(pooled)
            continue
        dense_params = params[f"dense_{dense}"]
        pooled = jnp.einsum("bsd,de->bse", pooled, dense_params["kernel"], precision="highest")
        if layer.bias:
            pooled = pooled + dense_params["bias"][None, None, :]
        pooled = ACTIVATIONS[layer.activation](pooled)
        dense += 1
    return pooled


def pool_texts(
    x: Float[Array, "B T D"],
    segments: Int[Array, "B T"],
    positions: Int[Array, "B T"],
    number: int,
    modes: Sequence[str],
    skip: int = 0,
) -> Float32[Array, "B {number} E"]:
    """Return the pooled pieces of each of the texts 1 to `number` of a row, the modes side by side.

    `mean_sqrt_len_tokens` divides the sum by the square root of the number of pieces. `weightedmean` weights the n-th
    piece by n. `cls` and `lasttoken` take the first and the last piece that is not skipped.
    """
    x = jnp.where((segments > 0)[..., None], x.astype(jnp.float32), 0.0)
    segments = jnp.where(positions >= skip, segments, 0)
    inside = pieces_of_segments(segments, number)
    share = partial(jnp.einsum, "bst,btd->bsd", precision="highest")  # also where products are rounded by default
    pooled = []
    for mode in modes:
        if mode == "max":
            pooled.append(_largest(x, segments, number))
            continue
        weights = _weights(mode, inside, positions)
        if mode in ("mean", "weightedmean"):
            weights = weights / jnp.maximum(weights.sum(axis=2, keepdims=True), 1.0)
        elif mode == "mean_sqrt_len_tokens":
            weights = weights / jnp.sqrt(jnp.maximum(weights.sum(axis=2, keepdims=True), 1.0))
        pooled.append(share(weights, x))
    return jnp.concatenate(pooled, axis=-1)


def _weights(mode: str, inside: Bool[Array, "B S T"], positions: Int[Array, "B T"]) -> Float32[Array, "B S T"]:
    place = jnp.broadcast_to(positions[:, None, :], inside.shape)
    if mode == "weightedmean":
        return jnp.where(inside, (place + 1).astype(jnp.float32), 0.0)
    if mode == "cls":
        inside &= place == jnp.where(inside, place, place.shape[2]).min(axis=2, keepdims=True)
    elif mode == "lasttoken":
        inside &= place == jnp.where(inside, place, -1).max(axis=2, keepdims=True)
    return inside.astype(jnp.float32)


def _largest(x: Float32[Array, "B T D"], segments: Int[Array, "B T"], number: int) -> Float32[Array, "B S D"]:
    """Return the elementwise maximum over each text; an array of [B, S, T, D] would be too large for several."""
    if number == 1:
        return jnp.where((segments == 1)[..., None], x, LOW).max(axis=1, keepdims=True)
    rows, _, size = x.shape
    kinds = number + 1
    owner = segments + kinds * jnp.arange(rows, dtype=segments.dtype)[:, None]
    largest = jax.ops.segment_max(x.reshape(-1, size), owner.reshape(-1), rows * kinds)
    return jnp.maximum(largest.reshape(rows, kinds, size)[:, 1:], LOW)
