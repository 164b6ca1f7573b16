"""Prepared text on disk: opened in milliseconds, a document in microseconds, damage named.

A store is a folder: `manifest.json`, `tokenizer/`, and shards, each with a part `train` and a part `heldout` of three
memory-mapped files: `tokens.npy`, `sentences.npy` (where each sentence begins in tokens, and the end), `documents.npy`
(where each document begins in sentences, and the end). A store of words also has its token table: every distinct
surface form as UTF-8 bytes (`forms.npy`, `form_ends.npy`), those of the vocabulary first and in its order.
"""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
from jaxtyping import Integer

from bert_elmo_jax.files import hash_file

FORMAT = 1
PARTS = ("train", "heldout")
KEYS = {"options", "sources", "tokenizer", "counts", "skipped", "files", "shards"}
FILES = ("tokens.npy", "sentences.npy", "documents.npy")


class DamagedStore(ValueError):
    """A store that must not be used as it is; the message names every file concerned."""


class Shard:
    """The documents of one shard's part; its files are mapped when first needed."""

    def __init__(self, folder: Path):
        self.folder = folder

    def _map(self, name: str) -> np.ndarray:
        array = np.load(self.folder / name, mmap_mode="r")
        return array.view(np.ndarray) if len(array) else np.array(array)  # a plain array slices several times faster

    @cached_property
    def tokens(self) -> Integer[np.ndarray, "tokens"]:
        """All token ids, sentence after sentence."""
        return self._map("tokens.npy")

    @cached_property
    def sentences(self) -> Integer[np.ndarray, "sentences_plus_one"]:
        """Where each sentence begins in `tokens`, and the end."""
        return self._map("sentences.npy")

    @cached_property
    def documents(self) -> Integer[np.ndarray, "documents_plus_one"]:
        """Where each document begins in `sentences`, and the end."""
        return self._map("documents.npy")


@dataclass(frozen=True)
class Forms:
    """The token table of a store of words: id -> surface form.

    >>> Forms(np.frombuffer("은행bank".encode(), np.uint8), np.array([0, 6, 10]))[0]
    '은행'
    """

    characters: Integer[np.ndarray, "bytes"]  # UTF-8
    ends: Integer[np.ndarray, "forms_plus_one"]

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __getitem__(self, index: SupportsIndex) -> str:
        index = int(index)  # an id of 16 bits would wrap around below
        return self.characters[self.ends[index] : self.ends[index + 1]].tobytes().decode("utf-8")

    def __iter__(self) -> Iterator[str]:
        return (self[i] for i in range(len(self)))


class Store:
    """One part of a prepared corpus: `store[i]` is document i, a list of sentences of ids."""

    def __init__(self, folder: Path, part: str, manifest: dict[str, Any]):
        self.folder, self.part, self.manifest = folder, part, manifest
        self.shards = [Shard(folder / shard["name"] / part) for shard in manifest["shards"]]
        counts = [shard[part]["counts"]["documents"] for shard in manifest["shards"]]
        self._first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)  # document number -> shard

    def __len__(self) -> int:
        return int(self._first[-1])

    def __getitem__(self, index: SupportsIndex) -> list[Integer[np.ndarray, "tokens"]]:
        """Document `index`: its sentences, each an array of ids that shares memory with the file."""
        index = int(index)
        if not 0 <= index < len(self):
            raise IndexError(f"document {index} of {len(self)} in {self.folder} ({self.part}); count from 0")
        number = int(np.searchsorted(self._first, index, side="right")) - 1
        shard, local = self.shards[number], index - int(self._first[number])
        tokens = shard.tokens
        cuts = shard.sentences[shard.documents[local] : shard.documents[local + 1] + 1].tolist()
        return [tokens[a:b] for a, b in itertools.pairwise(cuts)]

    def __iter__(self) -> Iterator[list[Integer[np.ndarray, "tokens"]]]:
        return (self[i] for i in range(len(self)))

    @property
    def counts(self) -> dict[str, int]:
        """Documents, sentences, words, tokens and unknown tokens of this part."""
        return self.manifest["counts"][self.part]

    @property
    def vocab_size(self) -> int:
        """Ids from here on are surface forms outside the vocabulary (stores of words only)."""
        return self.manifest["tokenizer"]["vocab_size"]

    @cached_property
    def forms(self) -> Forms:
        """The token table of a store of words."""
        if self.manifest["tokenizer"]["kind"] != "words":
            raise ValueError(
                f"{self.folder} holds pieces of kind {self.manifest['tokenizer']['kind']!r}, which have no table of "
                "surface forms; prepare it with --tokenizer=words for a model that reads characters"
            )
        both = (np.load(self.folder / name, mmap_mode="r").view(np.ndarray) for name in ("forms.npy", "form_ends.npy"))
        return Forms(*both)


def open_store(folder: str | Path, part: str = "train", *, fingerprint: str | None = None) -> Store:
    """Open a prepared corpus; sizes are checked, and that it was made by the tokenizer with this fingerprint.

    >>> open_store("nowhere")
    Traceback (most recent call last):
    ...
    FileNotFoundError: nowhere: no such folder; prepare one with python -m experiments.prepare_data --output=nowhere
    """
    folder = Path(folder)
    if part not in PARTS:
        raise ValueError(f"part={part!r} is not known; a store has the parts {' and '.join(PARTS)}")
    manifest = read_manifest(folder)
    made_by = manifest["tokenizer"]
    if fingerprint is not None and fingerprint != made_by["fingerprint"]:
        raise ValueError(
            f"{folder} was made by another tokenizer: its fingerprint is {made_by['fingerprint'][:16]}…, the one given "
            f"has {fingerprint[:16]}…; use the tokenizer in {folder / 'tokenizer'}, or prepare the corpus again"
        )
    if wrong := [f"{path}: {trouble}" for path, trouble in misfits(folder, manifest)]:
        raise DamagedStore(_damage(folder, wrong))
    return Store(folder, part, manifest)


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a finished store."""
    path = folder / "manifest.json"
    command = f"python -m experiments.prepare_data --output={folder}"
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder; prepare one with {command}")
    if not path.exists():
        if (folder / "plan.json").exists():
            raise DamagedStore(f"{folder} is not finished; give the command that began it again, and it goes on")
        raise FileNotFoundError(f"{folder} has no manifest.json, so it is no store; prepare one with {command}")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        if manifest["format"] != FORMAT:
            raise ValueError(f"{path} has format {manifest['format']}, this version reads {FORMAT}; prepare it again")
        if missing := KEYS - set(manifest) or {p for s in manifest["shards"] for p in ("name", *PARTS) if p not in s}:
            raise KeyError(f"no {', '.join(sorted(missing))}")
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise DamagedStore(f"{path} cannot be read ({error}); copy it again, or prepare the corpus again") from error
    return manifest


def listed_files(folder: Path, manifest: dict[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every file the manifest speaks of, with its size and hash."""
    for shard in manifest["shards"]:
        for part in PARTS:
            for name, facts in shard[part]["files"].items():
                yield folder / shard["name"] / part / name, facts
    for name, facts in manifest["files"].items():
        yield folder / name, facts


def misfits(folder: Path, manifest: dict[str, Any]) -> list[tuple[Path, str]]:
    """Files that are missing or of another size than was written, and which of the two."""
    return [(path, trouble) for path, facts in listed_files(folder, manifest) if (trouble := _misfit(path, facts))]


def verify(folder: str | Path) -> int:
    """Check the size and hash of every file of a store; how many there are."""
    folder = Path(folder)
    manifest = read_manifest(folder)
    wrong, checked = [], 0
    for path, facts in listed_files(folder, manifest):
        checked += 1
        if trouble := _misfit(path, facts) or ("altered" if hash_file(path) != facts["sha256"] else ""):
            wrong.append(f"{path}: {trouble}")
    if wrong:
        raise DamagedStore(_damage(folder, wrong))
    return checked


def _misfit(path: Path, facts: dict[str, Any]) -> str:
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return "missing"
    if size != facts["bytes"]:
        return (
            f"{'truncated' if size < facts['bytes'] else 'altered'}, {size} bytes where {facts['bytes']} were written"
        )
    return ""


def _damage(folder: Path, wrong: list[str]) -> str:
    return "\n".join(
        [
            f"{folder} is damaged:",
            *(f"  {line}" for line in wrong),
            "Copy these again, or delete them and give the command that made the store: it makes them anew.",
        ]
    )
