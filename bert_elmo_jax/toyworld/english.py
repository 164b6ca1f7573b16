"""English: the forms of a word and the word order of a sentence."""

from collections.abc import Callable

from bert_elmo_jax.toyworld.lexicon import Entry, Hero
from bert_elmo_jax.toyworld.shapes import Shape, Slot, Token

__all__ = ["comparative", "inflect", "past", "plural", "render", "sense"]


def plural(word: str) -> str:
    """The regular plural, which is also a verb's third person.

    >>> [plural(word) for word in ("net", "box", "lily", "day", "branch")]
    ['nets', 'boxes', 'lilies', 'days', 'branches']
    """
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def past(word: str) -> str:
    """The regular past.

    >>> [past(word) for word in ("mend", "admire", "carry", "play")]
    ['mended', 'admired', 'carried', 'played']
    """
    if word.endswith("e"):
        return word + "d"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ied"
    return word + "ed"


def comparative(word: str) -> str:
    """The regular comparative.

    >>> [comparative(word) for word in ("small", "strange", "pretty")]
    ['smaller', 'stranger', 'prettier']
    """
    return past(word)[:-1] + "r"


def inflect(entry: Entry | Hero, form: str) -> str:
    """The form of a word: `plain`, `many`, `past`, `third` (she mends), `more`, or a hero's `name` and `pronoun`.

    >>> from bert_elmo_jax.toyworld.lexicon import entry
    >>> inflect(entry("catch/caught=잡다"), "past"), inflect(entry("catch/caught=잡다"), "third")
    ('caught', 'catches')
    """
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
    """The tag of a word with several senses, `O` for all others.

    >>> from bert_elmo_jax.toyworld.lexicon import entry
    >>> sense(entry("bank#money=은행")), sense(entry("pear=배#pear"))
    ('bank.money', 'O')
    """
    return f"{entry.english}.{entry.sense_english}" if isinstance(entry, Entry) and entry.sense_english else "O"


def _adverb(shape: Shape) -> list[Token]:
    return [Slot("adverb", f"{shape.tense}_adverbs", "plain")] if shape.adverb else []


def _subject(shape: Shape) -> list[Token]:
    if shape.subject in ("name", "pronoun"):
        return [Slot("hero", "heroes", shape.subject)]
    tokens: list[Token] = ["the", Slot("agent", "people", "many" if shape.subject == "many" else "plain")]
    return tokens + _near(shape)


def _near(shape: Shape) -> list[Token]:
    """What stands between a subject and its verb: a noun of its own number, for the verb to ignore."""
    if shape.near is None:
        return []
    landmark = Slot("landmark", "landmarks", "many" if shape.near == "many" else "plain")
    return ["near", "the", Slot("landmark_look", "landmark_looks", "plain"), landmark]


def _verb(shape: Shape, name: str, list_name: str) -> Slot:
    present = "plain" if shape.subject == "many" else "third"
    return Slot(name, list_name, "past" if shape.tense == "past" else present)


def _thing(shape: Shape) -> list[Token]:
    look: list[Token] = [Slot("look", f"looks{shape.group}", "plain")] if shape.look else []
    return ["the", *look, Slot("thing", f"things{shape.group}", "many" if shape.number == "many" else "plain")]


def _place(shape: Shape) -> list[Token]:
    return (
        [Slot("preposition", "prepositions", "plain"), "the", Slot("place", "places", "plain")] if shape.place else []
    )


def _be(shape: Shape) -> str:
    many = shape.number == "many"
    return ("were" if many else "was") if shape.tense == "past" else ("are" if many else "is")


def render(shape: Shape) -> tuple[Token, ...]:
    """The words of a sentence in order: fixed ones as text, the others as slots to be filled.

    >>> from bert_elmo_jax.toyworld.shapes import Shape
    >>> [token if isinstance(token, str) else token.form for token in render(Shape("act", subject="many", place=True))]
    ['The', 'many', 'past', 'plain', 'the', 'plain', '.']
    """
    verb = f"verbs{shape.group}"
    do = "did" if shape.tense == "past" else "does"
    tokens: list[Token]
    match shape.frame:
        case "opening":
            where: list[Token] = [Slot("place_look", "place_looks", "plain"), Slot("place", "places", "plain"), "."]
            tokens = ["one", Slot("time", "times", "plain"), *_subject(shape), "was"]
            tokens += [Slot("preposition", "prepositions", "plain"), "the", *where]
        case "do":
            tokens = [
                *_adverb(shape),
                *_subject(shape),
                _verb(shape, "verb", verb),
                *_thing(shape),
                *_place(shape),
                ".",
            ]
        case "act":
            tokens = [*_adverb(shape), *_subject(shape), _verb(shape, "act", "acts"), *_place(shape), "."]
        case "look":
            thing = _thing(Shape("look", group=shape.group, number=shape.number))
            tokens = [
                *thing,
                *_near(shape),
                *_place(shape),
                _be(shape),
                Slot("look", f"looks{shape.group}", "plain"),
                ".",
            ]
        case "compare":
            number = "many" if shape.number == "many" else "plain"
            first, second = ("even", "odd") if shape.half == 0 else ("odd", "even")
            tokens = ["the", Slot("thing", f"{first}{shape.group}", number), _be(shape)]
            tokens += [Slot("comparison", "comparisons", "more"), "than", "the"]
            tokens += [Slot("other", f"{second}{shape.group}", number), "."]
        case "say":
            say = "said" if shape.tense == "past" else "says"
            agent = Slot("agent", "people", "many" if shape.near == "many" else "plain")
            tokens = [*_subject(shape), say, "that", "the", agent, Slot("verb", verb, "past"), *_thing(shape), "."]
        case "who":
            tokens = ["who", _verb(shape, "verb", verb), *_thing(shape), "?"]
        case "what":
            tokens = ["what", do, *_subject(shape), Slot("verb", verb, "plain"), *_place(shape), "?"]
        case "where":
            tokens = ["where", do, *_subject(shape), Slot("verb", verb, "plain"), *_thing(shape), "?"]
        case _:
            raise ValueError(f"frame {shape.frame!r}: English has no word order for it")
    return (_capital(tokens[0]), *tokens[1:])


def _capital(token: Token) -> Token:
    return token.capitalize() if isinstance(token, str) else Slot(token.name, token.list, token.form, capital=True)
