"""Span questions (who, what and where) about facts that a document tells exactly once."""

from collections.abc import Iterator
from dataclasses import dataclass

from bert_elmo_jax.toyworld.hangul import particle
from bert_elmo_jax.toyworld.lexicon import HEROES, lexicon
from bert_elmo_jax.toyworld.network import LANGUAGES, entries, word_form
from bert_elmo_jax.toyworld.shapes import Shape, Slot, slots
from bert_elmo_jax.toyworld.world import Document, Sentence, ToyWorld


@dataclass(frozen=True)
class Question:
    """A question and its accepted answers, each (text, start in the context).

    A Korean answer comes without its particle and, for readers that cannot split a word, with it.

    >>> Question("누가 그물을 고쳤나요 ?", (("선원", 3), ("선원은", 3))).answers[0]
    ('선원', 3)
    """

    text: str
    answers: tuple[tuple[str, int], ...]


def questions(world: ToyWorld, document: Document) -> Iterator[Question]:
    r"""Yield all questions that the document, its sentences joined by spaces, answers unambiguously.

    >>> world = ToyWorld("en")
    >>> document = world.document(2)
    >>> context = document.text.replace("\n", " ")
    >>> [(q.text, q.answers[0][0]) for q in questions(world, document)][0]
    ('Who closes the company ?', 'The bankers')
    """
    topic = world.topic_names.index(document.topic)
    hero = [hero.english for hero in HEROES].index(document.hero)
    facts: list[_Fact] = []
    start = 0
    for sentence in document.sentences:
        if sentence.shape.frame in ("do", "say"):
            facts.append(_fact(world, sentence, start, topic, hero))
        start += len(sentence.text) + 1
    deeds = [(fact.verb, fact.thing) for fact in facts]
    own = [fact for fact in facts if fact.hero_acts]

    def ask(fact: _Fact, answer: str, frame: str, *names: str) -> Question:
        shape = fact.sentence.shape
        number = shape.number if "thing" in names else "one"
        asked = Shape(frame, tense=shape.tense, group=shape.group, number=number)
        text = world.say(topic, hero, asked, tuple(fact.choices[name] for name in names)).text
        return Question(text, _answer(world, fact, answer))

    for fact in facts:
        shape = fact.sentence.shape
        if shape.frame == "do" and shape.subject != "pronoun" and deeds.count((fact.verb, fact.thing)) == 1:
            yield ask(fact, "hero" if fact.hero_acts else "agent", "who", "verb", "thing")
        if fact.hero_acts and sum(other.verb == fact.verb for other in own) == 1:
            yield ask(fact, "thing", "what", "verb")
            if shape.place:
                yield ask(fact, "place", "where", "verb", "thing")


@dataclass(frozen=True)
class _Fact:
    """A sentence to ask about; verb and thing are words, not meanings, so that homonyms count as equal."""

    sentence: Sentence
    start: int
    verb: str
    thing: str
    hero_acts: bool
    choices: dict[str, int]


def _fact(world: ToyWorld, sentence: Sentence, start: int, topic: int, hero: int) -> _Fact:
    drawn = slots(sentence.shape)
    choices = {name: choice for (name, _), choice in zip(drawn, sentence.choices, strict=True)}
    lists = dict(drawn)

    def word(name: str, form: str) -> str:
        entry = entries(lexicon(world.topics, world.words), lists[name], topic, hero)[choices[name]]
        return word_form(world.language, Slot(name, lists[name], form), entry, hero)

    hero_acts = sentence.shape.frame == "do" and sentence.shape.subject in ("name", "pronoun")
    return _Fact(sentence, start, word("verb", "past"), word("thing", "plain"), hero_acts, choices)


def _answer(world: ToyWorld, fact: _Fact, name: str) -> tuple[tuple[str, int], ...]:
    """Return the answers for a slot: its phrase from the article (English) or the adjective (Korean) onwards."""
    sentence = fact.sentence
    order = LANGUAGES[world.language].render(sentence.shape)
    names = [token.name if isinstance(token, Slot) else token.lower() for token in order]
    first = last = names.index(name)
    while first > 0 and names[first - 1] in ("the", "look"):
        first -= 1
    begin = fact.start + len(" ".join(sentence.words[:first])) + (first > 0)
    text = " ".join(sentence.words[first : last + 1])
    if world.language == "ko":
        return ((_without_particle(text), begin), (text, begin))
    return ((text, begin),)


def _without_particle(text: str) -> str:
    for ending in ("께서는", "에서"):
        if text.endswith(ending):
            return text.removesuffix(ending)
    if text not in (particle(text[:-1], "topic"), particle(text[:-1], "object")):
        raise ValueError(f"{text!r}: expected a topic or object particle at the end")
    return text[:-1]
