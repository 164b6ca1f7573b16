"""The toy world as a prepared corpus, made in about a second, for experiments, tests and benchmarks."""

import itertools
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from bert_elmo_jax.data.corpora.prepare import Request, prepare
from bert_elmo_jax.toyworld import ToyWorld, distinct_pairs, write_corpus


def toy_corpus(
    folder: str | Path,
    *,
    language: str = "en",
    documents: int = 2000,
    topics: int = ToyWorld.topics,
    words: int = ToyWorld.words,
    tokenizer: str = "wordpiece",
    vocab_size: int = 500,
    heldout: float = 0.05,
    shards: int = 2,
    seed: int = 0,
) -> Path:
    """Generate documents of the toy world and prepare them in `folder`, unless this is already done.

    `language` may list several languages, as in `en,ko`; the corpus then has this number of documents of each.

    >>> from bert_elmo_jax.data.corpora.store import open_store
    >>> store = open_store(toy_corpus(tempfile.mkdtemp(), language="ko", documents=20, tokenizer="words", heldout=0.3))
    >>> len(store) + len(open_store(store.folder, "heldout"))
    20
    """

    def write(texts: Path) -> None:
        for name in language.split(","):
            into = Path(texts, name)
            into.mkdir()
            write_corpus(into, ToyWorld(name, seed, topics, words), documents=documents, held_out=0)

    # The preparation holds documents out, so that both parts share one vocabulary.
    return _prepare(Path(folder), write, tokenizer, vocab_size, heldout, shards, seed)


def toy_pairs(
    folder: str | Path,
    *,
    language: str = "en,ko",
    documents: int = 2000,
    topics: int = ToyWorld.topics,
    words: int = ToyWorld.words,
    tokenizer: str = "wordpiece",
    vocab_size: int = 1000,
    heldout: float = 0.05,
    shards: int = 2,
    seed: int = 0,
) -> Path:
    """Generate sentences of the toy world with their translations and prepare them, unless this is already done.

    `language` names source and target, and `documents` is the number of pairs. No sentence returns, so those that are
    held out occur in no other pair.

    >>> from bert_elmo_jax.data.corpora.store import open_store
    >>> store = open_store(toy_pairs(tempfile.mkdtemp(), documents=20, heldout=0.3))
    >>> len(store) + len(open_store(store.folder, "heldout")), {len(store[i]) for i in range(len(store))}
    (20, {2})
    """
    sides = language.split(",")
    if sorted(sides) != ["en", "ko"]:
        raise ValueError(f"language={language!r}: the toy world's pairs are en,ko or ko,en")

    def write(texts: Path) -> None:
        pairs = itertools.islice(distinct_pairs(ToyWorld("en", seed, topics, words), "corpus"), documents)
        with (texts / "corpus.txt").open("w", encoding="utf-8", newline="\n") as file:
            file.writelines("\n".join(pair if sides[0] == "en" else pair[::-1]) + "\n\n" for pair in pairs)

    return _prepare(Path(folder), write, tokenizer, vocab_size, heldout, shards, seed)


def _prepare(
    folder: Path, write: Callable[[Path], None], tokenizer: str, vocab_size: int, heldout: float, shards: int, seed: int
) -> Path:
    """Write texts into a temporary folder and prepare them, unless this is already done."""
    if not (folder / "manifest.json").is_file():
        if (folder / "plan.json").is_file():  # unfinished; it cannot resume, because the text files are temporary
            shutil.rmtree(folder)
        with tempfile.TemporaryDirectory() as texts:
            write(Path(texts))
            inputs = (str(Path(texts, "**", "corpus.txt")),)
            request = Request(
                inputs, str(folder), tokenizer, vocab_size=vocab_size, heldout=heldout, shards=shards, seed=seed
            )
            prepare(request)
    return folder
