"""Inputs: broken files for all readers. A reader must read a file, or refuse it with a message that names it."""

import shutil
import time
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from tests.campaigns.damage import draw_file
from tests.campaigns.readers import Reader, list_readers
from tests.campaigns.reading import ReadingProcess
from tests.campaigns.records import LOST, SURVIVED, UNCLEAR, Record

KIND = "inputs"


class Inputs:
    """All readers, and the process that reads."""

    def __init__(self, folder: Path, environment: dict[str, str]):
        self.folder = folder / "inputs"
        self.process = ReadingProcess(self.folder, environment)

    @cached_property
    def readers(self) -> dict[str, Reader]:
        """The readers by name."""
        return {reader.name: reader for reader in list_readers(self.folder)}

    def list_cases(self) -> Iterator[tuple[str, int]]:
        """Yield (reader, seed) without end."""
        seed = 0
        while True:
            yield from ((name, seed) for name in self.readers)
            seed += 1

    def run_case(self, name: str, seed: int) -> Record:
        """Break a file, and read it."""
        reader, begun = self.readers[name], time.monotonic()
        copy = self.folder / "case" / reader.folder.name
        shutil.rmtree(copy.parent, ignore_errors=True)
        shutil.copytree(reader.folder, copy)
        path = copy / reader.file
        path.write_bytes(draw_file(path.read_bytes(), reader.file, seed))
        kind, message = self.process.read(name, path)
        outcome = judge(kind, message, path, reader.folder.name)
        if outcome != SURVIVED:
            saved_file = self.folder / "found" / f"{name.replace('/', '_').replace(' ', '_')}-{seed}"
            saved_file.parent.mkdir(exist_ok=True)
            shutil.copy(path, saved_file)
        detail = "" if outcome == SURVIVED else f"{kind}: {message[:300]}"
        return Record(KIND, name, seed, outcome, detail, round(time.monotonic() - begun, 2), {"ended": kind})


def judge(kind: str, message: str, path: Path, folder: str) -> str:
    """Return the outcome for the end of a reader: a clear refusal names the file, or at least its folder."""
    if kind == "read":
        return SURVIVED
    if kind == "refused":
        return SURVIVED if path.name in message or f"/{folder}" in message else UNCLEAR
    return UNCLEAR if kind == "json" else LOST
