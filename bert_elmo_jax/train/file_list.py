"""The size and hash of every file of a folder, written last to mark the folder as complete."""

import hashlib
import json
import os
from pathlib import Path

FILES = "files.json"


def write_file_list(folder: Path) -> None:
    """Write the list of a folder's files into the folder, atomically.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("강")
    >>> write_file_list(folder)
    >>> damage(folder)
    []
    """
    files = sorted(file for file in folder.rglob("*") if file.is_file() and file != folder / FILES)
    facts = {file.relative_to(folder).as_posix(): [file.stat().st_size, sha256(file)] for file in files}
    partial = folder / (FILES + ".partial")
    with open(partial, "w", encoding="utf-8") as out:
        out.write(json.dumps(facts, indent=1) + "\n")
        out.flush()
        os.fsync(out.fileno())
    partial.replace(folder / FILES)


def damage(folder: Path) -> list[str]:
    """Return the differences between a folder's files and its list, empty if there are none."""
    try:
        listed = json.loads((folder / FILES).read_bytes()).items()
        facts = {str(name): (int(size), str(digest)) for name, (size, digest) in listed}
    except (OSError, ValueError, TypeError, AttributeError):
        return [f"{FILES} is not a list of files"]
    wrong = []
    for name, (size, digest) in facts.items():
        there = folder / name
        if not there.is_file():
            wrong.append(f"{name} is missing")
        elif there.stat().st_size != size:
            wrong.append(f"{name} has {there.stat().st_size:,} bytes, {size:,} were written")
        elif sha256(there) != digest:
            wrong.append(f"{name} has changed (its hash differs)")
    return wrong


def sha256(path: Path) -> str:
    """Return the SHA-256 hash of a file in hex."""
    with open(path, "rb") as raw:
        return hashlib.file_digest(raw, "sha256").hexdigest()
