"""Language-independent sentence shapes, their probabilities, and the slots to fill in.

A shape fixes everything but the content words. Given topic, hero and shape, the content words are independent draws,
so the world is finite-state in both languages although their word orders differ.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple


class Slot(NamedTuple):
    """A word to fill in: the name of the choice, the list to choose from, and the form of the word."""

    name: str
    list: str
    form: str
    capital: bool = False


Token = str | Slot


@dataclass(frozen=True)
class Shape:
    """The frame of a sentence and its grammatical features; features that the frame does not use keep their defaults.

    `subject`: `name` and `pronoun` mean the hero, `one` and `many` a person of the topic. `near`: the number of the
    landmark between a noun and its verb (in the frame `say`: the number of the inner subject).
    """

    frame: str
    subject: str = "name"
    near: str | None = None
    tense: str = "past"
    adverb: bool = False
    group: int = 0
    look: bool = False
    number: str = "one"
    place: bool = False
    half: int = 0

    @property
    def hero_acts(self) -> bool:
        """True if the subject is the hero."""
        return self.subject in ("name", "pronoun")

    def list_of(self, name: str) -> str:
        """Return the name of the list from which a choice is drawn."""
        if name == "adverb":
            return f"{self.tense}_adverbs"
        if self.frame == "compare" and name in ("thing", "other"):
            return f"{'even' if (name == 'thing') == (self.half == 0) else 'odd'}{self.group}"
        if name in ("verb", "look", "thing"):
            return f"{name}s{self.group}"
        return {"hero": "heroes", "agent": "people", "be": "beings", "say": "sayings"}.get(name, f"{name}s")

    def slot(self, name: str, form: str = "plain") -> Slot:
        """Return the slot of a choice."""
        return Slot(name, self.list_of(name), form)


Weighted = tuple[Fraction, Shape]
# The fields that a feature sets, and the weights of their values. They become exact rationals, so that the
# probabilities of all shapes sum to exactly one.
Feature = tuple[str, dict[tuple[Any, ...], int]]
_SUBJECTS: Feature = (
    "subject near",
    {
        ("name", None): 7,
        ("pronoun", None): 3,
        ("one", None): 3,
        ("many", None): 3,
        ("one", "one"): 1,
        ("one", "many"): 1,
        ("many", "one"): 1,
        ("many", "many"): 1,
    },
)
_HERO: Feature = ("subject", {("name",): 7, ("pronoun",): 3})
_INNER: Feature = ("near", {("one",): 1, ("many",): 1})
_TIMES: Feature = ("tense adverb", {("past", False): 7, ("past", True): 3, ("present", False): 6, ("present", True): 4})
_TENSES: Feature = ("tense", {("past",): 1, ("present",): 1})
_GROUPS: Feature = ("group", {(0,): 3, (1,): 2})
_HALVES: Feature = ("half", {(0,): 1, (1,): 1})
_LOOK: Feature = ("look", {(False,): 3, (True,): 2})
_PLACE: Feature = ("place", {(False,): 1, (True,): 1})
_NUMBERS: Feature = ("number", {("one",): 7, ("many",): 3})
# Between a thing and its verb: nothing, a landmark, or a place.
_GAPS: Feature = ("near place", {(None, False): 3, ("one", False): 2, ("many", False): 2, (None, True): 3})


def opening_shapes() -> list[Weighted]:
    """Return the shape of the first sentence of a document, which sets the scene."""
    return [(Fraction(1), Shape("opening", place=True))]


def body_shapes() -> list[Weighted]:
    """Return the shapes of all other sentences with probabilities that sum to exactly one."""
    return [
        *_combine(Fraction(9, 20), "do", _SUBJECTS, _TIMES, _GROUPS, _LOOK, _PLACE, _NUMBERS),
        *_combine(Fraction(3, 20), "act", _SUBJECTS, _TIMES, place=True),
        *_combine(Fraction(3, 20), "look", _GAPS, _TENSES, _GROUPS, _NUMBERS),
        *_combine(Fraction(1, 20), "compare", _TENSES, _GROUPS, _NUMBERS, _HALVES),
        *_combine(Fraction(3, 20), "say", _HERO, _TENSES, _INNER, _GROUPS, _NUMBERS),
        # Questions, so that the words of the question-answering task belong to the language.
        *_combine(Fraction(1, 60), "who", _TENSES, _GROUPS, _NUMBERS),
        *_combine(Fraction(1, 60), "what", _TENSES, _GROUPS, _PLACE),
        *_combine(Fraction(1, 60), "where", _TENSES, _GROUPS, _NUMBERS),
    ]


def _combine(share: Fraction, frame: str, *features: Feature, **fixed: Any) -> Iterator[Weighted]:
    """Yield the shapes of a frame, whose features are independent, with their part of the frame's share."""
    total = math.prod(sum(weights.values()) for _, weights in features)
    for items in itertools.product(*(weights.items() for _, weights in features)):
        values = dict(fixed)
        for (fields, _), (value, _) in zip(features, items):
            values.update(zip(fields.split(), value))
        yield share * Fraction(math.prod(weight for _, weight in items), total), Shape(frame, **values)


def slots(shape: Shape) -> tuple[tuple[str, str], ...]:
    """Return the draws of a shape as (name of the choice, name of the list), in the same order for every language."""
    frame = shape.frame
    names = ["adverb"] if shape.adverb else []
    if frame == "opening":
        names += ["time", "place_look"]
    if frame == "say" or (frame in ("do", "act") and not shape.hero_acts):
        names.append("agent")
    if frame != "say" and shape.near is not None:
        names += ["landmark_look", "landmark"]
    if frame == "act":
        names.append("act")
    if frame in ("do", "say", "who", "what", "where"):
        names.append("verb")
    if shape.look or frame == "look":
        names.append("look")
    if frame in ("do", "say", "look", "who", "where"):
        names.append("thing")
    if frame == "compare":
        names += ["thing", "comparison", "other"]
    if shape.place:
        names.append("place")
    return tuple((name, shape.list_of(name)) for name in names)
