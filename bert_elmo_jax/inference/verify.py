"""Verify a model's files by their hashes: from `convert`, from run directories, or from the hub's cache."""

import re
from pathlib import Path

from bert_elmo_jax.files import SUMS, hash_file, read_sums

BLOB = re.compile(r"[0-9a-f]{64}")  # the hub's cache names large files by their SHA-256


def verify_folder(folder: str | Path) -> list[str]:
    """Check the files of a folder by its `SHA256SUMS`, or by the names that the hub's cache gives them.

    Return the names of the files that were checked. Raise if a file is missing or has changed, or if nothing there has
    a hash. Files that are not listed are not checked; a weight file must be.
    """
    folder = Path(folder)
    hashes = read_sums(folder)
    where = f"{SUMS} says"
    if hashes is None:
        hashes, where = hub_hashes(folder), "the hub says"
    if not hashes:
        raise ValueError(
            f"{folder} has no {SUMS}, so there is nothing to verify its files against. Folders that "
            "`convert` and training runs write have it. Compare the digest that `convert` prints "
            "with the digest of the original, or load it without verify=True"
        )
    missing = [f"{name} is missing" for name in hashes if not (folder / name).is_file()]
    changed = [
        f"{name} has changed: its SHA-256 is {actual[:16]}…, {where} {expected[:16]}…"
        for name, expected in hashes.items()
        if (folder / name).is_file() and (actual := hash_file(folder / name)) != expected
    ]
    if missing or changed:
        raise ValueError(f"{folder} is damaged: {'; '.join(missing + changed)}; copy it again")
    return sorted(hashes)


def hub_hashes(folder: Path) -> dict[str, str]:
    """Return the hashes that the hub's cache has for the large files of a snapshot: they are links named by them."""
    links = {file.name: file.readlink().name for file in folder.iterdir() if file.is_symlink()}
    return {name: target for name, target in links.items() if BLOB.fullmatch(target)}


def check_listed(folder: Path, weights: list[str], checked: list[str]) -> None:
    """Raise if a file of weights in a folder was not checked."""
    if unlisted := sorted(set(weights) - set(checked)):
        raise ValueError(
            f"{folder}: {', '.join(unlisted)} has no hash, so it cannot be verified; "
            "remove files that are not part of the model"
        )
