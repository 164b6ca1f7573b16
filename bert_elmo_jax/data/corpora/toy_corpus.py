"""The toy world as a prepared corpus, made in about a second, for experiments, tests and benchmarks."""

import itertools
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bert_elmo_jax.data.corpora.prepare import Request, prepare
from bert_elmo_jax.files import read_json, write_json
from bert_elmo_jax.toyworld import ToyWorld, distinct_pairs, write_corpus

WORLD = "world.json"  # in the folder of a corpus: the options that it was made with
PLAN = {"format", "options", "sources"}  # the entries of a preparation's plan.json


@dataclass(frozen=True)
class ToyOptions:
    """The settings of a toy corpus. `language` may list several, and `documents` are those of each."""

    language: str = "en"
    documents: int = 2000
    topics: int = ToyWorld.topics
    words: int = ToyWorld.words
    tokenizer: str = "wordpiece"
    vocab_size: int = 500
    heldout: float = 0.05
    shards: int = 2
    seed: int = 0


def toy_corpus(folder: str | Path, **options: Any) -> Path:
    """Generate documents of the toy world and prepare them in `folder`, unless this is already done.

    The options are those of `ToyOptions`. With several languages, as in `en,ko`, the corpus has this number of
    documents of each.

    >>> from bert_elmo_jax.data.corpora.store import open_store
    >>> store = open_store(toy_corpus(tempfile.mkdtemp(), language="ko", documents=20, tokenizer="words", heldout=0.3))
    >>> len(store) + len(open_store(store.folder, "heldout"))
    20
    """
    o = ToyOptions(**options)

    def write(texts: Path) -> None:
        for name in o.language.split(","):
            into = Path(texts, name)
            into.mkdir()
            write_corpus(into, ToyWorld(name, o.seed, o.topics, o.words), documents=o.documents, held_out=0)

    # The preparation holds documents out, so that both parts share one vocabulary.
    return _prepare(Path(folder), write, o, pairs=False)


def toy_pairs(folder: str | Path, **options: Any) -> Path:
    """Generate sentences of the toy world with their translations and prepare them, unless this is already done.

    The options are those of `ToyOptions`, by default with `language="en,ko"` and `vocab_size=1000`: `language` names
    source and target, and `documents` is the number of pairs. No sentence returns, so those that are held out occur in
    no other pair.

    >>> from bert_elmo_jax.data.corpora.store import open_store
    >>> store = open_store(toy_pairs(tempfile.mkdtemp(), documents=20, heldout=0.3))
    >>> len(store) + len(open_store(store.folder, "heldout")), {len(store[i]) for i in range(len(store))}
    (20, {2})
    """
    o = ToyOptions(**{"language": "en,ko", "vocab_size": 1000, **options})
    sides = o.language.split(",")
    if sorted(sides) != ["en", "ko"]:
        raise ValueError(f"language={o.language!r}: the toy world's pairs are en,ko or ko,en")

    def write(texts: Path) -> None:
        pairs = itertools.islice(distinct_pairs(ToyWorld("en", o.seed, o.topics, o.words), "corpus"), o.documents)
        with (texts / "corpus.txt").open("w", encoding="utf-8", newline="\n") as file:
            file.writelines("\n".join(pair if sides[0] == "en" else pair[::-1]) + "\n\n" for pair in pairs)

    return _prepare(Path(folder), write, o, pairs=True)


def _prepare(folder: Path, write: Callable[[Path], None], o: ToyOptions, *, pairs: bool) -> Path:
    """Write texts into a temporary folder and prepare them, unless this is already done.

    A folder of other options, from a run that was refused, is made again; of earlier versions, which kept no options,
    it is used.
    """
    world = {"pairs": pairs, **asdict(o)}
    finished = (folder / "manifest.json").is_file()
    if finished and (made := read_json(folder / WORLD, default=world)) != world:
        if (folder.parent / "run.json").is_file():
            fields = ", ".join(f"{name}={made.get(name)!r}" for name in world if made.get(name) != world[name])
            raise ValueError(f"{folder} was made with {fields}: use these values, or another run directory")
        finished = False
    if not finished:
        _remove(folder)
        with tempfile.TemporaryDirectory() as texts:
            write(Path(texts))
            inputs = (str(Path(texts, "**", "corpus.txt")),)
            request = Request(
                inputs, str(folder), o.tokenizer, vocab_size=o.vocab_size, heldout=o.heldout, shards=o.shards,
                seed=o.seed,
            )  # fmt: skip
            prepare(request)
        write_json(folder / WORLD, world)
    return folder


def _remove(folder: Path) -> None:
    """Remove a preparation: an unfinished one cannot resume, because its text files are temporary."""
    if (folder / "plan.json").is_file():
        if not read_json(folder / "plan.json").keys() >= PLAN:
            raise ValueError(f"{folder} has a plan.json of something else: give another folder, or rename the file")
        shutil.rmtree(folder)
