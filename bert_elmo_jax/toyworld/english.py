"""English word forms and word order."""

from collections.abc import Callable
from dataclasses import replace

from bert_elmo_jax.toyworld.lexicon import Entry, Hero
from bert_elmo_jax.toyworld.shapes import Shape, Slot, Token


def plural(word: str) -> str:
    """Return the regular plural, which is also a verb's third person singular."""
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def past(word: str) -> str:
    """Return the regular past tense."""
    if word.endswith("e"):
        return word + "d"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ied"
    return word + "ed"


def comparative(word: str) -> str:
    """Return the regular comparative."""
    return past(word)[:-1] + "r"


def inflect(entry: Entry | Hero, form: str) -> str:
    """Return a word's form: `plain`, `many`, `past`, `third` (she pulls), `more`, or a hero's `name` or `pronoun`."""
    if isinstance(entry, Hero):
        return entry.pronoun if form == "pronoun" else entry.english
    if form in ("many", "past", "more") and entry.english_other:
        return entry.english_other
    make: dict[str, Callable[[str], str]] = {
        "plain": str,
        "many": plural,
        "third": plural,
        "past": past,
        "more": comparative,
    }
    return make[form](entry.english)


def sense(entry: Entry | Hero) -> str:
    """Return the sense tag of an ambiguous word, `O` for all others.

    >>> from bert_elmo_jax.toyworld.lexicon import entry
    >>> sense(entry("bank#money=은행")), sense(entry("pear=배#pear"))
    ('bank.money', 'O')
    """
    return f"{entry.english}.{entry.sense_english}" if isinstance(entry, Entry) and entry.sense_english else "O"


def _number(number: str | None) -> str:
    return "many" if number == "many" else "plain"


def _adverb(shape: Shape) -> list[Token]:
    return [Slot("adverb", f"{shape.tense}_adverbs", "plain")] if shape.adverb else []


def _subject(shape: Shape) -> list[Token]:
    if shape.subject in ("name", "pronoun"):
        return [Slot("hero", "heroes", shape.subject)]
    return ["the", Slot("agent", "people", _number(shape.subject)), *_near(shape)]


def _near(shape: Shape) -> list[Token]:
    """Return the distractor between a subject and its verb: a noun whose number the verb must ignore."""
    if shape.near is None:
        return []
    landmark = Slot("landmark", "landmarks", _number(shape.near))
    return ["near", "the", Slot("landmark_look", "landmark_looks", "plain"), landmark]


def _verb(shape: Shape, name: str, list_name: str) -> Slot:
    present = "plain" if shape.subject == "many" else "third"
    return Slot(name, list_name, "past" if shape.tense == "past" else present)


def _thing(shape: Shape) -> list[Token]:
    look: list[Token] = [Slot("look", f"looks{shape.group}", "plain")] if shape.look else []
    return ["the", *look, Slot("thing", f"things{shape.group}", _number(shape.number))]


def _place(shape: Shape) -> list[Token]:
    if not shape.place:
        return []
    return [Slot("preposition", "prepositions", "plain"), "the", Slot("place", "places", "plain")]


def _be(shape: Shape) -> str:
    many = shape.number == "many"
    return ("were" if many else "was") if shape.tense == "past" else ("are" if many else "is")


def render(shape: Shape) -> tuple[Token, ...]:
    """Return the words of a sentence in order: fixed words as text, content words as slots."""
    verb = f"verbs{shape.group}"
    do = "did" if shape.tense == "past" else "does"
    tokens: list[Token]
    match shape.frame:
        case "opening":
            where: list[Token] = [Slot("place_look", "place_looks", "plain"), Slot("place", "places", "plain")]
            tokens = ["one", Slot("time", "times", "plain"), *_subject(shape), "was"]
            tokens += [Slot("preposition", "prepositions", "plain"), "the", *where]
        case "do":
            tokens = [*_adverb(shape), *_subject(shape), _verb(shape, "verb", verb), *_thing(shape), *_place(shape)]
        case "act":
            tokens = [*_adverb(shape), *_subject(shape), _verb(shape, "act", "acts"), *_place(shape)]
        case "look":
            thing = _thing(Shape("look", group=shape.group, number=shape.number))
            look = Slot("look", f"looks{shape.group}", "plain")
            tokens = [*thing, *_near(shape), *_place(shape), _be(shape), look]
        case "compare":
            number = _number(shape.number)
            half, other = ("even", "odd") if shape.half == 0 else ("odd", "even")
            tokens = ["the", Slot("thing", f"{half}{shape.group}", number), _be(shape)]
            tokens += [Slot("comparison", "comparisons", "more"), "than", "the"]
            tokens += [Slot("other", f"{other}{shape.group}", number)]
        case "say":
            say = "said" if shape.tense == "past" else "says"
            agent = Slot("agent", "people", _number(shape.near))
            tokens = [*_subject(shape), say, "that", "the", agent, Slot("verb", verb, "past"), *_thing(shape)]
        case "who":
            tokens = ["who", _verb(shape, "verb", verb), *_thing(shape)]
        case "what":
            tokens = ["what", do, *_subject(shape), Slot("verb", verb, "plain"), *_place(shape)]
        case "where":
            tokens = ["where", do, *_subject(shape), Slot("verb", verb, "plain"), *_thing(shape)]
        case _:
            raise ValueError(f"frame {shape.frame!r}: English has no word order for it")
    first = tokens[0]
    first = first.capitalize() if isinstance(first, str) else replace(first, capital=True)
    return first, *tokens[1:], "?" if shape.frame in ("who", "what", "where") else "."
