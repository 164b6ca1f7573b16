"""The size and hash of every file of a folder, written last to mark the folder as complete."""

import json
from pathlib import Path

from bert_elmo_jax.files import hash_file, write_json

FILES = "files.json"


def write_file_list(folder: Path) -> None:
    """Write the list of a folder's files into the folder, atomically."""
    files = sorted(file for file in folder.rglob("*") if file.is_file() and file != folder / FILES)
    facts = {file.relative_to(folder).as_posix(): [file.stat().st_size, hash_file(file)] for file in files}
    write_json(folder / FILES, facts)


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
        elif hash_file(there) != digest:
            wrong.append(f"{name} has changed (its hash differs)")
    return wrong
