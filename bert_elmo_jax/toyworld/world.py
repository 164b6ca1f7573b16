"""Documents of the toy world: document i depends only on the seed and i, and tells the same story in every language."""

import functools
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from bert_elmo_jax.toyworld.lexicon import HEROES, lexicon
from bert_elmo_jax.toyworld.network import LANGUAGES, Network, build, topic_weights, word_form, zipf
from bert_elmo_jax.toyworld.shapes import Shape, Token, body_shapes, opening_shapes, slots

_DOCUMENTS = 2**32


@dataclass(frozen=True)
class Sentence:
    """A sentence: its words (punctuation is a word), the sense of each word, and its meaning.

    `choices` are the ranks of the words drawn for `slots(shape)`, in that order. Together with shape, topic and hero
    they are the meaning, which any language can express.

    >>> sentence = ToyWorld("en").document(0).sentences[0]
    >>> sentence.text == " ".join(sentence.words), len(sentence.tags) == len(sentence.words)
    (True, True)
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    shape: Shape
    choices: tuple[int, ...]

    @property
    def text(self) -> str:
        """The sentence as one line of text."""
        return " ".join(self.words)


@dataclass(frozen=True)
class Document:
    r"""A story: one topic, one hero, at least two sentences.

    >>> document = ToyWorld("ko").document(0)
    >>> document.text.count("\n") + 1 == len(document.sentences)
    True
    """

    topic: str
    hero: str
    sentences: tuple[Sentence, ...]

    @property
    def text(self) -> str:
        """The document, one sentence per line."""
        return "\n".join(sentence.text for sentence in self.sentences)


@dataclass(frozen=True)
class ToyWorld:
    """A small language with known statistics, in English (`en`) or Korean (`ko`).

    `topics` and `words` (the maximum length of a topic's word lists) set the size of the language, `sentences` the mean
    length of a document. Worlds that differ only in `language` tell the same stories. The text depends on these five
    fields only: draws are `random()` of PCG64 seeded with (seed, i), compared with sums of IEEE doubles.

    >>> ToyWorld("en").document(2).sentences[1].text
    'The bankers close the company .'
    >>> ToyWorld("ko").document(2).sentences[1].text
    '은행원들은 회사를 닫는다 .'
    """

    language: str = "en"
    seed: int = 0
    topics: int = 24
    words: int = 6
    sentences: int = 9

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            raise ValueError(f"language={self.language!r}: expected one of {', '.join(LANGUAGES)}")
        if not 0 <= self.seed < _DOCUMENTS:
            raise ValueError(f"seed={self.seed}: expected a whole number from 0 to {_DOCUMENTS - 1}")
        if self.sentences < 2:
            raise ValueError(f"sentences={self.sentences}: expected a mean of 2 or more, the minimum of a document")
        lexicon(self.topics, self.words)

    @property
    def topic_names(self) -> tuple[str, ...]:
        """The English names of the topics in use."""
        return tuple(topic.english for topic in lexicon(self.topics, self.words).topics)

    @property
    def network(self) -> Network:
        """The automaton that generates this world's documents, with the meaning of its states."""
        return build(self.language, self.topics, self.words, self.sentences)

    def document(self, i: int) -> Document:
        """Return document i, for any i from 0 to 2³² − 1."""
        if not 0 <= i < _DOCUMENTS:
            raise ValueError(f"document {i}: documents are numbered from 0 to {_DOCUMENTS - 1}")
        topic, hero, story = _draw_story(self, i)
        sentences = tuple(self.say(topic, hero, shape, choices) for shape, choices in story)
        return Document(self.topic_names[topic], HEROES[hero].english, sentences)

    def say(self, topic: int, hero: int, shape: Shape, choices: tuple[int, ...]) -> Sentence:
        """Express a meaning in this world's language; `choices` belong to `slots(shape)`."""
        chosen = []
        for n, token in _order(self.language, shape):
            forms = _forms(self.language, self.topics, self.words, token, topic, hero)
            chosen.append(forms[0 if n is None else choices[n]])
        words, tags = zip(*chosen)
        return Sentence(words, tags, shape, choices)


@functools.cache
def _sums(weights: tuple[float, ...]) -> list[float]:
    """Return the cumulative weights without the last, so that a draw near 1 is never lost to rounding."""
    return list(accumulate(weights))[:-1]


@functools.lru_cache(maxsize=4)
def _plans(topics: int, words: int) -> tuple[list[tuple[Shape, list[list[list[float]]]]], list[float]]:
    """Return the opening and the body shapes with the sums of their lists' weights per topic, and the body's sums."""
    world = lexicon(topics, words)
    plans = []
    for _, shape in (*opening_shapes(), *body_shapes()):
        names = [name for _, name in slots(shape)]
        lists = [[_sums(zipf(len(world.entries(name, topic)))) for name in names] for topic in range(topics)]
        plans.append((shape, lists))
    return plans, _sums(tuple(float(weight) for weight, _ in body_shapes()))


def _uniforms(seed: int, i: int) -> Iterator[float]:
    generator = np.random.Generator(np.random.PCG64([seed, i]))
    while True:
        yield from generator.random(64).tolist()


def _draw_story(world: ToyWorld, i: int) -> tuple[int, int, list[tuple[Shape, tuple[int, ...]]]]:
    """Draw topic, hero and meanings of document i, independently of the language."""
    draw = _uniforms(world.seed, i).__next__
    plans, body_sums = _plans(world.topics, world.words)
    topic = bisect_right(_sums(topic_weights(world.topics)), draw())
    hero = int(draw() * len(HEROES))
    stop = 1 / (world.sentences - 1)
    story: list[tuple[Shape, tuple[int, ...]]] = []
    while len(story) < 2 or draw() >= stop:
        shape, lists = plans[1 + bisect_right(body_sums, draw()) if story else 0]
        story.append((shape, tuple([bisect_right(sums, draw()) for sums in lists[topic]])))
    return topic, hero, story


@functools.lru_cache(maxsize=4096)
def _order(language: str, shape: Shape) -> list[tuple[int | None, Token]]:
    """Return the tokens of a shape, each with its place among the choices, None if there is nothing to choose."""
    places = {name: place for place, (name, _) in enumerate(slots(shape))}
    tokens = LANGUAGES[language].render(shape)
    return [(None if isinstance(token, str) else places.get(token.name), token) for token in tokens]


@functools.lru_cache(maxsize=100_000)
def _forms(language: str, topics: int, words: int, token: Token, topic: int, hero: int) -> list[tuple[str, str]]:
    """Return the words that may fill a token, each with its sense tag."""
    if isinstance(token, str):
        return [(token, "O")]
    choices = lexicon(topics, words).entries(token.list, topic, hero)
    return [(word_form(language, token, choice, hero), LANGUAGES[language].sense(choice)) for choice in choices]
