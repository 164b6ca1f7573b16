"""Korean word forms and word order."""

from bert_elmo_jax.toyworld import hangul
from bert_elmo_jax.toyworld.lexicon import Entry, Hero
from bert_elmo_jax.toyworld.shapes import Shape, Slot, Token


def inflect(entry: Entry | Hero, form: str) -> str:
    """Return a form of a word, given as `kind` or `kind+honorific` (the subject is an elder).

    Nouns: plain, topic, subject, object, at (에서), in (에), than (보다), of (의); `many-…` adds 들. Verbs: past,
    present, said (았다고), asked (past question), ask (present question). Adjectives: before, is, was.
    """
    if isinstance(entry, Hero):
        word = entry.korean_pronoun if form == "pronoun" else entry.korean
        return word + "께서는" if entry.honorific else hangul.particle(word, "topic")
    kind, _, agreement = form.partition("+")
    if kind in ("past", "present", "said", "asked", "ask", "before", "is", "was"):
        return _conjugate(entry.korean.removesuffix("다"), entry.irregular, kind, honorific=agreement == "honorific")
    many, _, case = kind.rpartition("-")
    noun = entry.korean + ("들" if many else "")
    if case in ("topic", "subject", "object"):
        return hangul.particle(noun, case)
    return noun + {"plain": "", "at": "에서", "in": "에", "than": "보다", "of": "의"}[case]


def _conjugate(stem: str, irregular: bool, kind: str, honorific: bool) -> str:
    if honorific:
        stem, irregular = hangul.honorific(stem, irregular), False
    match kind:
        case "past" | "was":
            return hangul.past(stem, irregular) + "다"
        case "said":
            return hangul.past(stem, irregular) + "다고"
        case "asked":
            return hangul.past(stem, irregular) + "나요"
        case "ask":
            return hangul.question(stem)
        case "before":
            return hangul.attributive(stem, irregular)
        case "is":
            return stem + "다"
    return hangul.present(stem)


def sense(entry: Entry | Hero) -> str:
    """Return the sense tag of an ambiguous word, `O` for all others.

    >>> from bert_elmo_jax.toyworld.lexicon import entry
    >>> sense(entry("pear=배#pear"))
    '배.pear'
    """
    return f"{entry.korean}.{entry.sense_korean}" if isinstance(entry, Entry) and entry.sense_korean else "O"


def _adverb(shape: Shape) -> list[Token]:
    return [Slot("adverb", f"{shape.tense}_adverbs", "plain")] if shape.adverb else []


def _hero(shape: Shape) -> bool:
    return shape.subject in ("name", "pronoun")


def _subject(shape: Shape) -> list[Token]:
    if _hero(shape):
        return [Slot("hero", "heroes", shape.subject)]
    return [*_near(shape), Slot("agent", "people", "many-topic" if shape.subject == "many" else "topic")]


def _near(shape: Shape) -> list[Token]:
    if shape.near is None:
        return []
    return [Slot("landmark_look", "landmark_looks", "before"), Slot("landmark", "landmarks", "plain"), "옆의"]


def _verb(shape: Shape, name: str, list_name: str, form: str) -> Slot:
    """Return the verb slot, which agrees in honorifics with the subject at the beginning of the sentence."""
    return Slot(name, list_name, form + ("+hero" if _hero(shape) else ""))


def _thing(shape: Shape) -> list[Token]:
    look: list[Token] = [Slot("look", f"looks{shape.group}", "before")] if shape.look else []
    return [*look, Slot("thing", f"things{shape.group}", "object")]


def _place(shape: Shape) -> list[Token]:
    return [Slot("place", "places", "at")] if shape.place else []


def render(shape: Shape) -> tuple[Token, ...]:
    """Return the words of a sentence in order: fixed words as text, content words as slots."""
    verb = f"verbs{shape.group}"
    question = "asked" if shape.tense == "past" else "ask"
    predicate = "was" if shape.tense == "past" else "is"
    match shape.frame:
        case "opening":
            where: list[Token] = [Slot("place_look", "place_looks", "before"), Slot("place", "places", "in")]
            be = _verb(shape, "be", "beings", "past")
            return ("어느", Slot("time", "times", "plain"), *_subject(shape), *where, be, ".")
        case "do":
            last = _verb(shape, "verb", verb, shape.tense)
            return (*_adverb(shape), *_subject(shape), *_place(shape), *_thing(shape), last, ".")
        case "act":
            last = _verb(shape, "act", "acts", shape.tense)
            return (*_adverb(shape), *_subject(shape), *_place(shape), last, ".")
        case "look":
            thing = Slot("thing", f"things{shape.group}", "topic")
            where = [Slot("place", "places", "of")] if shape.place else []
            return (*where, *_near(shape), thing, Slot("look", f"looks{shape.group}", predicate), ".")
        case "compare":
            first, second = ("even", "odd") if shape.half == 0 else ("odd", "even")
            things = (Slot("thing", f"{first}{shape.group}", "topic"), Slot("other", f"{second}{shape.group}", "than"))
            return (*things, "더", Slot("comparison", "comparisons", predicate), ".")
        case "say":
            agent = Slot("agent", "people", "many-subject" if shape.near == "many" else "subject")
            inner = (agent, *_thing(shape), Slot("verb", verb, "said"))
            return (*_subject(shape), *inner, _verb(shape, "say", "sayings", shape.tense), ".")
        case "who":
            return ("누가", *_thing(shape), Slot("verb", verb, question), "?")
        case "what":
            return (*_subject(shape), *_place(shape), "무엇을", _verb(shape, "verb", verb, question), "?")
        case "where":
            return (*_subject(shape), "어디에서", *_thing(shape), _verb(shape, "verb", verb, question), "?")
    raise ValueError(f"frame {shape.frame!r}: Korean has no word order for it")
