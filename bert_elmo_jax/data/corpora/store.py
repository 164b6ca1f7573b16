"""Prepared text on disk, with fast access to documents and checks for damage.

A store is a folder with `manifest.json`, `tokenizer/` and shards. Each shard has the parts `train` and `heldout`, of
three memory-mapped files: `tokens.npy`, `sentences.npy` (the start of each sentence in tokens, and the end) and
`documents.npy` (the start of each document in sentences, and the end). A store of words also has a token table: every
distinct surface form in UTF-8 (`forms.npy`, `form_ends.npy`), first the vocabulary in its order, then all others.
"""

import itertools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
from jaxtyping import Integer

from bert_elmo_jax.files import hash_file, read_array, read_json
from bert_elmo_jax.programs import show_program

FORMAT = 1
PARTS = ("train", "heldout")
KEYS = {"options", "sources", "tokenizer", "counts", "skipped", "files", "shards"}
FILES = ("tokens.npy", "sentences.npy", "documents.npy")
WORD_COUNTS = "word_counts.npy"  # of the training part, in stores with a given vocabulary; `Store.word_counts`
SHARD_NAME = re.compile(r"shard-\d{5}")  # as `shards.Job` names them
HEADER = 128  # bytes that numpy's header takes for an array of any length


class DamagedStore(ValueError):
    """A store is damaged or unfinished; the message names every damaged file."""


class Shard:
    """The documents of one part of a shard; its files are mapped on first use."""

    def __init__(self, folder: Path):
        self.folder = folder

    def _map(self, name: str) -> np.ndarray:
        array = read_array(self.folder / name, mapped=True)
        return array.view(np.ndarray) if len(array) else np.array(array)  # slicing a plain array is faster

    @cached_property
    def tokens(self) -> Integer[np.ndarray, "tokens"]:
        """All token ids, sentence after sentence."""
        return self._map("tokens.npy")

    @cached_property
    def sentences(self) -> Integer[np.ndarray, "sentences_plus_one"]:
        """The start of each sentence in `tokens`, and the end."""
        return self._map("sentences.npy")

    @cached_property
    def documents(self) -> Integer[np.ndarray, "documents_plus_one"]:
        """The start of each document in `sentences`, and the end."""
        return self._map("documents.npy")


@dataclass(frozen=True)
class Forms:
    """The token table of a store of words: id -> surface form."""

    characters: Integer[np.ndarray, "bytes"]  # UTF-8
    ends: Integer[np.ndarray, "forms_plus_one"]

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __getitem__(self, index: SupportsIndex) -> str:
        index = int(index)  # index + 1 of a 16-bit id could overflow
        return self.characters[self.ends[index] : self.ends[index + 1]].tobytes().decode("utf-8")

    def __iter__(self) -> Iterator[str]:
        return (self[i] for i in range(len(self)))


class Store:
    """One part of a prepared corpus: `store[i]` is document i, a list of sentences of ids."""

    def __init__(self, folder: Path, part: str, manifest: dict[str, Any]):
        self.folder, self.part, self.manifest = folder, part, manifest
        self.shards = [Shard(folder / shard["name"] / part) for shard in manifest["shards"]]
        counts = [shard[part]["counts"]["documents"] for shard in manifest["shards"]]
        self._first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)  # number of each shard's first document

    def __len__(self) -> int:
        return int(self._first[-1])

    def __getitem__(self, index: SupportsIndex) -> list[Integer[np.ndarray, "tokens"]]:
        """Return the sentences of document `index`, as arrays of ids that share memory with the file."""
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
        """Return the numbers of documents, sentences, words, tokens and unknown tokens in this part."""
        return self.manifest["counts"][self.part]

    @property
    def vocab_size(self) -> int:
        """Return the vocabulary size; in stores of words, ids from here on are words outside the vocabulary."""
        return self.manifest["tokenizer"]["vocab_size"]

    @cached_property
    def forms(self) -> Forms:
        """Return the token table of a store of words."""
        if (kind := self.manifest["tokenizer"]["kind"]) != "words":
            raise ValueError(
                f"{self.folder} holds {kind!r} pieces, which have no table of surface forms; prepare it with "
                "--tokenizer=words for a model that reads characters"
            )
        both = (read_array(self.folder / name, mapped=True).view(np.ndarray) for name in ("forms.npy", "form_ends.npy"))
        return Forms(*both)

    @cached_property
    def word_counts(self) -> Integer[np.ndarray, "vocab_size"] | None:
        """Return how often each word of a given vocabulary is in the training part; None for one of this text."""
        # Stores of earlier versions have none: they use the counts of the text that the vocabulary was trained on.
        return read_array(self.folder / WORD_COUNTS) if WORD_COUNTS in self.manifest["files"] else None


def open_store(folder: str | Path, part: str = "train", *, fingerprint: str | None = None) -> Store:
    """Open a prepared corpus; check the sizes of its files and, if given, the fingerprint of its tokenizer.

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
            f"{folder} was made by another tokenizer: its fingerprint is {made_by['fingerprint'][:16]}…, the given one "
            f"has {fingerprint[:16]}…; use the tokenizer in {folder / 'tokenizer'}, or prepare the corpus again"
        )
    _raise_if_damaged(folder, misfits(folder, manifest))
    return Store(folder, part, manifest)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a finished store; raise if there is none or it cannot be read."""
    path = folder / "manifest.json"
    command = f"{show_program('prepare_data')} --output={folder}"
    if folder.is_file():
        command = f"{show_program('prepare_data')} --input={folder} --output=FOLDER"
        raise NotADirectoryError(f"{folder} is a file, expected a folder of prepare_data; prepare one with {command}")
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder; prepare one with {command}")
    if not path.exists():
        if (folder / "plan.json").exists():
            raise DamagedStore(f"{folder} is not finished; run the command that started it again, and it will resume")
        raise FileNotFoundError(f"{folder} has no manifest.json, so it is not a store; prepare one with {command}")
    try:
        try:
            manifest = read_json(path)
        except ValueError as error:
            raise DamagedStore(f"{path} cannot be read ({error}); copy it again, or prepare it again") from None
        if manifest["format"] != FORMAT:
            raise ValueError(f"{path} has format {manifest['format']}, this version reads {FORMAT}; prepare it again")
        if missing := KEYS - set(manifest) or {p for s in manifest["shards"] for p in ("name", *PARTS) if p not in s}:
            raise KeyError(f"no {', '.join(sorted(missing))}")
        _check_names(manifest)
        _check_values(folder, manifest)
    except (KeyError, TypeError, AttributeError) as error:
        raise DamagedStore(f"{path} cannot be read ({error}); copy it again, or prepare the corpus again") from error
    return manifest


def _check_names(manifest: dict[str, Any]) -> None:
    """Raise unless every name of a shard or a file lies in the store.

    A store may come from someone else, its files are read, and its damaged shards are deleted.
    """
    shards = manifest["shards"]
    wrong = [shard["name"] for shard in shards if not SHARD_NAME.fullmatch(str(shard["name"]))]
    files = [name for shard in shards for part in PARTS for name in shard[part]["files"]] + [*manifest["files"]]
    wrong += [name for name in files if ":" in name or {"", ".", ".."} & {*re.split(r"[/\\]", name)}]
    if wrong:
        raise TypeError(f"{wrong[0]!r} is no name of a shard or a file in the store")


def _check_values(folder: Path, manifest: dict[str, Any]) -> None:
    """Raise if a value of a manifest that is used as a number or as a text is none."""
    numbers = {str(file): entry["bytes"] for file, entry in listed_files(folder, manifest)}
    texts = {str(file): entry["sha256"] for file, entry in listed_files(folder, manifest)}
    for shard in manifest["shards"]:
        numbers |= {f"{part} of {shard['name']}": shard[part]["counts"]["documents"] for part in PARTS}
    numbers["vocab_size"] = manifest["tokenizer"]["vocab_size"]
    texts |= {name: manifest["tokenizer"][name] for name in ("fingerprint", "kind")}
    wrong = [name for name, value in numbers.items() if type(value) is not int or value < 0]
    wrong += [name for name, value in texts.items() if not isinstance(value, str)]
    if wrong:
        raise TypeError(f"a wrong value for {wrong[0]}")


def listed_files(folder: Path, manifest: dict[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield every file in the manifest, with its size and hash."""
    for shard in manifest["shards"]:
        for part in PARTS:
            for name, entry in shard[part]["files"].items():
                yield folder / shard["name"] / part / name, entry
    for name, entry in manifest["files"].items():
        yield folder / name, entry


def misfits(folder: Path, manifest: dict[str, Any]) -> list[tuple[Path, str]]:
    """Return the files that are missing or have the wrong size, each with a description."""
    return [(path, trouble) for path, entry in listed_files(folder, manifest) if (trouble := _misfit(path, entry))]


def verify(folder: str | Path) -> int:
    """Check the size and hash of every file of a store; return the number of files."""
    folder = Path(folder)
    files = list(listed_files(folder, read_manifest(folder)))
    troubles = [
        (path, _misfit(path, entry) or ("altered" if hash_file(path) != entry["sha256"] else ""))
        for path, entry in files
    ]
    _raise_if_damaged(folder, [(path, trouble) for path, trouble in troubles if trouble])
    return len(files)


def _misfit(path: Path, entry: dict[str, Any]) -> str:
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return "missing"
    if size == entry["bytes"]:
        return ""
    return f"{'truncated' if size < entry['bytes'] else 'altered'}, {size} bytes where {entry['bytes']} were written"


def _raise_if_damaged(folder: Path, troubles: list[tuple[Path, str]]) -> None:
    if troubles:
        listed = "\n".join(f"  {path}: {trouble}" for path, trouble in troubles)
        advice = "Copy these files again, or delete them and run the command that made the store: it makes them again."
        raise DamagedStore(f"{folder} is damaged:\n{listed}\n{advice}")


class NpyAppender:
    """A one-dimensional `.npy` file that is written piece by piece; closing it completes the header.

    It is not memory-mapped: a full disk then raises an error that can be caught, instead of a signal.
    """

    def __init__(self, path: Path, dtype: np.dtype):
        self.dtype, self.length = dtype.newbyteorder("<"), 0
        self._file = open(path, "wb")  # noqa: SIM115 -- closed by close()
        self._file.write(b"\0" * HEADER)  # np.load raises on this until close() has written the header

    def append(self, values: np.ndarray) -> None:
        """Append values, which must fit the file's type."""
        self._file.write(np.ascontiguousarray(values, self.dtype).tobytes())
        self.length += len(values)

    def close(self) -> None:
        """Write the header and flush everything to disk."""
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": (self.length,)}
        self._file.seek(0)
        np.lib.format.write_array_header_1_0(self._file, header)
        assert self._file.tell() == HEADER
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def __enter__(self) -> "NpyAppender":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._file.close()
