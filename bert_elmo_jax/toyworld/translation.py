"""Translation in the toy world: sentences with their translations, and every right translation of a sentence.

A sentence may have several meanings. English tells neither whether "she" is an elder, who takes honorifics in Korean,
nor which 배 it means; Korean does not count things, and English must. So a right translation is one of any meaning that
the sentence can have. `translations` lists them all, with their probabilities, and a model is scored against the list.
"""

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bert_elmo_jax.toyworld.lexicon import HEROES, lexicon
from bert_elmo_jax.toyworld.network import topic_weights, zipf
from bert_elmo_jax.toyworld.shapes import Shape, Token, body_shapes, opening_shapes, slots
from bert_elmo_jax.toyworld.tasks import sentence_pairs
from bert_elmo_jax.toyworld.world import ToyWorld, _forms, _order

Context = tuple[int, int]  # topic and hero


def distinct_pairs(world: ToyWorld, split: str) -> Iterator[tuple[str, str]]:
    """Yield (English, Korean) sentences with the same meaning, endlessly; no sentence of either language returns.

    A pair that is held out then has no sentence that a model was trained on.

    >>> pairs = list(itertools.islice(distinct_pairs(ToyWorld(topics=2, words=2), "corpus"), 500))
    >>> len({english for english, _ in pairs}), len({korean for _, korean in pairs})
    (500, 500)
    """
    sentences: set[str] = set()
    for pair in sentence_pairs(world, split):
        if not sentences.intersection(pair):
            sentences.update(pair)
            yield pair


def translations(world: ToyWorld, text: str) -> dict[str, float]:
    """Return every right translation of a sentence of this world into its other language, the most probable first.

    The probabilities belong to the sentence alone, without the sentences around it.

    >>> translations(ToyWorld("ko"), "어머니께서는 배를 깎으셨다 .")
    {'Mother peeled the pear .': 0.7, 'Mother peeled the pears .': 0.3}
    >>> [round(share, 2) for share in translations(ToyWorld("en"), "She peeled the pear .").values()]
    [0.5, 0.5]
    """
    words = tuple(text.split())
    into = replace(world, language="ko" if world.language == "en" else "en")
    weights: dict[str, float] = {}
    for weight, shape in _shapes(world.language).get(len(words), ()):
        for topic, hero, choices, share in _readings(world, shape, words):
            translation = into.say(topic, hero, shape, choices).text
            weights[translation] = weights.get(translation, 0.0) + weight * share
    if not weights:
        raise ValueError(f"{text!r} is not a sentence of this world: give one from ToyWorld.document, words and all")
    total = sum(weights.values())
    ranked = sorted(weights.items(), key=lambda item: (-item[1], item[0]))
    return {translation: round(weight / total, 12) for translation, weight in ranked}


def right_translations(world: ToyWorld, sources: Sequence[str], translated: Sequence[str]) -> float:
    """Return the share of translations that are right: exactly one of `translations(world, source)`.

    >>> right_translations(ToyWorld("ko"), ["어머니께서는 배를 깎으셨다 ."] * 2, ["Mother peeled the pears .", "pears"])
    0.5
    """
    if len(sources) != len(translated) or not sources:
        raise ValueError(f"{len(sources)} sources and {len(translated)} translations: give one translation per source")
    return sum(translation in translations(world, source) for source, translation in zip(sources, translated)) / len(
        sources
    )


@functools.cache
def _shapes(language: str) -> dict[int, list[tuple[float, Shape]]]:
    """Return all shapes with their weights by the number of words that they have in a language."""
    by_length: dict[int, list[tuple[float, Shape]]] = {}
    for weight, shape in (*opening_shapes(), *body_shapes()):
        by_length.setdefault(len(_order(language, shape)), []).append((float(weight), shape))
    return by_length


def _readings(
    world: ToyWorld, shape: Shape, words: tuple[str, ...]
) -> Iterator[tuple[int, int, tuple[int, ...], float]]:
    """Yield topic, hero and choices of every meaning with this shape that these words can have, and its weight."""
    order = _order(world.language, shape)
    contexts: set[Context] | None = None
    for word, (_, token) in zip(words, order):
        if isinstance(token, str):
            if token != word:
                return
            continue
        uses = _uses(world.language, world.topics, world.words, token).get(word)
        if uses is None:
            return
        contexts = set(uses) if contexts is None else contexts & set(uses)
        if not contexts:
            return
    size = lexicon(world.topics, world.words).entries
    for topic, hero in sorted(contexts or ()):
        options: list[Sequence[int]] = [range(len(size(name, topic))) for _, name in slots(shape)]
        for word, (n, token) in zip(words, order):
            if n is not None and not isinstance(token, str):
                fitting = _uses(world.language, world.topics, world.words, token)[word][topic, hero]
                options[n] = [choice for choice in options[n] if choice in fitting]
        weights = [zipf(len(size(name, topic))) for _, name in slots(shape)]
        share = topic_weights(world.topics)[topic] / len(HEROES)
        for choices in itertools.product(*options):
            chances = (float(weight[choice]) for weight, choice in zip(weights, choices))
            yield topic, hero, choices, share * math.prod(chances)


@functools.lru_cache(maxsize=4096)
def _uses(language: str, topics: int, words: int, token: Token) -> dict[str, dict[Context, tuple[int, ...]]]:
    """Return the words that may fill a token: for each topic and hero, the choices that have this form."""
    uses: dict[str, dict[Context, tuple[int, ...]]] = {}
    for topic, hero in itertools.product(range(topics), range(len(HEROES))):
        for choice, (word, _) in enumerate(_forms(language, topics, words, token, topic, hero)):
            places = uses.setdefault(word, {})
            places[topic, hero] = (*places.get((topic, hero), ()), choice)
    return uses
