"""Files of the toy world: a pretraining corpus and four labelled tasks with their splits.

Every split has its own documents, so that no test example occurs in the pretraining corpus. The questions (who, what
and where) ask for facts that a document tells exactly once.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np

from bert_elmo_jax.files import open_atomically
from bert_elmo_jax.toyworld.lexicon import HEROES, lexicon
from bert_elmo_jax.toyworld.network import LANGUAGES, word_form
from bert_elmo_jax.toyworld.shapes import Shape, Slot, slots
from bert_elmo_jax.toyworld.world import Document, Sentence, ToyWorld

# The number of a split's first document.
SPLITS = {"corpus": 0, "held_out": 2**30, "train": 2 * 2**30, "dev": 2 * 2**30 + 2**29, "test": 3 * 2**30}
_ELSEWHERE = 2**28
_LONGEST_CONTEXT = 10


def _documents(world: ToyWorld, split: str, offset: int = 0) -> Iterator[Document]:
    if split not in SPLITS:
        raise ValueError(f"split {split!r}: expected one of {', '.join(SPLITS)}")
    return (world.document(i) for i in count(SPLITS[split] + offset))


def sense_examples(world: ToyWorld, split: str) -> Iterator[Sentence]:
    """Yield sentences with at least one ambiguous word, endlessly.

    >>> any(tag != "O" for tag in next(sense_examples(ToyWorld("ko"), "train")).tags)
    True
    """
    for document in _documents(world, split):
        yield from (sentence for sentence in document.sentences if any(tag != "O" for tag in sentence.tags))


def topic_examples(world: ToyWorld, split: str) -> Iterator[tuple[str, str]]:
    """Yield (sentence, topic), one sentence per document, endlessly.

    >>> next(topic_examples(ToyWorld("en"), "train"))[1] in ToyWorld("en").topic_names
    True
    """
    for document in _documents(world, split):
        yield document.sentences[1].text, document.topic


def next_examples(world: ToyWorld, split: str) -> Iterator[tuple[str, str, int]]:
    """Yield (a, b, label) endlessly: label 0 if b follows a, 1 if b is a sentence of another document.

    Every pair of neighbouring sentences occurs once; its second sentence is replaced with probability 0.5.

    >>> sorted({label for _, _, label in islice(next_examples(ToyWorld("en"), "dev"), 20)})
    [0, 1]
    """
    coin = np.random.Generator(np.random.PCG64([world.seed, SPLITS[split], 1])).random
    elsewhere = (sentence for document in _documents(world, split, _ELSEWHERE) for sentence in document.sentences)
    for document in _documents(world, split):
        for a, b in zip(document.sentences, document.sentences[1:]):
            label = int(coin() < 0.5)
            yield a.text, next(elsewhere).text if label else b.text, label


def question_examples(world: ToyWorld, split: str) -> Iterator[dict]:
    """Yield SQuAD v1.1 paragraphs (context, qas) endlessly; a context is the beginning of a document.

    >>> paragraph = next(question_examples(ToyWorld("ko"), "train"))
    >>> answer = paragraph["qas"][0]["answers"][0]
    >>> paragraph["context"][answer["answer_start"] :].startswith(answer["text"])
    True
    """
    pick = np.random.Generator(np.random.PCG64([world.seed, SPLITS[split], 2])).random
    for i in count(SPLITS[split]):
        document = world.document(i)
        context = replace(document, sentences=document.sentences[:_LONGEST_CONTEXT])
        candidates = list(questions(world, context))
        # At most two questions, so that documents with many facts do not dominate.
        chosen = [candidates.pop(int(pick() * len(candidates))) for _ in range(min(2, len(candidates)))]
        if chosen:
            qas = [
                {
                    "id": f"{world.language}-{split}-{i}-{number}",
                    "question": question.text,
                    "answers": [{"text": text, "answer_start": start} for text, start in question.answers],
                }
                for number, question in enumerate(chosen)
            ]
            yield {"context": context.text.replace("\n", " "), "qas": qas}


EXAMPLES: Mapping[str, Callable[[ToyWorld, str], Iterator[Any]]] = {
    "senses": sense_examples, "topics": topic_examples, "next": next_examples, "questions": question_examples,
}  # fmt: skip
ENDINGS = {"senses": "conll", "topics": "tsv", "next": "tsv", "questions": "json"}


def sentence_pairs(world: ToyWorld, split: str) -> Iterator[tuple[str, str]]:
    """Yield (English, Korean) sentences with the same meaning, endlessly.

    >>> next(sentence_pairs(ToyWorld(), "corpus"))
    ('One morning Grandmother was in the quiet auditorium .', '어느 아침 할머니께서는 조용한 강당에 계셨다 .')
    """
    english, korean = replace(world, language="en"), replace(world, language="ko")
    for a, b in zip(_documents(english, split), _documents(korean, split)):
        yield from ((x.text, y.text) for x, y in zip(a.sentences, b.sentences, strict=True))


def write_corpus(folder: str | Path, world: ToyWorld, documents: int = 10_000, held_out: int = 500) -> list[Path]:
    """Write `corpus.txt` and `held_out.txt`: one sentence per line, a blank line after each document.

    >>> import tempfile
    >>> [path.name for path in write_corpus(tempfile.mkdtemp(), ToyWorld("ko"), documents=2, held_out=1)]
    ['corpus.txt', 'held_out.txt']
    """
    sizes = {"corpus": documents, "held_out": held_out}
    return [
        _write(Path(folder) / f"{split}.txt", (d.text + "\n\n" for d in islice(_documents(world, split), size)))
        for split, size in sizes.items()
    ]


def write_pairs(
    folder: str | Path, world: ToyWorld, train: int = 10_000, dev: int = 500, test: int = 500
) -> list[Path]:
    """Write aligned sentences to `pairs/{train,dev,test}.tsv` with the columns english and korean.

    >>> import tempfile
    >>> len(write_pairs(tempfile.mkdtemp(), ToyWorld(), train=2, dev=1, test=1)[0].read_text("utf-8").splitlines())
    3
    """
    return [
        _write(Path(folder) / "pairs" / f"{split}.tsv", _tsv(("english", "korean"), islice(pairs, size)))
        for split, size in (("train", train), ("dev", dev), ("test", test))
        for pairs in [sentence_pairs(world, split)]
    ]


def write_tasks(folder: str | Path, world: ToyWorld, train: int = 1000, dev: int = 500, test: int = 500) -> list[Path]:
    """Write four tasks, each with `train`, `dev` and `test` examples: sentences, sentences, pairs and paragraphs.

    `senses/*.conll` (word TAB tag, blank line after a sentence), `topics/*.tsv` (text, label), `next/*.tsv` (a, b,
    label: 1 is random), `questions/*.json` (SQuAD v1.1).

    >>> import tempfile
    >>> len(write_tasks(tempfile.mkdtemp(), ToyWorld("ko"), train=2, dev=1, test=1))
    12
    """
    return [
        write_examples(
            Path(folder) / task / f"{split}.{ENDINGS[task]}", task, islice(examples(world, split), size),
            f"toy world, {world.language}",
        )
        for task, examples in EXAMPLES.items()
        for split, size in (("train", train), ("dev", dev), ("test", test))
    ]  # fmt: skip


def write_examples(path: Path, task: str, examples: Iterable[Any], title: str = "toy world") -> Path:
    """Write examples of a task, in the layout of `write_tasks`; the title is for questions."""
    lines: Iterable[str]
    if task == "senses":
        lines = ("".join(f"{word}\t{tag}\n" for word, tag in zip(s.words, s.tags)) + "\n" for s in examples)
    elif task == "questions":
        data = {"version": "1.1", "data": [{"title": title, "paragraphs": list(examples)}]}
        lines = [json.dumps(data, ensure_ascii=False, indent=1) + "\n"]
    else:
        lines = _tsv(("text", "label") if task == "topics" else ("a", "b", "label"), examples)
    return _write(path, lines)


def _tsv(header: tuple[str, ...], rows: Iterable[tuple]) -> Iterator[str]:
    yield "\t".join(header) + "\n"
    for row in rows:
        yield "\t".join(map(str, row)) + "\n"


def _write(path: Path, lines: Iterable[str]) -> Path:
    """Write a file atomically."""
    with open_atomically(path, encoding="utf-8") as file:
        file.writelines(lines)
    return path


@dataclass(frozen=True)
class Question:
    """A question and its accepted answers, each (text, start in the context).

    A Korean answer comes without its particle and, for readers that cannot split a word, with it.
    """

    text: str
    answers: tuple[tuple[str, int], ...]


def questions(world: ToyWorld, document: Document) -> Iterator[Question]:
    """Yield all questions that the document, its sentences joined by spaces, answers unambiguously."""
    topic = world.topic_names.index(document.topic)
    hero = [hero.english for hero in HEROES].index(document.hero)
    events: list[_Fact] = []
    start = 0
    for sentence in document.sentences:
        if sentence.shape.frame in ("do", "say"):
            events.append(_fact(world, sentence, start, topic, hero))
        start += len(sentence.text) + 1
    deeds = [(fact.verb, fact.thing) for fact in events]
    hero_events = [fact for fact in events if fact.hero_acts]

    def ask(fact: _Fact, answer: str, frame: str, *names: str) -> Question:
        shape = fact.sentence.shape
        number = shape.number if "thing" in names else "one"
        question_shape = Shape(frame, tense=shape.tense, group=shape.group, number=number)
        text = world.say(topic, hero, question_shape, tuple(fact.choices[name] for name in names)).text
        return Question(text, _answer(world, fact, answer))

    for fact in events:
        shape = fact.sentence.shape
        if shape.frame == "do" and shape.subject != "pronoun" and deeds.count((fact.verb, fact.thing)) == 1:
            yield ask(fact, "hero" if fact.hero_acts else "agent", "who", "verb", "thing")
        if fact.hero_acts and sum(other.verb == fact.verb for other in hero_events) == 1:
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
        entry = lexicon(world.topics, world.words).entries(lists[name], topic, hero)[choices[name]]
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
    return text[:-1]  # a topic or object particle
