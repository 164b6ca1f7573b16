"""Language-independent sentence shapes, their probabilities, and the slots to fill in.

A shape fixes everything but the content words. Given topic, hero and shape, the content words are independent draws,
so the world is finite-state in both languages although their word orders differ.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Slot:
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

    >>> Shape("do", subject="many", tense="present").group
    0
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


Weighted = tuple[Fraction, Shape]

# Exact rationals, so that the probabilities of all shapes sum to exactly one.
_SUBJECTS = {
    ("name", None): Fraction(7, 20),
    ("pronoun", None): Fraction(3, 20),
    ("one", None): Fraction(3, 20),
    ("many", None): Fraction(3, 20),
    ("one", "one"): Fraction(1, 20),
    ("one", "many"): Fraction(1, 20),
    ("many", "one"): Fraction(1, 20),
    ("many", "many"): Fraction(1, 20),
}
_HERO = {"name": Fraction(7, 10), "pronoun": Fraction(3, 10)}
_TIMES = {
    ("past", False): Fraction(7, 20),
    ("past", True): Fraction(3, 20),
    ("present", False): Fraction(3, 10),
    ("present", True): Fraction(1, 5),
}
_GROUPS = {0: Fraction(3, 5), 1: Fraction(2, 5)}
_NUMBERS = {"one": Fraction(7, 10), "many": Fraction(3, 10)}
# Between a thing and its verb: nothing, a landmark, or a place.
_GAPS = {
    (None, False): Fraction(3, 10),
    ("one", False): Fraction(1, 5),
    ("many", False): Fraction(1, 5),
    (None, True): Fraction(3, 10),
}
_TENSES = {"past": Fraction(1, 2), "present": Fraction(1, 2)}
_COIN = {False: Fraction(1, 2), True: Fraction(1, 2)}
_LOOK = {False: Fraction(3, 5), True: Fraction(2, 5)}


def _product(*tables: dict) -> Iterator[tuple]:
    """Combine independent features: yield (joint probability, value of each)."""
    for items in itertools.product(*(table.items() for table in tables)):
        yield math.prod(probability for _, probability in items), *(value for value, _ in items)


def opening_shapes() -> list[Weighted]:
    """Return the shape of the first sentence of a document, which sets the scene."""
    return [(Fraction(1), Shape("opening", place=True))]


def body_shapes() -> list[Weighted]:
    """Return the shapes of all other sentences with probabilities that sum to exactly one."""
    frames: list[tuple[Fraction, list[Weighted]]] = [
        (Fraction(9, 20), _do()),
        (Fraction(3, 20), _act()),
        (Fraction(3, 20), _look()),
        (Fraction(1, 20), _compare()),
        (Fraction(3, 20), _say()),
        (Fraction(1, 20), _ask()),
    ]
    return [(share * weight, shape) for share, shapes in frames for weight, shape in shapes]


def _do() -> list[Weighted]:
    features = _product(_SUBJECTS, _TIMES, _GROUPS, _LOOK, _COIN, _NUMBERS)
    return [
        (w, Shape("do", subject, near, tense, adverb, group, look, number, place))
        for w, (subject, near), (tense, adverb), group, look, place, number in features
    ]


def _act() -> list[Weighted]:
    features = _product(_SUBJECTS, _TIMES)
    return [
        (w, Shape("act", subject, near, tense, adverb, place=True)) for w, (subject, near), (tense, adverb) in features
    ]


def _look() -> list[Weighted]:
    features = _product(_GAPS, _TENSES, _GROUPS, _NUMBERS)
    return [(w, Shape("look", near=near, tense=t, group=g, number=n, place=p)) for w, (near, p), t, g, n in features]


def _compare() -> list[Weighted]:
    features = _product(_TENSES, _GROUPS, _NUMBERS, {0: Fraction(1, 2), 1: Fraction(1, 2)})
    return [(w, Shape("compare", tense=t, group=g, number=n, half=half)) for w, t, g, n, half in features]


def _say() -> list[Weighted]:
    features = _product(_HERO, _TENSES, {"one": Fraction(1, 2), "many": Fraction(1, 2)}, _GROUPS, _NUMBERS)
    return [(w, Shape("say", s, near, tense=t, group=g, number=n)) for w, s, t, near, g, n in features]


def _ask() -> list[Weighted]:
    """Return questions, so that the words of the question-answering task belong to the language."""
    third = Fraction(1, 3)
    about_things = [(third * w, t, g, n) for w, t, g, n in _product(_TENSES, _GROUPS, _NUMBERS)]
    who, where = ([(w, Shape(f, tense=t, group=g, number=n)) for w, t, g, n in about_things] for f in ("who", "where"))
    what = [(third * w, Shape("what", tense=t, group=g, place=p)) for w, t, g, p in _product(_TENSES, _GROUPS, _COIN)]
    return who + what + where


def slots(shape: Shape) -> tuple[tuple[str, str], ...]:
    """Return the draws of a shape as (name of the choice, name of the list), in the same order for every language."""
    group, frame = shape.group, shape.frame
    drawn: list[tuple[str, str]] = []
    if shape.adverb:
        drawn.append(("adverb", f"{shape.tense}_adverbs"))
    if frame == "opening":
        drawn += [("time", "times"), ("place_look", "place_looks")]
    if frame == "say" or (frame in ("do", "act") and shape.subject in ("one", "many")):
        drawn.append(("agent", "people"))
    if frame != "say" and shape.near is not None:
        drawn += [("landmark_look", "landmark_looks"), ("landmark", "landmarks")]
    if frame == "act":
        drawn.append(("act", "acts"))
    if frame in ("do", "say", "who", "what", "where"):
        drawn.append(("verb", f"verbs{group}"))
    if shape.look or frame == "look":
        drawn.append(("look", f"looks{group}"))
    if frame in ("do", "say", "look", "who", "where"):
        drawn.append(("thing", f"things{group}"))
    if frame == "compare":
        first, second = ("even", "odd") if shape.half == 0 else ("odd", "even")
        drawn += [("thing", f"{first}{group}"), ("comparison", "comparisons"), ("other", f"{second}{group}")]
    if shape.place:
        drawn.append(("place", "places"))
    return tuple(drawn)
