"""A small bilingual corpus and a tokenizer for it, shared by all tests."""

import contextlib
import random
from pathlib import Path

import pytest

from bert_elmo_jax.data.corpora.prepare import Request, prepare

ENGLISH = "the a river bank boat ship muddy old keys open door"
KOREAN = "배를 타고 강을 건너서 은행에 갔다 배가 아파서 맛있는 먹었다 눈이 왔다"
WORDS = [*ENGLISH.split(), *KOREAN.split()]


def random_documents(seed: int, documents: int) -> list[list[str]]:
    """Return documents of sentences that are all different."""
    coins = random.Random(seed)
    return [
        [
            " ".join(coins.choices(WORDS, k=coins.randint(1, 12))) + f" {number} {place}."
            for place in range(coins.randint(1, 9))
        ]
        for number in range(documents)
    ]


def write_documents(path: Path, documents: list[list[str]]) -> None:
    path.write_text("\n\n".join("\n".join(d) for d in documents) + "\n", encoding="utf-8")


@contextlib.contextmanager
def no_bar(name, size):
    yield lambda done: None


def inline(function, jobs, report):
    """Run jobs in this process, for readable failures; the real runners are tested as programs."""
    for job in jobs:
        function(job, report)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory) -> Path:
    """Write the documents to three files."""
    folder = tmp_path_factory.mktemp("texts")
    for number in range(3):
        write_documents(folder / f"{number}.txt", random_documents(number, 120))
    return folder


@pytest.fixture(scope="session")
def documents() -> list[list[str]]:
    """Return the documents of `corpus`."""
    return [document for number in range(3) for document in random_documents(number, 120)]


@pytest.fixture(scope="session")
def tokenizer_folder(tmp_path_factory, documents) -> Path:
    from bert_elmo_jax.text import train_wordpiece

    folder = tmp_path_factory.mktemp("tokenizer")
    train_wordpiece((s for d in documents for s in d), 400).save(folder)
    return folder


def ask(corpus, output, tokenizer, **options):
    return Request(inputs=(f"{corpus}/*.txt",), output=str(output), tokenizer=str(tokenizer), **options)


@pytest.fixture(scope="session")
def pieces(tmp_path_factory, corpus, tokenizer_folder):
    folder = tmp_path_factory.mktemp("stores") / "pieces"
    prepare(ask(corpus, folder, tokenizer_folder, shards=5, heldout=0.1), inline, no_bar)
    return folder


@pytest.fixture(scope="session")
def words(tmp_path_factory, corpus):
    folder = tmp_path_factory.mktemp("stores") / "words"
    prepare(ask(corpus, folder, "words", shards=5, heldout=0.1, vocab_size=30), inline, no_bar)
    return folder
