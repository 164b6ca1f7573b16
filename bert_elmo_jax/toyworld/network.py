"""Build the automaton of a document from shapes and lexicon; hidden states are (topic, hero, place in the sentence)."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Bool, Float, Int

from bert_elmo_jax.toyworld import english, korean
from bert_elmo_jax.toyworld.automaton import Automaton, offsets
from bert_elmo_jax.toyworld.lexicon import HEROES, Entry, Hero, Lexicon, lexicon
from bert_elmo_jax.toyworld.shapes import Slot, Token, Weighted, body_shapes, opening_shapes

# The modules of the languages: `render` orders the words of a shape, `inflect` forms a word, `sense` tags it.
LANGUAGES = {"en": english, "ko": korean}


@dataclass(frozen=True)
class Network:
    """The automaton of a document, with the meaning of its states and words.

    States are numbered (topic, hero, node), the node fastest; `tokens[node]` is its word or slot. `part[node]` is 0 if
    the node ends the opening, 1 if it ends another sentence, -1 otherwise. `visits[s]` is the expected number of visits
    of state s per document, `sentence_start` the distribution of the first state of a uniformly drawn sentence. `tags`
    holds the sense of every emission as an index into `senses`, where 0 is `O`.
    """

    document: Automaton
    words: tuple[str, ...]
    senses: tuple[str, ...]
    tags: Int[np.ndarray, "E"]
    topics: int
    tokens: tuple[Token, ...]
    part: Int[np.ndarray, "N"]
    stop: float
    visits: Float[np.ndarray, "S"]
    sentence_start: Float[np.ndarray, "S"]

    @property
    def finals(self) -> Bool[np.ndarray, "S"]:
        """The states that end a sentence."""
        return np.tile(self.part >= 0, self.topics * len(HEROES))


@functools.cache
def zipf(count: int, offset: int = 0) -> tuple[float, ...]:
    """Return probabilities proportional to 1 / (offset + rank)."""
    weights = [1 / (offset + rank) for rank in range(1, count + 1)]
    total = sum(weights)
    return tuple(weight / total for weight in weights)


def topic_weights(count: int) -> tuple[float, ...]:
    """Return the probabilities of the topics: even enough that two documents seldom share one."""
    return zipf(count, offset=20)


def word_form(language: str, slot: Slot, entry: Entry | Hero, hero: int) -> str:
    """Return the word that fills a slot; a form that ends in `+hero` agrees with the hero."""
    form = slot.form
    if form.endswith("+hero"):
        form = form.removesuffix("hero") + "honorific" if HEROES[hero].honorific else form.removesuffix("+hero")
    word = LANGUAGES[language].inflect(entry, form)
    return word[0].upper() + word[1:] if slot.capital else word


# The next nodes and their probabilities.
_Future = tuple[tuple[int, Fraction], ...]


class _Graph:
    """The minimal acyclic graph of a mixture of word orders: prefixes shared as in a trie, equal futures merged."""

    def __init__(self) -> None:
        self.tokens: list[Token] = []
        self.arcs: list[_Future] = []
        self.parts: list[int] = []
        self._known: dict[tuple[Token, _Future, int], int] = {}

    def add(self, orders: Sequence[tuple[Fraction, tuple[Token, ...]]], part: int) -> _Future:
        """Add word orders with their probabilities and return the first nodes; parts share no nodes."""
        groups: dict[Token, list[tuple[Fraction, tuple[Token, ...]]]] = {}
        for weight, tokens in orders:
            groups.setdefault(tokens[0], []).append((weight, tokens[1:]))
        total = sum((weight for weight, _ in orders), Fraction(0))
        first: list[tuple[int, Fraction]] = []
        for token, endings in groups.items():
            weight = sum((w for w, _ in endings), Fraction(0))
            longer = [(w, tokens) for w, tokens in endings if tokens]
            key = (token, self.add(longer, part) if longer else (), part)
            if key not in self._known:
                self._known[key] = len(self.tokens)
                self.tokens.append(token)
                self.arcs.append(key[1])
                self.parts.append(part)
            first.append((self._known[key], weight / total))
        return tuple(sorted(first))


@functools.lru_cache(maxsize=4)
def build(language: str, topics: int, words: int, sentences: int) -> Network:
    """Build the network of a language; `sentences` is the mean length of a document."""
    world = lexicon(topics, words)
    render = LANGUAGES[language].render
    graph = _Graph()

    def add(shapes: list[Weighted], part: int) -> _Future:
        # Without their names, slots with the same list and form are equal: they have the same emissions.
        orders = ((w, [t if isinstance(t, str) else t._replace(name="") for t in render(s)]) for w, s in shapes)
        return graph.add([(weight, tuple(tokens)) for weight, tokens in orders], part)

    opening, body = add(opening_shapes(), part=0), add(body_shapes(), part=1)
    stop = 1 / (sentences - 1)
    nodes = len(graph.tokens)
    part = np.array([-1 if future else graph.parts[node] for node, future in enumerate(graph.arcs)])
    following = [
        [(target, float(weight)) for target, weight in future]
        or [(target, float(weight) * (1 - stop if part[node] else 1.0)) for target, weight in body]
        for node, future in enumerate(graph.arcs)
    ]
    start = _spread(opening, nodes)
    flow = np.eye(nodes)
    for node, arcs in enumerate(following):
        for target, weight in arcs:
            flow[target, node] -= weight
    visits = np.linalg.solve(flow, start)  # the visits of a node are its start plus the flow into it
    rows, table, vocabulary, senses = _emissions(language, world, graph.tokens)
    prior = np.repeat(topic_weights(topics), len(HEROES)) / len(HEROES)
    base = np.arange(len(prior))[:, None] * nodes
    targets = np.array([target for arcs in following for target, _ in arcs])
    counts = np.array([len(arcs) for arcs in following])
    emissions = [sorted(row) for row in table]
    document = Automaton(
        start=np.outer(prior, start).ravel(),
        arc_offsets=offsets(np.tile(counts, len(prior))),
        arc_targets=(base + targets).ravel(),
        arc_weights=np.tile([weight for arcs in following for _, weight in arcs], len(prior)),
        end=np.tile(np.where(part == 1, stop, 0.0), len(prior)),
        rows=rows.ravel(),
        emission_offsets=offsets(np.array([len(row) for row in emissions])),
        emission_words=np.array([word for row in emissions for word, _, _ in row]),
        emission_weights=np.array([weight for row in emissions for _, _, weight in row]),
        vocabulary=len(vocabulary),
    )
    sentence_start = (start + _spread(body, nodes) / stop) / sentences
    return Network(
        document=document,
        words=vocabulary,
        senses=senses,
        tags=np.array([tag for row in emissions for _, tag, _ in row]),
        topics=topics,
        tokens=tuple(graph.tokens),
        part=part,
        stop=stop,
        visits=np.outer(prior, visits).ravel(),
        sentence_start=np.outer(prior, sentence_start).ravel(),
    )


def _spread(first: _Future, nodes: int) -> Float[np.ndarray, "N"]:
    start = np.zeros(nodes)
    for node, weight in first:
        start[node] = float(weight)
    return start


_Row = tuple[tuple[int, int, float], ...]


def _emissions(
    language: str, world: Lexicon, tokens: list[Token]
) -> tuple[Int[np.ndarray, "Z N"], list[_Row], tuple[str, ...], tuple[str, ...]]:
    """Return the emission row of every state, the rows as (word, tag, probability), the words and the tags."""
    # A token's emissions depend on few parts of the state: compute each distribution once.
    cells: dict[tuple[Token, int, int], dict[str, tuple[str, float]]] = {}
    keys = []
    for topic in range(len(world.topics)):
        for hero in range(len(HEROES)):
            keys.append([_dependence(world, token, topic, hero) for token in tokens])
            for key in keys[-1]:
                if key not in cells:
                    cells[key] = _distribution(language, world, *key)
    words = tuple(sorted({word for cell in cells.values() for word in cell}))
    senses = ("O", *sorted({tag for cell in cells.values() for tag, _ in cell.values()} - {"O"}))
    word_ids = {word: number for number, word in enumerate(words)}
    sense_ids = {tag: number for number, tag in enumerate(senses)}
    row_numbers: dict[_Row, int] = {}
    row_of = {}
    for key, cell in cells.items():
        row = tuple(sorted((word_ids[word], sense_ids[tag], weight) for word, (tag, weight) in cell.items()))
        row_of[key] = row_numbers.setdefault(row, len(row_numbers))
    rows = np.array([[row_of[key] for key in block] for block in keys], dtype=np.int64)
    return rows, list(row_numbers), words, senses


def _dependence(world: Lexicon, token: Token, topic: int, hero: int) -> tuple[Token, int, int]:
    """Return the token with its topic and hero, replaced by the first equivalent ones if they do not matter."""
    if isinstance(token, str):
        return token, 0, 0
    topic = 0 if token.list in world.general or token.list == "heroes" else topic
    if token.list == "heroes":
        return token, topic, hero
    elder = next(number for number, other in enumerate(HEROES) if other.honorific)
    return token, topic, elder if token.form.endswith("+hero") and HEROES[hero].honorific else 0


def _distribution(language: str, world: Lexicon, token: Token, topic: int, hero: int) -> dict[str, tuple[str, float]]:
    if isinstance(token, str):
        return {token: ("O", 1.0)}
    choices = world.entries(token.list, topic, hero)
    cell: dict[str, tuple[str, float]] = {}
    for entry, weight in zip(choices, zipf(len(choices)), strict=True):
        word, tag = word_form(language, token, entry, hero), LANGUAGES[language].sense(entry)
        known_tag, known_weight = cell.get(word, (tag, 0.0))
        if known_tag != tag:
            raise ValueError(f"{word!r} has two senses in one list ({token.list}), {known_tag} and {tag}: remove one")
        cell[word] = (tag, known_weight + weight)
    return cell
