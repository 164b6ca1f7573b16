"""A process that reads broken files; `inputs.py` watches it for crashes and unbounded memory."""

import json
import resource
import select
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SECONDS = 20.0  # for a file of a few kilobytes; more is a hang
GROWTH = 1 << 30  # bytes that reading one file may add


class ReadingProcess:
    """Reads files with the reader of a name, in a process that is started again after a crash."""

    def __init__(self, folder: Path, environment: dict[str, str], module: str = "tests.campaigns.reading"):
        self.folder, self.environment, self.module = folder, environment, module
        self._process: subprocess.Popen[str] | None = None

    def read(self, reader: str, path: Path) -> tuple[str, str]:
        """Return ("read", ""), or the kind of the error and its message."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", self.module, str(self.folder)], cwd=ROOT,
                env={**self.environment, "PYTHONPATH": str(ROOT)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, text=True, bufsize=1,
            )  # fmt: skip
            assert self._process.stdout is not None
            self._process.stdout.readline()
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([reader, str(path)]) + "\n")
        ready, _, _ = select.select([self._process.stdout], [], [], SECONDS)
        line = self._process.stdout.readline() if ready else ""
        if line:
            kind, message = json.loads(line)
            return kind, message
        self.close()
        return ("crash", "the process ended") if ready else ("hang", f"no end within {SECONDS:.0f} s")

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def describe(error: BaseException) -> tuple[str, str]:
    """Return the kind of an error and its message, with the place for errors that no reader should raise."""
    kind = type(error).__name__
    if isinstance(error, ValueError | OSError) and type(error) is not UnicodeDecodeError:
        return ("json" if isinstance(error, json.JSONDecodeError) else "refused"), str(error)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "bert_elmo_jax" in frame.filename]
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
    return kind, f"{place}: {str(error)[:300]}"


def try_reading(read: Any, path: Path) -> tuple[str, str]:
    """Read a file, and return what came of it."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        read(path)
        result = "read", ""
    except BaseException as error:
        result = describe(error)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    return ("memory", f"{grown >> 20} MiB more; {result[1][:200]}") if grown > GROWTH else result


def main() -> None:
    """Answer one request after the other."""
    from tests.campaigns.readers import list_readers

    readers = {reader.name: reader for reader in list_readers(Path(sys.argv[1]))}
    answers, sys.stdout = sys.stdout, sys.stderr
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        name, path = json.loads(line)
        print(json.dumps(try_reading(readers[name].read, Path(path))), file=answers, flush=True)


if __name__ == "__main__":
    main()
