"""Data of the toy scale: files of the toy world that a sweep makes before it begins; a name tells the whole content."""

import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from bert_elmo_jax.data.corpora.prepare import Request, prepare
from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus
from bert_elmo_jax.files import lock, write_text
from bert_elmo_jax.sweeps.points import File
from bert_elmo_jax.toyworld import ToyWorld, sense_examples, topic_examples
from bert_elmo_jax.toyworld.tasks import ENDINGS, EXAMPLES, write_examples

TASK = r"toy-(\w+)-topics(\d+)-words(\d+)-train(\d+)-dev(\d+)/(\w+)/(train|dev)\.\w+"
TEXTS = r"(toy-(\w+)-topics(\d+)-words(\d+)-train(\d+)-dev\d+)/(\w+)/train-texts-(wordpiece\S+)"
CORPUS = r"toy-(\w+)-topics(\d+)-words(\d+)/(wordpiece|sentencepiece|byte_bpe|words)-vocabulary(\d+)-documents(\d+)"


class ToyData(NamedTuple):
    """A toy world, and how many examples of a task are for training and for evaluation.

    >>> ToyData(topics=4, words=2, train=300, dev=200).file("senses", "train").name
    'toy-en-topics4-words2-train300-dev200/senses/train.conll'
    """

    topics: int
    words: int
    train: int
    dev: int
    language: str = "en"  # or en_ko, both, of a corpus

    @property
    def name(self) -> str:
        """The folder's name."""
        return f"toy-{self.language}-topics{self.topics}-words{self.words}-train{self.train}-dev{self.dev}"

    def file(self, task: str, part: str) -> File:
        """Return the file of a task, for "train" or "dev"."""
        return File(f"{self.name}/{task}/{part}.{ENDINGS[task]}", made=True)

    def corpus(self, tokenizer: str, vocab_size: int, documents: int) -> File:
        """Return a prepared corpus of the same world, for pretraining."""
        name = f"toy-{self.language}-topics{self.topics}-words{self.words}"
        return File(f"{name}/{tokenizer}-vocabulary{vocab_size}-documents{documents}", made=True)

    def texts(self, task: str, corpus: File) -> File:
        """Return a prepared corpus of the texts of a task's training examples, in the pieces of a corpus of the world.

        >>> world = ToyData(4, 2, train=128, dev=256)
        >>> world.texts("topics", world.corpus("wordpiece", 512, 300)).name
        'toy-en-topics4-words2-train128-dev256/topics/train-texts-wordpiece-vocabulary512-documents300'
        """
        return File(f"{self.name}/{task}/train-texts-{corpus.name.partition('/')[2]}", made=True)


def make_files(root: Path, files: Iterable[File]) -> None:
    """Make the files that do not exist; a sweep that starts at the same time waits."""
    root.mkdir(parents=True, exist_ok=True)
    with lock(root / "lock", wait=True):
        for file in files:
            _make_file(root / file.name, file.name)


def _make_file(target: Path, name: str) -> None:
    if corpus := re.fullmatch(CORPUS, name):
        language, topics, words, tokenizer, size, documents = corpus.groups()
        toy_corpus(
            target, language=language.replace("_", ","), topics=int(topics), words=int(words), tokenizer=tokenizer,
            vocab_size=int(size), documents=int(documents), heldout=0.02,
        )  # fmt: skip
    elif texts := re.fullmatch(TEXTS, name):
        _prepare_texts(target, *texts.groups())
    elif not target.is_file():
        if not (match := re.fullmatch(TASK, name)):
            example = ToyData(4, 2, 300, 200).file("next", "dev").name
            raise ValueError(f"{name} is not a name of toy data, such as {example}")
        language, topics, words, train, dev, task, part = match.groups()
        world = ToyWorld(language, topics=int(topics), words=int(words))
        examples: Iterable[Any] = islice(EXAMPLES[task](world, part), int(train if part == "train" else dev))
        if task == "senses":  # an entity is a word of several senses, its type the sense
            examples = (replace(s, tags=tuple(t if t == "O" else f"B-{t}" for t in s.tags)) for s in examples)
        write_examples(target, task, examples)


def _prepare_texts(
    target: Path, name: str, language: str, topics: str, words: str, train: str, task: str, corpus: str
) -> None:
    """Prepare each text of a task's training examples as a document of one sentence."""
    world, root = ToyWorld(language, topics=int(topics), words=int(words)), target.parents[2]
    pieces = f"toy-{language}-topics{topics}-words{words}/{corpus}"
    _make_file(root / pieces, pieces)
    if task == "senses":
        lines = [" ".join(sentence.words) for sentence in islice(sense_examples(world, "train"), int(train))]
    else:
        lines = [text for text, _ in islice(topic_examples(world, "train"), int(train))]
    source = root / name / task / "train-texts.txt"
    write_text(source, "\n\n".join(lines) + "\n")
    request = Request((str(source),), str(target), str(root / pieces / "tokenizer"), shards=1, heldout=0.1)
    prepare(request)
