"""The toy world as a prepared corpus, made in about a second, for experiments, tests and benchmarks."""

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Sequence
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
    """Generate documents of the toy world and prepare them in `folder`, unless this is already done.

    `language` may list several languages, as in `en,ko`; the corpus then has this number of documents of each.

    >>> from bert_elmo_jax.data.corpora.store import open_store
    >>> store = open_store(toy_corpus(tempfile.mkdtemp(), language="ko", documents=20, tokenizer="words", heldout=0.3))
    >>> len(store) + len(open_store(store.folder, "heldout"))
    20
    """
    folder = Path(folder)
    if not (folder / "manifest.json").is_file():
        if (folder / "plan.json").is_file():  # unfinished; it cannot resume, because the text files are temporary
            shutil.rmtree(folder)
        with tempfile.TemporaryDirectory() as texts:
            for name in language.split(","):
                into = Path(texts, name)
                into.mkdir()
                write_corpus(into, ToyWorld(name, seed, topics, words), documents=documents, held_out=0)
            # The preparation holds documents out, so that both parts share one vocabulary.
            inputs = (str(Path(texts, "*", "corpus.txt")),)
            wish = Request(
                inputs, str(folder), tokenizer, vocab_size=vocab_size, heldout=heldout, shards=shards, seed=seed
            )
            prepare(wish, _here, lambda name, size: contextlib.nullcontext(lambda done: None))
    return folder


def _here(function: Callable[[Any, Report], None], jobs: Sequence[Any], report: Report) -> None:
    """Run jobs in this process."""
    for job in jobs:
        function(job, report)
