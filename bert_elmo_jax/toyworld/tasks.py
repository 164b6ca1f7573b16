"""Files of the toy world: a pretraining corpus, aligned sentences, and four labelled tasks with their splits.

Every split has its own documents, so that no test example occurs in the pretraining corpus.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import count, islice
from pathlib import Path

import numpy as np

from bert_elmo_jax.files import open_atomically
from bert_elmo_jax.toyworld.questions import questions
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
    others = (sentence for document in _documents(world, split, _ELSEWHERE) for sentence in document.sentences)
    for document in _documents(world, split):
        for a, b in zip(document.sentences, document.sentences[1:]):
            label = int(coin() < 0.5)
            yield a.text, next(others).text if label else b.text, label


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
        told = replace(document, sentences=document.sentences[:_LONGEST_CONTEXT])
        asked = list(questions(world, told))
        # At most two questions, so that documents with many facts do not dominate.
        chosen = [asked.pop(int(pick() * len(asked))) for _ in range(min(2, len(asked)))]
        if chosen:
            qas = [
                {
                    "id": f"{world.language}-{split}-{i}-{number}",
                    "question": question.text,
                    "answers": [{"text": text, "answer_start": start} for text, start in question.answers],
                }
                for number, question in enumerate(chosen)
            ]
            yield {"context": told.text.replace("\n", " "), "qas": qas}


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
        _write(Path(folder) / "pairs" / f"{split}.tsv", _tsv(("english", "korean"), pairs))
        for split, pairs in _take(sentence_pairs, world, train, dev, test)
    ]


def write_tasks(folder: str | Path, world: ToyWorld, train: int = 1000, dev: int = 500, test: int = 500) -> list[Path]:
    """Write four tasks, each with `train`, `dev` and `test` examples: sentences, sentences, pairs and paragraphs.

    `senses/*.conll` (word TAB tag, blank line after a sentence), `topics/*.tsv` (text, label), `next/*.tsv` (a, b,
    label: 1 is random), `questions/*.json` (SQuAD v1.1).

    >>> import tempfile
    >>> len(write_tasks(tempfile.mkdtemp(), ToyWorld("ko"), train=2, dev=1, test=1))
    12
    """
    folder = Path(folder)
    written = []
    for split, sentences in _take(sense_examples, world, train, dev, test):
        lines = ("".join(f"{w}\t{t}\n" for w, t in zip(s.words, s.tags)) + "\n" for s in sentences)
        written.append(_write(folder / "senses" / f"{split}.conll", lines))
    for split, texts in _take(topic_examples, world, train, dev, test):
        written.append(_write(folder / "topics" / f"{split}.tsv", _tsv(("text", "label"), texts)))
    for split, pairs in _take(next_examples, world, train, dev, test):
        written.append(_write(folder / "next" / f"{split}.tsv", _tsv(("a", "b", "label"), pairs)))
    for split, paragraphs in _take(question_examples, world, train, dev, test):
        title = f"toy world, {world.language}"
        data = {"version": "1.1", "data": [{"title": title, "paragraphs": list(paragraphs)}]}
        text = json.dumps(data, ensure_ascii=False, indent=1) + "\n"
        written.append(_write(folder / "questions" / f"{split}.json", [text]))
    return written


def _take(
    examples: Callable[[ToyWorld, str], Iterator], world: ToyWorld, train: int, dev: int, test: int
) -> Iterator[tuple[str, Iterator]]:
    for split, size in (("train", train), ("dev", dev), ("test", test)):
        yield split, islice(examples(world, split), size)


def _tsv(header: tuple[str, ...], rows: Iterable[tuple]) -> Iterator[str]:
    yield "\t".join(header) + "\n"
    for row in rows:
        yield "\t".join(map(str, row)) + "\n"


def _write(path: Path, lines: Iterable[str]) -> Path:
    """Write a file atomically."""
    with open_atomically(path, encoding="utf-8") as file:
        file.writelines(lines)
    return path
