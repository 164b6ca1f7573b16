"""The toy world as a prepared corpus, made in a second or so: for trying things out, for tests and benchmarks."""

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bert_elmo_jax.data.corpora.prepare import Request, prepare
from bert_elmo_jax.data.corpora.runners import Report
from bert_elmo_jax.toyworld import ToyWorld, write_corpus


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
    """Generates documents of the toy world and prepares them in `folder`; called again, it finds everything done.

    `language` may be several, as `en,ko`: that many documents of each.

    >>> from bert_elmo_jax.data.corpora.store import open_store
    >>> store = open_store(toy_corpus(tempfile.mkdtemp(), language="ko", documents=20, tokenizer="words", heldout=0.3))
    >>> len(store) + len(open_store(store.folder, "heldout"))
    20
    """
    folder = Path(folder)
    if not (folder / "manifest.json").is_file():  # written last; what is begun anew meets the same texts elsewhere
        if (folder / "plan.json").is_file():
            shutil.rmtree(folder)
        with tempfile.TemporaryDirectory() as texts:
            for name in language.split(","):
                into = Path(texts, name)
                into.mkdir()
                write_corpus(into, ToyWorld(name, seed, topics, words), documents=documents, held_out=0)
            # Documents are held out by the preparation, so that both parts have one vocabulary.
            wish = Request(
                (str(Path(texts, "*", "corpus.txt")),),
                str(folder),
                tokenizer,
                vocab_size=vocab_size,
                heldout=heldout,
                shards=shards,
                seed=seed,
            )
            prepare(wish, _here, _quietly)
    return folder


def _here(function: Callable[[Any, Report], None], jobs: Sequence[Any], report: Report) -> None:
    """A runner without processes."""
    for job in jobs:
        function(job, report)


@contextlib.contextmanager
def _quietly(name: str, size: int) -> Iterator[Report]:
    """No progress bar."""
    del name, size
    yield lambda done: None
