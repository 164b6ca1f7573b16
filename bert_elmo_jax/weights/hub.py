"""Resolve hub names such as "google-bert/bert-base-uncased" from the local cache or the network."""

import os
import re
from pathlib import Path

from bert_elmo_jax.did_you_mean import near_file
from bert_elmo_jax.weights.huggingface_files import WEIGHTS

NAME = re.compile(r"[A-Za-z0-9_][\w.-]*(/[A-Za-z0-9_][\w.-]*)?", re.ASCII)
COMMIT = re.compile(r"[0-9a-f]{7,64}")
SMALL = ["config.json", "vocab.txt", "tokenizer.json", "tokenizer_config.json"]
SMALL += ["special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt", "sentencepiece.bpe.model"]
SAFETENSORS = ["model.safetensors", "model.safetensors.index.json", "model-*-of-*.safetensors"]
PICKLES = ["pytorch_model.bin", "pytorch_model.bin.index.json", "pytorch_model-*-of-*.bin"]


def hub_cache() -> Path:
    """Return the cache folder of the hub's client, using the environment variables that the client reads."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if os.environ.get(variable):
            return Path(os.environ[variable]).expanduser()
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{caches}/huggingface"
    return Path(home).expanduser() / "hub"


def check_path(path: str | Path) -> Path:
    """Return a path with the home folder of `~`; raise if it is none.

    >>> check_path("runs/bert").name
    'bert'
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"a path or a hub name is expected, but {path!r:.60} was given: write it as text")
    if not str(path).strip():
        raise ValueError("a path or a hub name is expected, but an empty text was given")
    try:
        return Path(path).expanduser()
    except RuntimeError:
        user = str(path).partition("/")[0]
        raise FileNotFoundError(f"{path}: there is no user {user.removeprefix('~')} with a home folder") from None


def resolve(name_or_path: str | Path, *, revision: str = "main") -> Path:
    """Return the local path of a model: an existing path unchanged, a hub name from the cache or else downloaded.

    >>> resolve("tests/goldens/bert_tiny").name
    'bert_tiny'
    """
    path = check_path(name_or_path)
    if path.exists() or path.with_name(path.name + ".index").is_file():
        return path
    name = str(name_or_path)
    if not NAME.fullmatch(name) or ".." in name:
        raise FileNotFoundError(
            f"{path} does not exist and is not a hub name (such as google-bert/bert-base-uncased)"
            f"{near_file(path, folders=True)}"
        )
    cache = hub_cache()
    snapshot = _cached(cache, name, revision)
    return snapshot if snapshot and _has_weights(snapshot) else _fetch(cache, name, revision)


def _cached(cache: Path, name: str, revision: str) -> Path | None:
    """Return the cached snapshot of a branch, tag or commit, None if there is none."""
    model = cache / f"models--{name.replace('/', '--')}"
    reference = model / "refs" / revision
    inside = reference.resolve().is_relative_to(model.resolve())
    commit = reference.read_text(encoding="utf-8").strip() if inside and reference.is_file() else revision
    snapshot = model / "snapshots" / commit
    return snapshot if COMMIT.fullmatch(commit) and snapshot.is_dir() else None


def _has_weights(folder: Path) -> bool:
    return any((folder / weights).is_file() for weights in WEIGHTS)


def _fetch(cache: Path, name: str, revision: str) -> Path:
    missing = f"there is no path {name}, and no {name} (revision {revision}) with weights in the hub's cache {cache}"
    local = f"Without a network, give the path of a folder with the model's files{near_file(name, folders=True)}"
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise ImportError(f"{missing}. To download it: pip install -e '.[hub]'. {local}") from None
    try:
        folder = Path()
        for weights in (SAFETENSORS, PICKLES):  # pickles only if there is nothing better
            folder = Path(snapshot_download(name, revision=revision, cache_dir=cache, allow_patterns=SMALL + weights))
            if _has_weights(folder):
                return folder
    except Exception as problem:  # the client and its dependencies raise a dozen kinds of errors
        reason = (str(problem).strip() or type(problem).__name__).splitlines()[0]
        raise FileNotFoundError(f"{missing}, and the download failed ({reason}). {local}") from problem
    raise FileNotFoundError(
        f"{name} on the hub has none of {', '.join(WEIGHTS)}; its other files were downloaded to {folder}"
    )
