"""Shared parts of word networks: the config, the mixtures of an encoder's layers, and running a network."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Float32, PRNGKeyArray

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.nn import dropout, scalar_mix
from bert_elmo_jax.nn.any_array import AnyArray

Batch = Mapping[str, Any]
Sums = dict[str, tuple[Any, Any]]
# Computes the layers of a fine-tuned encoder from its parameters, a batch and a random key.
Encode = Callable[[Any, Batch, PRNGKeyArray | None], Float[Array, "L B T D"]]


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """The vocabulary of a network, and where it reads an encoder's layers; each network adds its own sizes.

    `places` are one or several of the network's `PLACES`, separated by commas; each has its own mixture. `layers` are
    the numbers of the mixed layers (-1: the last), separated by commas, or empty for all. With `tuned` the encoder is
    fine-tuned too, and its parameters are among the network's.

    >>> NetworkConfig(num_words=9, encoder_layers=3, encoder_width=4, layers="0,-1").mixed_layers
    (0, 2)
    """

    CALLED: ClassVar[str] = "a network"
    PLACES: ClassVar[tuple[str, ...]] = ("input", "output")
    SIZES: ClassVar[tuple[str, ...]] = ()  # fields that are at least 1
    RATES: ClassVar[tuple[str, ...]] = ()  # fields at least 0 and below 1

    num_words: int
    num_specials: int = 1
    word_size: int = 100
    characters: bool = False
    encoder_layers: int = 0
    encoder_width: int = 0
    places: str = "input"
    mix_dropout: float = 0.5
    mix_l2: float = 0.1
    tuned: bool = False
    layers: str = ""

    def __post_init__(self) -> None:
        minimum = dict.fromkeys(("num_specials", "word_size", *self.SIZES), 1)
        minimum |= dict.fromkeys(("num_words", "encoder_layers", "encoder_width"), 0)
        for name, least in minimum.items():
            if getattr(self, name) < least:
                raise ValueError(f"{self.CALLED}'s {name} is {getattr(self, name)}; it must be at least {least}")
        for name in (*self.RATES, "mix_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)}: a rate must be at least 0 and below 1")
        if self.mix_l2 < 0:
            raise ValueError(f"mix_l2={self.mix_l2}: it must be at least 0")
        where = self.at
        if not where or len(set(where)) < len(where) or not set(where) <= set(self.PLACES):
            hint = "".join(did_you_mean(place, self.PLACES) for place in where if place not in self.PLACES)
            known = ", ".join(self.PLACES)
            raise ValueError(f"places={self.places!r}: use {known}, or several of them with commas{hint}")
        if bool(self.encoder_layers) != bool(self.encoder_width):
            raise ValueError(
                f"encoder_layers={self.encoder_layers} and encoder_width={self.encoder_width}: set both or neither"
            )
        self.mixed_layers  # noqa: B018 -- raises if there is no such layer

    @property
    def at(self) -> tuple[str, ...]:
        """The places where the network reads an encoder's layers."""
        return tuple(place.strip() for place in self.places.split(","))

    @property
    def mixed_layers(self) -> tuple[int, ...]:
        """The numbers of the mixed layers."""
        count = self.encoder_layers
        if not self.layers or not count:
            return tuple(range(count))
        known = {str(n - count): n for n in range(count)} | {str(n): n for n in range(count)}
        asked = [part.strip() for part in self.layers.split(",")]
        found = tuple(known[part] for part in asked if part in known)
        if len(found) < len(asked) or len(set(found)) < len(found):
            raise ValueError(
                f"layers={self.layers!r}: use different numbers with commas, of the {count} layers of this encoder: 0 "
                f"to {count - 1}, or from the end -1 to -{count}"
            )
        return found


def mix_at_places(
    module: nn.Module,
    config: NetworkConfig,
    layers: Float[AnyArray, "L B T W"] | None,
    real: Bool[Array, "B T"],
    deterministic: bool,
) -> tuple[dict[str, Float32[Array, "B T W"]], Float32[Array, ""]]:
    """Return the mixture of an encoder's layers for each place, with dropout, and λ·‖w‖² of their weights.

    Call it inside a compact method: it creates the parameter `mix` of the module.
    """
    given = (0, 0) if layers is None else (layers.shape[0], layers.shape[3])
    if given != (config.encoder_layers, config.encoder_width):
        raise ValueError(
            f"encoder layers of {given[0]} x {given[1]} numbers were given to {config.CALLED} made for "
            f"{config.encoder_layers} x {config.encoder_width}: use the encoder it was trained with"
        )
    penalty = jnp.zeros(())
    mixed: dict[str, Array] = {}
    if layers is None:
        return mixed, penalty
    # Padding must not reach the gradients of the mixtures, even if it is NaN.
    layers = jnp.where(real[None, :, :, None], jnp.asarray(layers, jnp.float32), 0.0)
    if config.layers:
        layers = layers[jnp.array(config.mixed_layers)]
    mixes = module.param("mix", _fresh_mixes, config)
    for place in config.at:
        mix = mixes[place]
        x = scalar_mix(layers, mix["weights"], mix["gamma"])
        mixed[place] = dropout(x, config.mix_dropout, None if deterministic else module.make_rng("dropout"))
        penalty = penalty + config.mix_l2 * jnp.square(mix["weights"]).sum()
    return mixed, penalty


def beside(x: Float[Array, "B T D"], mixed: Mapping[str, Float[Array, "B T W"]], place: str) -> Float[Array, "B T E"]:
    """Concatenate the mixture of an encoder's layers to the input of a place, if the place has one.

    >>> import jax.numpy as jnp
    >>> from bert_elmo_jax.networks.word_network import beside
    >>> x, mixed = jnp.ones((1, 2, 3)), {"input": jnp.ones((1, 2, 4))}
    >>> beside(x, mixed, "input").shape, beside(x, mixed, "output").shape
    ((1, 2, 7), (1, 2, 3))
    """
    return jnp.concatenate([x, mixed[place]], axis=-1) if place in mixed else x


def run_network(
    module: nn.Module,
    config: NetworkConfig,
    params: Any,
    batch: Batch,
    key: PRNGKeyArray | None = None,
    encode: Encode | None = None,
) -> Any:
    """Return the output of a module for a batch; without a key there is no dropout.

    A batch has `words` [B, T] and `lengths` [B]. Depending on the configuration it also has `characters` [B, T, C],
    `brought` [B, T, D], and an encoder's `layers` [B, L, T, D] or the inputs of `encode`.
    """
    layers: Any = None
    own, for_encoder = (None, None) if key is None else jax.random.split(key)
    if encode is not None:
        layers = encode(params["encoder"], batch, for_encoder)
    elif config.encoder_layers:
        layers = jnp.moveaxis(jnp.asarray(batch["layers"]), 1, 0)
    rest = {name: part for name, part in params.items() if name != "encoder"}
    return module.apply(
        {"params": rest}, batch["words"], batch["lengths"], characters=batch.get("characters"),
        brought=batch.get("brought"), layers=layers, deterministic=key is None,
        rngs={} if own is None else {"dropout": own},
    )  # fmt: skip


def init_network(
    module: nn.Module,
    config: NetworkConfig,
    key: PRNGKeyArray,
    specials: Float[AnyArray, "S D"],
    words: Float[AnyArray, "V D"],
    rows: int = 1,
) -> dict[str, Any]:
    """Return new parameters of a module with the given word vectors; `rows` is its smallest batch size."""
    return with_vectors(config, jax.jit(partial(_init, module, config, rows))(key), specials, words)


def with_vectors(
    config: NetworkConfig, params: dict[str, Any], specials: Float[AnyArray, "S D"], words: Float[AnyArray, "V D"]
) -> dict[str, Any]:
    """Replace the word vectors of a parameter tree by the given ones."""
    expected = (config.num_specials, config.word_size), (config.num_words, config.word_size)
    if (specials.shape, words.shape) != expected:
        raise ValueError(
            f"word vectors of shape {specials.shape} and {words.shape} were given, "
            f"expected {expected[0]} and {expected[1]}"
        )
    vectors = {"specials": jnp.asarray(specials, jnp.float32)}
    if config.num_words:
        vectors["table"] = jnp.asarray(words, jnp.float32)
    return {**params, "words": {**params["words"], **vectors}}


def network_shapes(module: nn.Module, config: NetworkConfig, rows: int = 1) -> Any:
    """Return the shape and type of every parameter of a module except the encoder's."""
    return jax.eval_shape(partial(_init, module, config, rows), jax.random.key(0))


def _init(module: nn.Module, config: NetworkConfig, rows: int, key: PRNGKeyArray) -> dict[str, Any]:
    words, lengths = jnp.zeros((rows, 1), jnp.int32), jnp.ones(rows, jnp.int32)
    layers = jnp.zeros((config.encoder_layers, rows, 1, config.encoder_width)) if config.encoder_layers else None
    characters = jnp.ones((rows, 1, 3), jnp.int32) if config.characters else None
    return dict(module.init(key, words, lengths, characters=characters, layers=layers)["params"])


def _fresh_mixes(key: PRNGKeyArray, config: NetworkConfig) -> dict[str, dict[str, Array]]:
    return {place: {"weights": jnp.zeros(len(config.mixed_layers)), "gamma": jnp.ones(())} for place in config.at}
