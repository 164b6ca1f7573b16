"""A greedy parser of dependencies with arc-standard transitions, which can read an encoder's layers.

Chen and Manning 2014, https://aclanthology.org/D14-1082/: a layer of `x³` on the vectors of 18 words, their tags and 12
relations chooses the next transition. The product of every word with its part of the layer is computed once for all 18
places, so that a transition costs a sum of 30 vectors and a product with the transitions.

Transitions have the numbers of `data.tasks.tree_rows`: 0 shifts, 1 + 2r is a left arc and 2 + 2r a right arc
with relation r. The nodes of a sentence of T words are 0 (the root), 1 to T, and T + 1 where there is no word.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int, Int32, PRNGKeyArray

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.losses import cross_entropy
from bert_elmo_jax.networks.word_network import (
    Batch,
    Encode,
    Key,
    Loss,
    NetworkConfig,
    WordNetwork,
    add_mixture,
    make_loss,
    run_network,
)
from bert_elmo_jax.nn import Dense, dropout

# Three words of the stack, three of the buffer; leftmost, rightmost and the second of each of two words of the stack;
# the leftmost of the leftmost and the rightmost of the rightmost.
PLACES, WITH_RELATION = 18, 12
IMPOSSIBLE = -1e9
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {"cube": lambda x: x * x * x, "relu": jax.nn.relu}


@dataclass(frozen=True, kw_only=True)
class ParserConfig(NetworkConfig):
    """The sizes of a parser.

    With `num_tags`, it reads a tag of every word. `root_relation` is the relation that only the root has, -1 if
    training data have no such relation. `word_dropout` applies to the vectors of words, `dropout` to the hidden layer.

    >>> ParserConfig(num_labels=37, num_words=100).num_actions
    75
    """

    CALLED: ClassVar[str] = "a parser"
    PLACES: ClassVar[tuple[str, ...]] = ("input",)
    SIZES: ClassVar[tuple[str, ...]] = ("num_labels", "hidden_size", "tag_size", "relation_size")
    RATES: ClassVar[tuple[str, ...]] = ("dropout", "word_dropout")

    num_labels: int
    num_tags: int = 0
    root_relation: int = -1
    hidden_size: int = 200
    tag_size: int = 50
    relation_size: int = 50
    activation: Literal["cube", "relu"] = "cube"
    dropout: float = 0.5
    word_dropout: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.activation not in ACTIVATIONS:
            hint = did_you_mean(self.activation, ACTIVATIONS)
            raise ValueError(f"activation={self.activation!r} is not known; use {' or '.join(ACTIVATIONS)}{hint}")

    @property
    def num_actions(self) -> int:
        """The number of transitions."""
        return 1 + 2 * self.num_labels

    def module(self) -> "Parser":
        """Return the network."""
        return Parser(self)


class Tables(NamedTuple):
    """The parts of the hidden layer that words, tags and relations add at each place, and the layer of transitions."""

    words: Float32[Array, "B N 18 H"]
    tags: Float32[Array, "G 18 H"] | None
    relations: Float32[Array, "R 12 H"]
    bias: Float32[Array, " H"]
    actions: dict[str, Array]


class Parser(WordNetwork):
    """Words -> the tables from which `action_scores` computes the scores of transitions.

    >>> network, ones = Parser(ParserConfig(num_labels=3, num_words=9, hidden_size=4)), jnp.ones((2, 5), jnp.int32)
    >>> jax.eval_shape(network.init_with_output, jax.random.key(0), ones, ones[:, 0])[0][0].words.shape
    (2, 7, 18, 4)
    """

    config: ParserConfig

    def compute(
        self, x: Float32[Array, "B T E"], mixed: Any, real: Bool[Array, "B T"], lengths: Int[Array, " B"], key: Key
    ) -> tuple[Tables]:
        """Return the tables of a batch."""
        c = self.config
        x = add_mixture(unit(x), {place: unit(mixture) for place, mixture in mixed.items()}, "input")
        x = dropout(x, c.word_dropout, key(c.word_dropout))
        normal = nn.initializers.normal
        ends = self.param("ends", normal(c.word_size**-0.5), (2, x.shape[-1]))  # the root, and no word
        first, last = (jnp.broadcast_to(end, (len(x), 1, len(end))) for end in ends)

        def hidden(x: Array, places: int, name: str) -> Array:
            layer = Dense(places * c.hidden_size, x.shape[-1] ** -0.5, use_bias=False, name=name)
            return layer(x).reshape(*x.shape[:-1], places, c.hidden_size)

        tags = None
        if c.num_tags:
            # The last rows are of an unknown tag, the root, and no word.
            tags = self.param("tags", normal(c.tag_size**-0.5), (c.num_tags + 3, c.tag_size))
            tags = hidden(tags, PLACES, "tags_hidden")
        relations = self.param("relations", normal(c.relation_size**-0.5), (c.num_labels + 1, c.relation_size))
        bias = self.param("bias", nn.initializers.zeros, (c.hidden_size,))
        size = (c.hidden_size, c.num_actions)
        actions = {
            "kernel": self.param("actions_kernel", normal(c.hidden_size**-0.5), size),
            "bias": self.param("actions_bias", nn.initializers.zeros, size[1:]),
        }
        words = hidden(jnp.concatenate([first, x, last], axis=1), PLACES, "words_hidden")
        return (Tables(words, tags, hidden(relations, WITH_RELATION, "relations_hidden"), bias, actions),)


def unit(x: Float32[Array, "*B E"]) -> Float32[Array, "*B E"]:
    """Return vectors of length 1: the cube of a sum depends much on the lengths, and pretrained vectors have any.

    >>> unit(jnp.array([3.0, 4.0])).round(3).tolist()
    [0.6000000238418579, 0.800000011920929]
    """
    return x * jax.lax.rsqrt(jnp.square(x).sum(axis=-1, keepdims=True) + 1e-6)


class Configuration(NamedTuple):
    """The stack, the buffer and the arcs so far of every sentence of a batch.

    `dependents` of a node are its leftmost, its rightmost, the second from the left and the second from the right.
    """

    stack: Int32[Array, "B S"]
    depth: Int32[Array, " B"]
    word: Int32[Array, " B"]  # the first of the buffer
    heads: Int32[Array, "B N"]
    relations: Int32[Array, "B N"]
    dependents: Int32[Array, "B 4 N"]


def start(rows: int, width: int, num_labels: int) -> Configuration:
    """Return the configuration with the root on the stack; no relation is `num_labels`.

    >>> start(1, 2, 5).relations.tolist()
    [[5, 5, 5, 5]]
    """
    nodes = width + 2
    return Configuration(
        stack=jnp.zeros((rows, width + 1), jnp.int32),
        depth=jnp.ones(rows, jnp.int32),
        word=jnp.ones(rows, jnp.int32),
        heads=jnp.zeros((rows, nodes), jnp.int32),
        relations=jnp.full((rows, nodes), num_labels, jnp.int32),
        dependents=jnp.full((rows, 4, nodes), nodes - 1, jnp.int32),
    )


def read_places(
    now: Configuration, lengths: Int[Array, " B"]
) -> tuple[Int32[Array, "B 18"], Int32[Array, "B 12"], Bool[Array, "B 3"]]:
    """Return the words that the network reads, the relations of the last 12, and whether it may shift, go left, right.

    The root has one dependent, which is the last to get its head.
    """
    nothing = now.heads.shape[1] - 1
    depth = now.depth[:, None]
    at = depth - jnp.array([[1, 2, 3]])
    stack = jnp.where(at >= 0, jnp.take_along_axis(now.stack, jnp.maximum(at, 0), axis=1), nothing)
    buffer = now.word[:, None] + jnp.arange(3)[None]
    buffer = jnp.where(buffer <= lengths[:, None], buffer, nothing)
    nearest = jnp.take_along_axis(now.dependents, stack[:, None, :2], axis=2)  # [B, 4, 2]
    inner = jnp.take_along_axis(now.dependents[:, :2], nearest[:, :2], axis=2)  # of leftmost and rightmost
    dependents = jnp.concatenate([nearest, inner], axis=1).reshape(len(stack), WITH_RELATION)
    relations = jnp.take_along_axis(now.relations, dependents, axis=1)
    empty = now.word > lengths
    possible = jnp.stack([~empty, now.depth > 2, (now.depth > 2) | ((now.depth == 2) & empty)], axis=1)
    return jnp.concatenate([stack, buffer, dependents], axis=1), relations, possible


def move(now: Configuration, actions: Int[Array, " B"]) -> Configuration:
    """Return the configurations after a transition; a negative one changes nothing."""
    nodes, slots = jnp.arange(now.heads.shape[1])[None], jnp.arange(now.stack.shape[1])[None]
    first, second = (
        jnp.take_along_axis(now.stack, jnp.maximum(now.depth - n, 0)[:, None], axis=1)[:, 0] for n in (1, 2)
    )
    shift, left, right = actions == 0, (actions > 0) & (actions % 2 == 1), (actions > 0) & (actions % 2 == 0)
    head, dependent = jnp.where(left, first, second), jnp.where(left, second, first)
    arc = left | right
    at_dependent = arc[:, None] & (nodes == dependent[:, None])
    at_head = nodes == head[:, None]

    def add(outer: Array, inner: Array, side: Array) -> tuple[Array, Array]:
        moved = at_head & side[:, None]
        return jnp.where(moved, dependent[:, None], outer), jnp.where(moved, outer, inner)

    leftmost, second_left = add(now.dependents[:, 0], now.dependents[:, 2], left)
    rightmost, second_right = add(now.dependents[:, 1], now.dependents[:, 3], right)
    written = slots == jnp.where(shift, now.depth, now.depth - 2)[:, None]
    value = jnp.where(shift, now.word, first)[:, None]
    return Configuration(
        stack=jnp.where(written & (shift | left)[:, None], value, now.stack),
        depth=now.depth + shift.astype(jnp.int32) - arc.astype(jnp.int32),
        word=now.word + shift.astype(jnp.int32),
        heads=jnp.where(at_dependent, head[:, None], now.heads),
        relations=jnp.where(at_dependent, ((actions - 1) // 2)[:, None], now.relations),
        dependents=jnp.stack([leftmost, rightmost, second_left, second_right], axis=1),
    )


def add_tags(tables: Tables, tags: Int[Array, "B T"] | None, lengths: Int[Array, " B"]) -> Float32[Array, "B N 18 H"]:
    """Return what each node adds to the hidden layer, with the part of its tag."""
    if tables.tags is None or tags is None:
        return tables.words
    count = len(tables.tags)
    root, nothing = jnp.full((len(tags), 1), count - 2), jnp.full((len(tags), 1), count - 1)
    return tables.words + tables.tags[jnp.concatenate([root, tags, nothing], axis=1)]


def sum_parts(table: Float32[Array, "B N P H"], chosen: Int32[Array, "C S P"]) -> Float32[Array, "C S H"]:
    """Return the sum of the chosen row of each of P places; B is C, or 1 for a table that all sentences share.

    >>> sum_parts(jnp.arange(6.0).reshape(1, 3, 2, 1), jnp.array([[[0, 0], [2, 1]]])).tolist()  # 0 + 1, 4 + 3
    [[[1.0], [7.0]]]
    """
    batch, rows, parts, size = table.shape
    if chosen.shape[1] == 1:
        first = jnp.arange(batch)[:, None, None] * rows
        numbers = (first + chosen) * parts + jnp.arange(parts)[None, None]
        return table.reshape(batch * rows * parts, size).at[numbers].get(mode="promise_in_bounds").sum(axis=2)
    # A product with zeros and ones has a product as its gradient, which is faster than adding rows one by one.
    ones = (chosen[:, :, None, :] == jnp.arange(rows)[None, None, :, None]).astype(table.dtype)
    return ones.reshape(*chosen.shape[:2], rows * parts) @ table.reshape(batch, rows * parts, size)


def action_scores(
    config: ParserConfig,
    tables: Tables,
    words: Float32[Array, "B N 18 H"],
    places: Int32[Array, "B S 18"],
    relations: Int32[Array, "B S 12"],
    possible: Bool[Array, "B S 3"],
    key: PRNGKeyArray | None = None,
) -> Float32[Array, "B S A"]:
    """Return the scores of all transitions in S configurations of each sentence; impossible ones have -1e9."""
    x = tables.bias[None, None] + sum_parts(words, places) + sum_parts(tables.relations[None], relations)
    x = dropout(ACTIVATIONS[config.activation](x), config.dropout, key)
    scores = x @ tables.actions["kernel"] + tables.actions["bias"][None, None]
    # Which of an arc's relations are possible depends on whether its head is the root.
    labels = jnp.arange(config.num_labels)[None, None]
    to_root = places[..., 1:2] == 0
    either = jnp.full((*to_root.shape[:-1], config.num_labels), True)
    has_root = config.root_relation >= 0
    inner = (labels != config.root_relation) & either
    right = jnp.where(to_root, labels == config.root_relation, inner) if has_root else either
    arcs = jnp.stack([inner & possible[..., 1:2], right & possible[..., 2:]], axis=-1)
    mask = jnp.concatenate([possible[..., :1], arcs.reshape(*arcs.shape[:-2], 2 * config.num_labels)], axis=-1)
    return jnp.where(mask, scores, IMPOSSIBLE)


def parse(
    config: ParserConfig, params: Any, batch: Batch, encode: Encode | None = None
) -> tuple[Int32[Array, "B T"], Int32[Array, "B T"]]:
    """Return the head and the relation of every word, by the likeliest possible transition at each step."""
    tables, _ = run_network(config, params, batch, encode=encode)
    lengths, width = jnp.asarray(batch["lengths"]), batch["words"].shape[1]
    words = add_tags(tables, batch.get("tags"), lengths)

    def step(now: Configuration, number: Array) -> tuple[Configuration, None]:
        places, relations, possible = read_places(now, lengths)
        scores = action_scores(config, tables, words, places[:, None], relations[:, None], possible[:, None])
        actions = jnp.argmax(scores[:, 0], axis=-1)
        return move(now, jnp.where(number < 2 * lengths, actions, -1)), None

    end, _ = jax.lax.scan(step, start(len(lengths), width, config.num_labels), jnp.arange(2 * width))
    return end.heads[:, 1:-1], end.relations[:, 1:-1]


def replay(
    actions: Int[Array, "B A"], lengths: Int[Array, " B"], num_labels: int
) -> tuple[Int32[Array, "B A 18"], Int32[Array, "B A 12"], Bool[Array, "B A 3"]]:
    """Return the results of `read_places` before each of the given transitions."""

    def step(now: Configuration, chosen: Array) -> tuple[Configuration, Any]:
        return move(now, chosen), read_places(now, lengths)

    first = start(len(actions), actions.shape[1] // 2, num_labels)
    _, readings = jax.lax.scan(step, first, actions.T)
    places, relations, possible = (jnp.swapaxes(each, 0, 1) for each in readings)
    return places, relations, possible


def parser_loss(config: ParserConfig, encode: Encode | None = None) -> Loss:
    """Return a loss for `train.make_step`, with the terms of `network_coefficients`.

    `cross_entropy` is the mean over the transitions of all sentences, among those that are possible.

    >>> config, ones = ParserConfig(num_labels=3, num_words=9, hidden_size=4), jnp.ones((2, 5), jnp.int32)
    >>> batch = {"words": ones, "lengths": ones[:, 0], "actions": jnp.tile(jnp.array([0, 2] + 8 * [-1]), (2, 1))}
    >>> from bert_elmo_jax.networks import network_shapes
    >>> sorted(jax.eval_shape(parser_loss(config), network_shapes(config), batch, None, None)[0])
    ['cross_entropy']
    """

    def run(params: Any, batch: Batch, key: PRNGKeyArray | None) -> tuple[Any, Any]:
        network_key, hidden_key = (None, None) if key is None else jax.random.split(key)
        tables, penalty = run_network(config, params, batch, network_key, encode)
        actions, lengths = batch["actions"], batch["lengths"]
        words = add_tags(tables, batch.get("tags"), lengths)
        scores = action_scores(config, tables, words, *replay(actions, lengths, config.num_labels), hidden_key)
        real = (actions >= 0).astype(jnp.float32)
        return cross_entropy(scores, jnp.maximum(actions, 0), real), penalty

    return make_loss(config, run)
