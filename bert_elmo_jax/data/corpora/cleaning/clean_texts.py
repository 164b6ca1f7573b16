"""Leave documents out of a corpus: judge them, link near-duplicates, write the remaining text, report the rest.

Three passes, each of jobs for the runners, and each finished when its result exists under its final name in `work/`:

- `judged-*/` for a range of bytes: which documents pass the filters, where they begin, and their signatures by band;
- `links-*.npy` for a band: pairs of near-duplicates. One band is in memory at a time, and of a large corpus a part of
  its keys; signatures stay on disk.
- `clean-*/` for a range of bytes: the remaining documents as plain text, and samples of those that were left out.

The first document of a cluster of near-duplicates stays. The result depends on the files and the options only.
"""

import bisect
import contextlib
import itertools
from collections import Counter, deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Integer

from bert_elmo_jax.data.corpora.cleaning import near_duplicates
from bert_elmo_jax.data.corpora.cleaning.filters import REASONS, judge_documents, read_limits
from bert_elmo_jax.data.corpora.corpus import find_encoding, is_blank, iterate_documents, iterate_lines
from bert_elmo_jax.data.corpora.reading import Reading, Source, Tally, shown
from bert_elmo_jax.data.corpora.runners import Report, Runner
from bert_elmo_jax.data.corpora.shards import Job, building, plan_ranges
from bert_elmo_jax.data.corpora.store import NpyAppender
from bert_elmo_jax.files import open_atomically, read_array, read_json, write_json

RANGE = 16 << 20  # bytes of text for each job
MOST_RANGES = 4096
JUDGED = 1 << 20  # characters of a document that are judged
BATCH = 1 << 19  # characters judged at once
BAND_KEYS = 1 << 23  # keys of a band in memory at once
PAIRS = 1 << 18  # pairs compared at once
SAMPLES, SAMPLE_CHARACTERS = 5, 200
NEAR_DUPLICATE = "a near-duplicate"


@dataclass(frozen=True)
class Cleaning:
    """Which documents are left out."""

    dedupe: float = 0.0  # the similarity of near-duplicates; 0: they are kept
    filter: str = ""  # "default", or with changes, see `read_limits`


@dataclass(frozen=True)
class BandJob:
    """One band of the signatures, or a part of its keys."""

    band: int
    part: int
    parts: int
    size: int  # bytes of signatures

    @property
    def name(self) -> str:
        """Return the name of the file of links."""
        return f"links-{self.band:03d}-{self.part:05d}.npy"


class Signatures:
    """The signatures of all documents that passed the filters, in the order of the corpus."""

    def __init__(self, work: Path, threshold: float):
        self.folders = sorted(work.glob("judged-*[0-9]"))
        self.bands, self.rows = near_duplicates.choose_bands(threshold)
        lengths = [len(_map(folder / "places.npy")) // 2 for folder in self.folders]
        self.starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    def __len__(self) -> int:
        return int(self.starts[-1])

    def read_band(self, band: int) -> Iterator[Integer[np.ndarray, "documents rows"]]:
        """Yield the band of each range of the corpus."""
        return (_map(folder / f"band-{band:03d}.npy").reshape(-1, self.rows) for folder in self.folders)

    def count_matches(
        self, left: Integer[np.ndarray, "pairs"], right: Integer[np.ndarray, "pairs"]
    ) -> Integer[np.ndarray, "pairs"]:
        """Return on how many hash functions the documents of each pair agree; each file is read once."""
        documents, places = np.unique(np.concatenate([left, right]), return_inverse=True)
        cuts = np.searchsorted(documents, self.starts)
        matches = np.zeros(len(left), np.int64)
        for band in range(self.bands):
            rows = np.empty((len(documents), self.rows), np.uint32)
            for number in np.flatnonzero(np.diff(cuts)):
                mine = slice(*cuts[number : number + 2])
                stored = _map(self.folders[number] / f"band-{band:03d}.npy").reshape(-1, self.rows)
                rows[mine] = stored[documents[mine] - self.starts[number]]
            matches += (rows[places[: len(left)]] == rows[places[len(left) :]]).sum(axis=1)
        return matches


def _map(path: Path) -> np.ndarray:
    array = read_array(path, mapped=True)
    return array.view(np.ndarray) if len(array) else np.array(array)


def clean(
    sources: list[Source], reading: Reading, output: Path, cleaning: Cleaning, runner: Runner, phase: Any, tally: Tally
) -> tuple[list[Source], dict[str, Any]]:
    """Return sources of the documents that remain, and the report of the others."""
    work = output / "work"
    size = sum(source.size for source in sources)
    lines = replace(reading, split="lines")  # the remaining text is written as it was
    ranges = plan_ranges(sources, max(1, min(MOST_RANGES, -(-size // RANGE))))
    jobs = [Job(k, spans, lines, 0, 0.0, str(output)) for k, spans in enumerate(ranges)]
    with phase("judging documents", size) as report:
        runner(partial(judge_range, cleaning), jobs, report)
    if cleaning.dedupe:
        _link(work, cleaning.dedupe, runner, phase)
    with phase("writing clean text", size) as report:
        runner(partial(write_range, cleaning, [shown(source.path) for source in sources]), jobs, report)
    reports = [read_json(_clean_folder(work, job) / "report.json") for job in jobs]
    for judged in sorted(work.glob("judged-*[0-9]")):
        tally.skipped.update(read_json(judged / "skipped.json"))
    remaining = [
        Source(source.path, str(plain), plain.stat().st_size, "", rows=True)
        for job in jobs
        for number, (_, source, _, _) in enumerate(job.ranges)
        if (plain := _clean_folder(work, job) / f"{number:05d}.txt").stat().st_size
    ]
    return remaining, _merge_reports(reports)


def judge_range(cleaning: Cleaning, job: Job, report: Report) -> None:
    """Write which documents of a range pass, their places, and their signatures."""
    target = Path(job.output, "work", f"judged-{job.number:05d}")
    if target.exists():
        report(job.size)
        return
    tally = Tally(job.reading)
    judge = _Judge(cleaning)
    with building(target, target.parent) as folder, contextlib.ExitStack() as files:
        writer = files.enter_context(_SignatureWriter(folder, cleaning.dedupe))
        for number, source, start, end in job.ranges:
            done = start
            for place, sentences in iterate_documents(source, start, end, tally):
                judge.add(number, place, _opening(sentences))
                if judge.characters >= BATCH:
                    writer.append(*judge.finish_batch())
                    report(max(0, min(tally.place, end) - done))
                    done = max(done, min(tally.place, end))
            report(end - done)
        writer.append(*judge.finish_batch())
        files.close()
        write_json(folder / "skipped.json", dict(tally.skipped))


def _opening(sentences: Iterator[str]) -> list[str]:
    """Return the lines of a document that are judged, and read the others."""
    lines, left = [], JUDGED
    for line in sentences:
        lines.append(line[:left])
        left -= len(lines[-1])
        if left <= 0:
            break
    deque(sentences, maxlen=0)
    return lines


class _Judge:
    """A batch of documents, judged together."""

    def __init__(self, cleaning: Cleaning):
        self.cleaning = cleaning
        self.limits = read_limits(cleaning.filter) if cleaning.filter else None
        self.table = near_duplicates.WordHashes()
        self.places: list[tuple[int, int]] = []
        self.documents: list[list[str]] = []
        self.characters = 0

    def add(self, source: int, place: int, lines: list[str]) -> None:
        self.places.append((source, place))
        self.documents.append(lines)
        self.characters += sum(map(len, lines)) + 1

    def finish_batch(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return the verdicts (0: pass), the places of documents that pass, and their signatures."""
        words = [" ".join(lines).split() for lines in self.documents]
        verdicts = np.zeros(len(words), np.uint8)
        if self.limits and words:
            verdicts = judge_documents(self.documents, words, self.limits, self.table)
        passing = np.flatnonzero(verdicts == 0)
        places = np.array(self.places, np.int64).reshape(-1, 2)[passing]
        signatures = None
        if self.cleaning.dedupe and len(passing):
            hashed = near_duplicates.hash_shingles([words[n] for n in passing], near_duplicates.SHINGLE, self.table)
            signatures = near_duplicates.make_signatures(*hashed, self.cleaning.dedupe)
        self.places, self.documents, self.characters = [], [], 0
        return verdicts, places, signatures


class _SignatureWriter(contextlib.ExitStack):
    """The files of a range: verdicts, places, and one file for each band."""

    def __init__(self, folder: Path, threshold: float):
        super().__init__()
        bands = near_duplicates.choose_bands(threshold)[0] if threshold else 0

        def file(name: str, dtype: type) -> NpyAppender:
            return self.enter_context(NpyAppender(folder / name, np.dtype(dtype)))

        self.verdicts, self.places = file("verdicts.npy", np.uint8), file("places.npy", np.int64)
        self.bands = [file(f"band-{band:03d}.npy", np.uint32) for band in range(bands)]

    def append(self, verdicts: np.ndarray, places: np.ndarray, signatures: np.ndarray | None) -> None:
        self.verdicts.append(verdicts)
        self.places.append(places.reshape(-1))
        for band, file in zip(() if signatures is None else signatures, self.bands):
            file.append(band.reshape(-1))


def _link(work: Path, threshold: float, runner: Runner, phase: Any) -> None:
    """Write the near-duplicates of the corpus, each with the first of its cluster."""
    if (work / "duplicates.npy").exists():
        return
    signatures = Signatures(work, threshold)
    parts = max(1, -(-len(signatures) // BAND_KEYS))
    size = len(signatures) * signatures.rows * 4 // parts
    jobs = [BandJob(band, part, parts, size) for band in range(signatures.bands) for part in range(parts)]
    with phase("finding near-duplicates", sum(job.size for job in jobs)) as report:
        runner(partial(link_band, str(work), threshold), jobs, report)
    duplicates = near_duplicates.merge_links(_map(work / job.name).reshape(-1, 2) for job in jobs)
    with open_atomically(work / "duplicates.npy") as out:
        np.save(out, duplicates)


def link_band(work: str, threshold: float, job: BandJob, report: Report) -> None:
    """Write the pairs of documents whose rows of a band are equal, and that are similar enough.

    A document is compared with the first one that has its rows and, if they differ, with the last one before it.
    """
    target = Path(work, job.name)
    if not target.exists():
        signatures = Signatures(Path(work), threshold)
        keys, documents = [], []
        for start, band in zip(signatures.starts, signatures.read_band(job.band)):
            band_keys = near_duplicates.band_keys(band)
            parts = ((band_keys >> np.uint64(32)) * np.uint64(job.parts)) >> np.uint64(32)
            chosen = np.flatnonzero(parts == job.part)
            keys.append(band_keys[chosen])
            documents.append(start + chosen)
        members, firsts, neighbours = near_duplicates.pair_equal_keys(
            np.concatenate([np.zeros(0, np.uint64), *keys]), np.concatenate([np.zeros(0, np.int64), *documents])
        )
        similar = _compare(signatures, members, firsts, threshold)
        chained = np.flatnonzero(~similar & (neighbours != firsts))
        chained = chained[_compare(signatures, members[chained], neighbours[chained], threshold)]
        links = [(members[similar], firsts[similar]), (members[chained], neighbours[chained])]
        with open_atomically(target) as out:
            np.save(out, np.concatenate([np.stack(pair, axis=1) for pair in links]))
    report(job.size)


def _compare(signatures: Signatures, left: np.ndarray, right: np.ndarray, threshold: float) -> np.ndarray:
    similar = np.zeros(len(left), bool)
    for at in range(0, len(left), PAIRS):
        matches = signatures.count_matches(left[at : at + PAIRS], right[at : at + PAIRS])
        similar[at : at + PAIRS] = matches >= near_duplicates.needed_matches(threshold)
    return similar


def _clean_folder(work: Path, job: Job) -> Path:
    return work / f"clean-{job.number:05d}"


def write_range(cleaning: Cleaning, names: list[str], job: Job, report: Report) -> None:
    """Write the documents of a range that remain, and count and sample the others."""
    work = Path(job.output, "work")
    target = _clean_folder(work, job)
    if target.exists():
        report(job.size)
        return
    fates = _Fates(work, job.number, cleaning)
    counts: Counter[str] = Counter()
    samples: dict[str, list[dict[str, Any]]] = {}
    tally = Tally(replace(job.reading, on_bad="skip"))  # bad input has been reported, or counted
    by_line = job.reading.documents == "line"
    with building(target, work) as folder:
        number = itertools.count()
        for at, (_, source, start, end) in enumerate(job.ranges):
            with open(folder / f"{at:05d}.txt", "wb") as out:
                for place, sentences in iterate_documents(source, start, end, tally):
                    reason, first = fates.read(next(number))
                    if not reason:
                        _write_document(out, sentences, by_line=by_line)
                        counts["remaining"] += 1
                        continue
                    lines = _opening(sentences)
                    counts[reason] += 1
                    if len(samples.setdefault(reason, [])) < SAMPLES:
                        text = " ".join(lines)[:SAMPLE_CHARACTERS]
                        sample = {"file": shown(source.path), "byte": place, "text": text}
                        if first is not None:
                            file, byte = fates.locate(first)
                            sample |= {"similar_to": {"file": names[file], "byte": byte}}
                        samples[reason].append(sample)
            report(end - start)
        write_json(folder / "report.json", {"counts": counts, "samples": samples})


def _write_document(out: BinaryIO, sentences: Iterator[str], *, by_line: bool) -> None:
    """Write a document as `write_texts` does."""
    if by_line:
        out.write("\r".join(sentences).encode() + b"\n")
        return
    for line in sentences:
        out.write(line.encode() + b"\n")
    out.write(b"\n")


class _Fates:
    """Which documents of a range remain, read in their order."""

    def __init__(self, work: Path, number: int, cleaning: Cleaning):
        self.folders = sorted(work.glob("judged-*[0-9]"))
        self.verdicts = _map(self.folders[number] / "verdicts.npy")
        self.numbers = np.cumsum(self.verdicts == 0) - 1  # among the documents of the range that passed
        self.firsts: dict[int, int] = {}
        if cleaning.dedupe:
            self.signatures = Signatures(work, cleaning.dedupe)
            low, high = self.signatures.starts[number : number + 2]
            duplicates = _map(work / "duplicates.npy").reshape(-1, 2)
            mine = duplicates[slice(*np.searchsorted(duplicates[:, 0], [low, high]))]
            self.firsts = dict(zip((mine[:, 0] - low).tolist(), mine[:, 1].tolist()))

    def read(self, document: int) -> tuple[str, int | None]:
        """Return why a document is left out, or "", and the number of the document that stays in its place."""
        if verdict := self.verdicts[document]:
            return REASONS[verdict], None
        first = self.firsts.get(int(self.numbers[document]))
        return ("" if first is None else NEAR_DUPLICATE), first

    def locate(self, document: int) -> list[int]:
        """Return the number of the file of a document that passed, and its byte there."""
        number = int(np.searchsorted(self.signatures.starts, document, side="right")) - 1
        places = _map(self.folders[number] / "places.npy").reshape(-1, 2)
        return [int(value) for value in places[document - self.signatures.starts[number]]]


def _merge_reports(reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the counts of all ranges, with the first samples of each reason."""
    counts: Counter[str] = Counter()
    samples: dict[str, list[dict[str, Any]]] = {}
    for report in reports:
        counts.update(report["counts"])
        for reason, more in report["samples"].items():
            samples[reason] = [*samples.get(reason, []), *more][:SAMPLES]
    remaining = counts.pop("remaining", 0)
    dropped = {reason: {"documents": counts[reason], "samples": samples[reason]} for reason in sorted(counts)}
    return {"documents": remaining + counts.total(), "remaining": remaining, "dropped": dropped}


def name_places(
    report: dict[str, Any], sources: Sequence[Source], reading: Reading, joined: Sequence[tuple[str, int]] = ()
) -> None:
    """Name the places of a report's samples in the user's files: bytes in copies of them become lines or documents.

    `joined` are the files that were joined to the only source, each with its first byte there.
    """
    samples = [sample for entry in report["dropped"].values() for sample in entry["samples"]]
    places = samples + [sample["similar_to"] for sample in samples if "similar_to" in sample]
    for source in sources:
        mine = [place for place in places if place["file"] == shown(source.path)]
        if not mine or (source.plain == source.path and not joined):
            continue
        names, starts = zip(*joined or [(source.path, 0)])
        unit = "document" if joined or source.rows else "line"
        numbers = _count_units(source, {*starts, *(place["byte"] for place in mine)}, reading, unit)
        for place in mine:
            byte = place["byte"]
            file = bisect.bisect_right(starts, byte) - 1
            texts = {key: value for key, value in place.items() if key not in ("file", "byte")}
            place.clear()
            place |= {"file": shown(names[file]), unit: numbers[byte] - numbers[starts[file]] + 1, **texts}


def _count_units(source: Source, offsets: Collection[int], reading: Reading, unit: str) -> dict[int, int]:
    """Return how many lines, or documents, of a copy are before each of these lines, which are given by their bytes."""
    tally, by_line, encoding = Tally(reading), reading.documents == "line", find_encoding(source, reading)
    counts: dict[int, int] = {}
    count = 0
    for offset, line in iterate_lines(source, 0, tally):
        if offset in offsets:
            counts[offset] = count
            if len(counts) == len(offsets):
                break
        # Documents are lines, or end at a blank line.
        count += unit == "line" or is_blank(line, encoding) != by_line
    return counts
