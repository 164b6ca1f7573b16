"""English word forms and word order."""

from bert_elmo_jax.toyworld.lexicon import Entry, Hero
from bert_elmo_jax.toyworld.shapes import Shape, Token


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
    make = {"many": plural, "third": plural, "past": past, "more": comparative}
    return entry.english if form == "plain" else make[form](entry.english)


def sense(entry: Entry | Hero) -> str:
    """Return the sense tag of an ambiguous word such as `bank.money`, `O` for all others."""
    return f"{entry.english}.{entry.sense_english}" if isinstance(entry, Entry) and entry.sense_english else "O"


def render(shape: Shape) -> tuple[Token, ...]:
    """Return the words of a sentence in order: fixed words as text, content words as slots."""
    slot, past = shape.slot, shape.tense == "past"
    number, form = _number(shape.number), "past" if past else "plain" if shape.subject == "many" else "third"
    be = ("was" if past else "is") if number == "plain" else ("were" if past else "are")
    do = "did" if past else "does"
    adverb = [slot("adverb")] if shape.adverb else []
    # A distractor between a subject and its verb: a noun whose number the verb must ignore.
    near: list[Token] = (
        ["near", "the", slot("landmark_look"), slot("landmark", _number(shape.near))] if shape.near else []
    )
    agent: list[Token] = ["the", slot("agent", _number(shape.subject)), *near]
    subject: list[Token] = [slot("hero", shape.subject)] if shape.hero_acts else agent
    thing: list[Token] = ["the", *([slot("look")] if shape.look else []), slot("thing", number)]
    at: list[Token] = [slot("preposition"), "the"]
    place: list[Token] = [*at, slot("place")] if shape.place else []
    inner = slot("agent", _number(shape.near))
    orders: dict[str, list[Token]] = {
        "opening": ["one", slot("time"), *subject, "was", *at, slot("place_look"), slot("place")],
        "do": [*adverb, *subject, slot("verb", form), *thing, *place],
        "act": [*adverb, *subject, slot("act", form), *place],
        "look": [*thing, *near, *place, be, slot("look")],
        "compare": ["the", slot("thing", number), be, slot("comparison", "more"), "than", "the", slot("other", number)],
        "say": [*subject, "said" if past else "says", "that", "the", inner, slot("verb", "past"), *thing],
        "who": ["who", slot("verb", form), *thing],
        "what": ["what", do, *subject, slot("verb"), *place],
        "where": ["where", do, *subject, slot("verb"), *thing],
    }
    first, *following = orders[shape.frame]
    first = first.capitalize() if isinstance(first, str) else first._replace(capital=True)
    return first, *following, "?" if shape.frame in ("who", "what", "where") else "."


def _number(number: str | None) -> str:
    return "many" if number == "many" else "plain"
