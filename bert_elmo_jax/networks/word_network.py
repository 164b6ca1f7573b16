"""Shared parts of word networks: config, word vectors, mixtures of an encoder's layers, parameters, losses."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, get_args

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Float32, Int, PRNGKeyArray

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.losses.loss_types import Batch, Loss, Terms
from bert_elmo_jax.nn import CharCNN, CharRNN, dropout, embed, scalar_mix
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.dropout import dropout_options

Key = Callable[[float], PRNGKeyArray | None]
# Computes the layers of a fine-tuned encoder from its parameters, a batch and a random key.
Encode = Callable[[Any, Batch, PRNGKeyArray | None], Float[Array, "L B T D"]]

NEW = -1  # the id of a word whose vector is in `brought`
FILTER_WIDTH = 3  # characters
CharacterEncoder = Literal["cnn", "gru", "lstm"]
CHARACTER_ENCODERS: tuple[CharacterEncoder, ...] = get_args(CharacterEncoder)


@dataclass(frozen=True)
class CharacterReader:
    """The network over the characters of each word.

    `cnn` has `size` filters over three characters, max-pooled, as Peters et al. 2018; `gru` and `lstm` read them in
    both directions with `size` cells each.

    >>> CharacterReader("gru", size=3).module("characters").size
    3
    """

    encoder: CharacterEncoder = "cnn"
    size: int = 128
    embedding_size: int = 16
    layers: int = 1

    def module(self, name: str) -> nn.Module:
        """Return the network."""
        if self.encoder == "cnn":
            return CharCNN(self.embedding_size, ((FILTER_WIDTH, self.size),), 0, None, name=name)
        return CharRNN(self.embedding_size, self.size, self.encoder, self.layers, name=name)


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """The vocabulary of a network, and where it reads an encoder's layers; each network adds its own sizes.

    `places` are one or several of the network's `PLACES`, separated by commas; each has its own mixture. `layers` are
    the numbers of the mixed layers (-1 or top: the last), separated by commas, or empty for all. `encoder_columns` are
    the start and the end of the columns that are read from each layer, such as one direction's; empty for all. With
    `tuned` the encoder is fine-tuned too, and its parameters are among the network's.

    With `characters`, the vector of every word is followed by one that a `character_encoder` makes from its characters.
    It is followed by a vector of `feature_size` numbers for each of the `feature_columns` of hand-made features, which
    have `num_features` values together.

    >>> NetworkConfig(num_words=9, encoder_layers=3, encoder_width=4, layers="0,-1").mixed_layers
    (0, 2)
    """

    CALLED: ClassVar[str] = "a network"
    PLACES: ClassVar[tuple[str, ...]] = ("input", "output")
    SIZES: ClassVar[tuple[str, ...]] = ()  # fields that are at least 1
    RATES: ClassVar[tuple[str, ...]] = ()  # fields at least 0 and below 1
    ADDED: ClassVar[tuple[str, ...]] = (  # after the first runs
        "character_encoder", "character_size", "character_embedding_size", "character_layers", "encoder_columns",
        "num_features", "feature_columns", "feature_size",
    )  # fmt: skip

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
    character_encoder: CharacterEncoder = "cnn"
    character_size: int = 128
    character_embedding_size: int = 16
    character_layers: int = 1
    encoder_columns: tuple[int, ...] = ()
    num_features: int = 0
    feature_columns: int = 0
    feature_size: int = 5

    def __post_init__(self) -> None:
        sizes = ("character_size", "character_embedding_size", "character_layers", "feature_size", *self.SIZES)
        minimum = dict.fromkeys(("num_specials", "word_size", *sizes), 1)
        minimum |= dict.fromkeys(("num_words", "encoder_layers", "encoder_width", "num_features", "feature_columns"), 0)
        for name, least in minimum.items():
            if getattr(self, name) < least:
                raise ValueError(f"{self.CALLED}'s {name} is {getattr(self, name)}; it must be at least {least}")
        for name in (*self.RATES, "mix_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)}: a rate must be at least 0 and below 1")
        if self.mix_l2 < 0:
            raise ValueError(f"mix_l2={self.mix_l2}: it must be at least 0")
        if len(set(self.at)) < len(self.at) or not set(self.at) <= set(self.PLACES):
            hint = "".join(did_you_mean(place, self.PLACES) for place in self.at if place not in self.PLACES)
            places = ", ".join(self.PLACES)
            raise ValueError(f"places={self.places!r}: use {places}, or several of them with commas{hint}")
        if bool(self.encoder_layers) != bool(self.encoder_width):
            shown = f"encoder_layers={self.encoder_layers} and encoder_width={self.encoder_width}"
            raise ValueError(f"{shown}: set both or neither")
        if self.character_encoder not in CHARACTER_ENCODERS:
            hint = did_you_mean(self.character_encoder, CHARACTER_ENCODERS)
            usual = ", ".join(CHARACTER_ENCODERS)
            raise ValueError(f"character_encoder={self.character_encoder!r}: use one of {usual}{hint}")
        if self.character_encoder == "cnn" and self.character_layers > 1:
            raise ValueError(f"character_layers={self.character_layers}: the cnn has one layer; use gru or lstm")
        if self.encoder_columns and not self._has_columns:
            shown = f"encoder_columns={self.encoder_columns}"
            raise ValueError(f"{shown}: expected a first and an end of the {self.encoder_width} columns of a layer")
        self.mixed_layers  # noqa: B018 -- raises if there is no such layer

    @property
    def term(self) -> str:
        """The name of the network's own term of the loss."""
        return "cross_entropy"

    def module(self) -> nn.Module:
        """Return the network."""
        raise NotImplementedError

    @classmethod
    def fixed_width(cls, fields: Mapping[str, Any], num_labels: int) -> int:
        """Return the width of the vectors of words and features, given a run's config, or 0 if any will do."""
        return 0

    @property
    def feature_scale(self) -> float:
        """The deviation of the first vectors of hand-made features."""
        return float(self.feature_size**-0.5)

    def smallest_inputs(self) -> dict[str, Any]:
        """Return the inputs of the smallest batch: two texts of one word, because a pair has two rows."""
        layers = jnp.zeros((self.encoder_layers, 2, 1, self.encoder_width)) if self.encoder_layers else None
        characters = jnp.ones((2, 1, 3), jnp.int32) if self.characters else None
        words, lengths = jnp.zeros((2, 1), jnp.int32), jnp.ones(2, jnp.int32)
        inputs = {"words": words, "lengths": lengths, "characters": characters, "layers": layers}
        if self.feature_columns:
            inputs["features"] = jnp.zeros((2, 1, self.feature_columns), jnp.int32)
        return inputs

    @property
    def at(self) -> tuple[str, ...]:
        """The places where the network reads an encoder's layers."""
        return tuple(place.strip() for place in self.places.split(","))

    @property
    def character_reader(self) -> CharacterReader:
        """The network over the characters of each word."""
        sizes = self.character_size, self.character_embedding_size, self.character_layers
        return CharacterReader(self.character_encoder, *sizes)

    @property
    def _has_columns(self) -> bool:
        columns = self.encoder_columns
        return len(columns) == 2 and 0 <= columns[0] < columns[1] <= self.encoder_width

    @property
    def mixed_layers(self) -> tuple[int, ...]:
        """The numbers of the mixed layers."""
        count = self.encoder_layers
        if not self.layers or not count:
            return tuple(range(count))
        number_of = {str(n - count): n for n in range(count)} | {str(n): n for n in range(count)} | {"top": count - 1}
        names = [part.strip() for part in self.layers.split(",")]
        numbers = tuple(number_of[part] for part in names if part in number_of)
        if len(numbers) < len(names) or len(set(numbers)) < len(numbers):
            known_layers = f"the {count} layers of this encoder: 0 to {count - 1}, or from the end -1 (top) to -{count}"
            raise ValueError(f"layers={self.layers!r}: use different numbers with commas, of {known_layers}")
        return numbers


class WordInput(nn.Module):
    """Word ids -> vectors; with `characters` each is followed by the output of the `reader`.

    The first ids are rows of `specials`, for words without a row of their own. It is a separate parameter, so that it
    is trained while the table is frozen.

    >>> _, variables = WordInput(1, 5, 4).init_with_output(jax.random.key(0), jnp.array([[0, 3]]))
    >>> jax.tree.map(jnp.shape, variables["params"])
    {'specials': (1, 4), 'table': (5, 4)}
    """

    num_specials: int
    num_words: int
    size: int
    characters: bool = False
    reader: CharacterReader = CharacterReader()

    @nn.compact
    def __call__(
        self,
        ids: Int[AnyArray, "B T"],
        characters: Int[AnyArray, "B T C"] | None = None,
        brought: Float32[AnyArray, "B T D"] | None = None,
    ) -> Float32[Array, "B T E"]:
        """Return one vector per word, NaN for an invalid id."""
        if self.characters != (characters is not None):
            raise ValueError(
                "this network reads the characters of words: pass them"
                if self.characters
                else "characters were given to a network that does not read them: leave them out"
            )
        ids = jnp.asarray(ids)
        normal = nn.initializers.normal(self.size**-0.5)
        specials = self.param("specials", normal, (self.num_specials, self.size))
        # Two look-ups: concatenating the tables would copy them and their gradients in every step.
        in_table = (ids >= self.num_specials) & (self.num_words > 0)
        x = embed(specials, jnp.where(in_table, 0, ids if brought is None else jnp.maximum(ids, 0)))
        if self.num_words:  # checkpoints cannot hold an empty parameter
            table = self.param("table", normal, (self.num_words, self.size))
            x = jnp.where(in_table[..., None], embed(table, jnp.where(in_table, ids - self.num_specials, 0)), x)
        if brought is not None:
            x = jnp.where((ids == NEW)[..., None], jnp.asarray(brought), x)
        if characters is None:
            return x
        return jnp.concatenate([x, self.reader.module("characters")(characters)], axis=-1)


def mix_at_places(
    module: Any, layers: Float[AnyArray, "L B T W"] | None, real: Bool[Array, "B T"], deterministic: bool
) -> tuple[dict[str, Float32[Array, "B T M"]], Float32[Array, ""]]:
    """Return the mixture of an encoder's layers for each place, with dropout, and λ·‖w‖² of their weights.

    Call it inside a compact method: it creates the parameter `mix` of the module.
    """
    config: NetworkConfig = module.config
    sizes = (0, 0) if layers is None else (layers.shape[0], layers.shape[3])
    if sizes != (config.encoder_layers, config.encoder_width):
        expected = f"{config.CALLED} made for {config.encoder_layers} x {config.encoder_width}"
        problem = f"encoder layers of {sizes[0]} x {sizes[1]} numbers were given to {expected}"
        raise ValueError(f"{problem}: use the encoder it was trained with")
    penalty = jnp.zeros(())
    mixed: dict[str, Array] = {}
    if layers is None:
        return mixed, penalty
    # Padding must not reach the gradients of the mixtures, even if it is NaN.
    layers = jnp.where(real[None, :, :, None], jnp.asarray(layers, jnp.float32), 0.0)
    if config.layers:
        layers = layers[jnp.array(config.mixed_layers)]
    if config.encoder_columns:
        layers = layers[..., slice(*config.encoder_columns)]
    fresh = {"weights": jnp.zeros(len(config.mixed_layers)), "gamma": jnp.ones(())}
    mixes = module.param("mix", lambda key: dict.fromkeys(config.at, fresh))
    for place in config.at:
        mix = mixes[place]
        x = scalar_mix(layers, mix["weights"], mix["gamma"])
        mixed[place] = dropout(x, config.mix_dropout, None if deterministic else module.make_rng("dropout"))
        penalty = penalty + config.mix_l2 * jnp.square(mix["weights"]).sum()
    return mixed, penalty


def add_mixture(
    x: Float[Array, "B T D"], mixed: Mapping[str, Float[Array, "B T W"]], place: str
) -> Float[Array, "B T E"]:
    """Concatenate the mixture of an encoder's layers to the input of a place, if the place has one."""
    return jnp.concatenate([x, mixed[place]], axis=-1) if place in mixed else x


def dropout_keys(module: nn.Module, deterministic: bool) -> Key:
    """Return a function that returns the next key for dropout at a rate, or None if there is no dropout."""
    return lambda rate: None if deterministic or not rate else module.make_rng("dropout")


class WordNetwork(nn.Module):
    """Base class of networks on one batch of texts; `compute` is the network behind the words.

    `deterministic=False` needs `rngs={"dropout": key}`.
    """

    config: Any

    @nn.compact
    def __call__(
        self,
        words: Int[AnyArray, "B T"],
        lengths: Int[AnyArray, " B"],
        *,
        characters: Int[AnyArray, "B T C"] | None = None,
        brought: Float32[AnyArray, "B T D"] | None = None,
        features: Int[AnyArray, "B T F"] | None = None,
        layers: Float[AnyArray, "L B T W"] | None = None,
        deterministic: bool = True,
    ) -> Any:
        """Return the outputs of `compute`, followed by the penalty on the mixture weights."""
        c = self.config
        lengths = jnp.asarray(lengths)
        real = jnp.arange(words.shape[1])[None, :] < lengths[:, None]
        mixed, penalty = mix_at_places(self, layers, real, deterministic)
        word_input = WordInput(c.num_specials, c.num_words, c.word_size, c.characters, c.character_reader, name="words")
        x = word_input(words, characters, brought)
        if c.feature_columns:
            start = nn.initializers.normal(c.feature_scale)
            table = self.param("features", start, (c.num_features, c.feature_size))
            x = jnp.concatenate([x, embed(table, jnp.asarray(features)).reshape(*words.shape, -1)], axis=-1)
        x = jnp.where(real[..., None], x, 0.0)
        return *self.compute(x, mixed, real, lengths, dropout_keys(self, deterministic)), penalty

    def compute(
        self, x: Float32[Array, "B T E"], mixed: Any, real: Bool[Array, "B T"], lengths: Int[Array, " B"], key: Key
    ) -> tuple[Any, ...]:
        """Return the outputs for word vectors and the mixtures of each place; `key` comes from `dropout_keys`."""
        raise NotImplementedError


def encoder_layers(config: NetworkConfig, params: Any, batch: Batch, encode: Encode | None, key: Any) -> Any:
    """Return the layers [L, B, T, W] of a batch, computed with `encode` or stored in it, or None without an encoder."""
    if encode is not None:
        return encode(params["encoder"], batch, key)
    return jnp.moveaxis(jnp.asarray(batch["layers"]), 1, 0) if config.encoder_layers else None


def apply_network(config: NetworkConfig, params: Any, key: PRNGKeyArray | None, *args: Any, **inputs: Any) -> Any:
    """Return the output of a network; without a key there is no dropout."""
    variables = {"params": {name: part for name, part in params.items() if name != "encoder"}}
    return config.module().apply(variables, *args, **inputs, **dropout_options(key))


def run_network(
    config: NetworkConfig, params: Any, batch: Batch, key: PRNGKeyArray | None = None, encode: Encode | None = None
) -> Any:
    """Return the outputs and the penalty of a network for a batch; without a key there is no dropout.

    A batch has `words` [B, T] and `lengths` [B]. Depending on the configuration it also has `characters` [B, T, C],
    `brought` [B, T, D], `features` [B, T, F], and an encoder's `layers` [B, L, T, D] or the inputs of `encode`.
    """
    network_key, for_encoder = (None, None) if key is None else jax.random.split(key)
    layers = encoder_layers(config, params, batch, encode, for_encoder)
    inputs = {name: batch.get(name) for name in ("characters", "brought", "features")}
    return apply_network(config, params, network_key, batch["words"], batch["lengths"], layers=layers, **inputs)


def init_network(
    config: NetworkConfig, key: PRNGKeyArray, specials: Float[AnyArray, "S D"], words: Float[AnyArray, "V D"]
) -> dict[str, Any]:
    """Return new parameters of the network of a configuration, with the given word vectors.

    >>> from bert_elmo_jax.networks import TaggerConfig
    >>> config, tables = TaggerConfig(num_tags=3, num_words=9), (jnp.zeros((1, 100)), jnp.ones((9, 100)))
    >>> jax.eval_shape(lambda key: init_network(config, key, *tables), jax.random.key(0))["tags"]["kernel"].shape
    (400, 3)
    """
    expected = (config.num_specials, config.word_size), (config.num_words, config.word_size)
    if (shapes := (specials.shape, words.shape)) != expected:
        raise ValueError("word vectors of shape {} and {} were given, expected {} and {}".format(*shapes, *expected))
    vectors = {"specials": jnp.asarray(specials, jnp.float32)}
    if config.num_words:
        vectors["table"] = jnp.asarray(words, jnp.float32)
    params = _init(config, key)
    return {**params, "words": {**params["words"], **vectors}}


def network_shapes(config: NetworkConfig) -> Any:
    """Return the shape and type of every parameter of a network except the encoder's.

    >>> from bert_elmo_jax.networks import BcnConfig
    >>> network_shapes(BcnConfig(num_labels=3, num_words=9, pairs=True))["maxout_0"]["kernel"].shape
    (4800, 4800)
    """
    return jax.eval_shape(partial(_init, config), jax.random.key(0))


@partial(jax.jit, static_argnums=0)  # by configuration, so that the seeds of a task compile it once
def _init(config: NetworkConfig, key: PRNGKeyArray) -> dict[str, Any]:
    return dict(config.module().init(key, **config.smallest_inputs())["params"])


def make_loss(config: NetworkConfig, run: Callable[[Any, Batch, PRNGKeyArray | None], tuple[Any, Any]]) -> Loss:
    """Return a loss for `train.make_step`, given a function that returns the sums of `config.term` and the penalty.

    With an encoder it also has the term `mix_l2`, which is λ·‖w‖² of the mixture weights.
    """

    def loss(params: Any, batch: Batch, key: PRNGKeyArray | None, carry: Any) -> tuple[Terms, Terms, Any]:
        sums, penalty = run(params, {name: jnp.asarray(values) for name, values in batch.items()}, key)
        mixture = {"mix_l2": (penalty, jnp.ones(()))} if config.encoder_layers else {}
        return {config.term: sums} | mixture, {}, carry

    return loss


def network_coefficients(config: NetworkConfig) -> dict[str, float]:
    """Return the coefficients of the terms of the loss.

    >>> from bert_elmo_jax.networks import BcnConfig
    >>> network_coefficients(BcnConfig(num_labels=2, num_words=9, encoder_layers=3, encoder_width=8))
    {'cross_entropy': 1.0, 'mix_l2': 1.0}
    """
    return {config.term: 1.0} | ({"mix_l2": 1.0} if config.encoder_layers else {})
