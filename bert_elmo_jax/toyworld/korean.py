"""Korean word forms and word order."""

from bert_elmo_jax.toyworld import hangul
from bert_elmo_jax.toyworld.lexicon import Entry, Hero
from bert_elmo_jax.toyworld.shapes import Shape, Token


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
        case "past" | "was" | "said" | "asked":
            return hangul.past(stem, irregular) + {"said": "다고", "asked": "나요"}.get(kind, "다")
        case "ask":
            return hangul.question(stem)
        case "before":
            return hangul.attributive(stem, irregular)
        case "is":
            return stem + "다"
    return hangul.present(stem)


def sense(entry: Entry | Hero) -> str:
    """Return the sense tag of an ambiguous word such as `배.pear`, `O` for all others."""
    return f"{entry.korean}.{entry.sense_korean}" if isinstance(entry, Entry) and entry.sense_korean else "O"


def render(shape: Shape) -> tuple[Token, ...]:
    """Return the words of a sentence in order: fixed words as text, content words as slots."""
    slot, past = shape.slot, shape.tense == "past"
    question, predicate = ("asked", "was") if past else ("ask", "is")
    agree = "+hero" if shape.hero_acts else ""  # verbs agree in honorifics with the subject of the whole sentence
    adverb = [slot("adverb")] if shape.adverb else []
    near: list[Token] = [slot("landmark_look", "before"), slot("landmark"), "옆의"] if shape.near else []
    agent = [*near, slot("agent", "many-topic" if shape.subject == "many" else "topic")]
    subject = [slot("hero", shape.subject)] if shape.hero_acts else agent
    thing = [*([slot("look", "before")] if shape.look else []), slot("thing", "object")]
    place = [slot("place", "at")] if shape.place else []
    inner = slot("agent", "many-subject" if shape.near == "many" else "subject")
    where = [slot("place", "of")] if shape.place else []
    orders: dict[str, list[Token]] = {
        "opening": ["어느", slot("time"), *subject, slot("place_look", "before"), slot("place", "in"),
                    slot("be", f"past{agree}")],
        "do": [*adverb, *subject, *place, *thing, slot("verb", shape.tense + agree)],
        "act": [*adverb, *subject, *place, slot("act", shape.tense + agree)],
        "look": [*where, *near, slot("thing", "topic"), slot("look", predicate)],
        "compare": [slot("thing", "topic"), slot("other", "than"), "더", slot("comparison", predicate)],
        "say": [*subject, inner, *thing, slot("verb", "said"), slot("say", shape.tense + agree)],
        "who": ["누가", *thing, slot("verb", question)],
        "what": [*subject, *place, "무엇을", slot("verb", question + agree)],
        "where": [*subject, "어디에서", *thing, slot("verb", question + agree)],
    }  # fmt: skip
    return *orders[shape.frame], "?" if shape.frame in ("who", "what", "where") else "."
