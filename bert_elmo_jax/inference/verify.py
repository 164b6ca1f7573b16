"""Verify a model's files by their hashes: from `convert`, from run directories, or from the hub's cache."""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from bert_elmo_jax.files import COMPANIONS, SUMS, hash_file, read_sums
from bert_elmo_jax.weights.hub import list_module_folders

BLOB = re.compile(r"[0-9a-f]{64}|[0-9a-f]{40}")  # the hub's cache names files by their SHA-256, small ones as git does
READ = (*COMPANIONS, "*.safetensors", "*.bin", "*.npy", "*.pth", "*.pt", "*.ckpt*", "*.bpe", "*.msgpack")


def verify_folder(folder: str | Path) -> list[str]:
    """Check the files of a folder by its `SHA256SUMS`, or by the names that the hub's cache gives them.

    Return the names of the files that were checked. Raise if a file is missing or has changed, or if nothing there has
    a hash. Files that are not listed are not checked; see `check_listed`.
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
        f"{name} has changed: its hash is {actual[:16]}…, {where} {expected[:16]}…"
        for name, expected in hashes.items()
        if (folder / name).is_file() and (actual := _hash_as(folder / name, expected)) != expected
    ]
    if missing or changed:
        raise ValueError(f"{folder} is damaged: {'; '.join(missing + changed)}; copy it again")
    return sorted(hashes)


def hub_hashes(folder: Path) -> dict[str, str]:
    """Return the hashes that the hub's cache has for the files of a snapshot: they are links named by them."""
    files = [
        file for inside in (folder, *list_module_folders(folder)) for file in inside.iterdir() if file.is_symlink()
    ]
    links = {file.relative_to(folder).as_posix(): file.readlink().name for file in files}
    return {name: target for name, target in links.items() if BLOB.fullmatch(target)}


def _hash_as(file: Path, expected: str) -> str:
    """Return the hash of a file by the method of an expected one."""
    if len(expected) == 64:
        return hash_file(file)
    digest = hashlib.sha1(f"blob {file.stat().st_size}\0".encode(), usedforsecurity=False)
    digest.update(file.read_bytes())
    return digest.hexdigest()


def check_listed(folder: Path, weights: Iterable[str], checked: Iterable[str]) -> None:
    """Raise if a file that `load` would read was not checked: weights, and any that readers look for by its name."""
    folders = [folder, *list_module_folders(folder)]
    if (folder / "model.json").is_file():  # its checkpoints have lists of their own, which are always checked
        folders = [folder / "tokenizer"]
        weights = ["model.json"]
    files = {
        file.relative_to(folder).as_posix()
        for inside in folders
        if inside.is_dir()
        for file in inside.iterdir()
        if file.is_file() and any(map(file.match, READ))
    }
    if unlisted := sorted({*weights, *files} - set(checked)):
        raise ValueError(
            f"{folder}: {', '.join(unlisted)} has no hash, so it cannot be verified; remove files that are not part of "
            "the model"
        )
