"""Merge the words of all shards into one vocabulary and one table of surface forms, and renumber the shards.

Every shard has its own sorted list of distinct forms. The lists are merged as streams, so only the vocabulary is held
in memory.
"""

import heapq
import itertools
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from bert_elmo_jax.data.corpora.shards import Job, building, file_facts, token_dtype
from bert_elmo_jax.data.corpora.store import PARTS, WORD_COUNTS, NpyAppender
from bert_elmo_jax.files import read_json, write_json
from bert_elmo_jax.text.words import WORD_SPECIALS, WordVocabulary

MERGED = 512  # files open at once
CHUNK = 1 << 14  # forms or numbers written at once


def merge_forms(folders: Sequence[Path]) -> Iterator[tuple[str, int, list[tuple[int, int]]]]:
    """Yield (form, count in the training part, [(shard, index in the shard's list)]) for all forms, by code point."""
    streams = (_forms(number, folder) for number, folder in enumerate(folders))
    for form, entries in itertools.groupby(heapq.merge(*streams), key=lambda entry: entry[0]):
        occurrences = list(entries)
        yield form, sum(count for *_, count in occurrences), [(number, place) for _, number, place, _ in occurrences]


def _forms(number: int, folder: Path) -> Iterator[tuple[str, int, int, int]]:
    counts = np.load(folder / "counts.npy")
    with open(folder / "forms.txt", encoding="utf-8", newline="\n") as lines:
        for place, line in enumerate(lines):
            yield line[:-1], number, place, int(counts[place])


def choose_vocabulary(
    folders: Sequence[Path], size: int, report: Callable[[int], object], rule: str, min_count: int = 1
) -> WordVocabulary:
    """Return a vocabulary of the three marks and the most frequent words of the training part, at most `size` in all.

    Words that occur less than `min_count` times are left out.
    """
    total = 0

    def counted() -> Iterator[tuple[int, str]]:
        nonlocal total
        for form, count, _ in merge_forms(folders):
            total += count
            report(len(form))
            if count >= max(min_count, 1) and form not in WORD_SPECIALS:
                yield -count, form

    best = heapq.nsmallest(size - len(WORD_SPECIALS), counted())
    if not total:
        raise ValueError("all documents are held out, none is left for training; lower --heldout or try another --seed")
    if not best and min_count > 1:
        raise ValueError(
            f"no word occurs {min_count} times in the training part: give more text, or a lower --min_count"
        )
    left_out = total + sum(negative for negative, _ in best)
    words = [*WORD_SPECIALS, *(form for _, form in best)]
    counts = np.array([0, 0, left_out, *(-negative for negative, _ in best)], np.int64)
    return WordVocabulary(words, counts, rule=rule)


def write_table(
    folders: Sequence[Path], vocabulary: WordVocabulary, output: Path, report: Callable[[int], object]
) -> None:
    """Write `forms.npy` and `form_ends.npy`, and in each shard's folder `numbers`, the ids of the forms in its list.

    `word_counts.npy` has the count in the training part of each word of the vocabulary, which may be of another text.
    """
    # A literal "<S>" in a text is an ordinary form; sentence boundaries get their ids elsewhere.
    number_of = {word: number for number, word in enumerate(vocabulary.words) if number >= len(WORD_SPECIALS)}
    numbers: list[list[int]] = [[] for _ in folders]
    next_id, counts = itertools.count(len(vocabulary)), np.zeros(len(vocabulary), np.int64)
    for folder in folders:
        (folder / "numbers").write_bytes(b"")

    def forms() -> Iterator[bytes]:
        """Yield the vocabulary and then all other forms; write the ids of the forms in each shard's list."""
        yield from (word.encode("utf-8") for word in vocabulary.words)
        for form, count, places in merge_forms(folders):
            report(len(form))
            number = number_of.get(form)
            if number is None:
                number = next(next_id)
                yield form.encode("utf-8")
            else:
                counts[number] = count
            for shard, _ in places:  # forms come in the order of the shard's list
                numbers[shard].append(number)
                if len(numbers[shard]) >= CHUNK:
                    _append(folders[shard], numbers[shard])
        for folder, pending in zip(folders, numbers):
            _append(folder, pending)

    with (
        building(output, output.parent) as folder,
        NpyAppender(folder / "forms.npy", np.dtype(np.uint8)) as characters,
        NpyAppender(folder / "form_ends.npy", np.dtype(np.int64)) as ends,
    ):
        ends.append(np.array([0]))
        remaining, total = forms(), 0
        while chunk := list(itertools.islice(remaining, CHUNK)):
            characters.append(np.frombuffer(b"".join(chunk), np.uint8))
            ends.append(total + np.cumsum([len(form) for form in chunk]))
            total += sum(map(len, chunk))
        np.save(folder / WORD_COUNTS, counts)


def _append(folder: Path, numbers: list[int]) -> None:
    """Append to a shard's numbers; the file is opened each time because there may be too many to keep open."""
    with open(folder / "numbers", "ab") as out:
        out.write(np.array(numbers, "<u4").tobytes())
    numbers.clear()


def renumber_shard(job: Job, report: Callable[[int], object]) -> None:
    """Make the final shard from the shard with its own ids."""
    source, target = Path(job.output, "work", job.name), Path(job.output, job.name)
    if target.exists():
        return
    size = len(np.load(Path(job.output, "work", "table", "form_ends.npy"), mmap_mode="r")) - 1
    vocab_size = read_json(Path(job.output, "work", "vocabulary.json"))["vocab_size"]
    mapping = np.empty(len(places := np.load(source / "places.npy")), np.uint32)
    mapping[places] = np.fromfile(source / "numbers", "<u4")
    entry = read_json(source / "shard.json")
    with building(target, Path(job.output, "work")) as folder:
        for part in PARTS:
            (folder / part).mkdir()
            for name in ("sentences.npy", "documents.npy"):
                shutil.copyfile(source / part / name, folder / part / name)
            local = np.load(source / part / "tokens.npy", mmap_mode="r")
            unknown = 0
            with NpyAppender(folder / part / "tokens.npy", np.dtype(token_dtype(size))) as out:
                for at in range(0, len(local), 1 << 20):
                    ids = mapping[local[at : at + (1 << 20)]]
                    unknown += int((ids >= vocab_size).sum())
                    out.append(ids)
            entry[part]["files"]["tokens.npy"] = file_facts(folder / part / "tokens.npy")
            entry[part]["counts"] |= {"words": len(local), "unknown": unknown}
        write_json(folder / "shard.json", entry)
    report(job.size)
