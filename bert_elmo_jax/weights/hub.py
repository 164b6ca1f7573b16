"""Resolve hub names such as "google-bert/bert-base-uncased" with the hub's client, from its cache or the network."""

import logging
import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bert_elmo_jax.addresses import local_copy
from bert_elmo_jax.did_you_mean import near_file
from bert_elmo_jax.files import read_json_value
from bert_elmo_jax.weights.huggingface_files import FLAX, KERAS, PICKLES, WEIGHTS

NAME = re.compile(r"[A-Za-z0-9_][\w.-]*(/[A-Za-z0-9_][\w.-]*)?", re.ASCII)
MODULES = "modules.json"  # of sentence-transformers: the folders of a model's parts
# The files that a model is read from, in all folders of a repository (a `*` of the client matches `/`, too) …
READ = ["*.json", "*.txt", "*.model", "*.spm", "*.bpe", "*model.safetensors", "*model-*-of-*.safetensors"]
# … except copies for other programs and the checkpoints of a training.
COPIES = [f"{part}{name}" for name in ("onnx/*", "openvino/*", "coreml/*", "checkpoint-*/*") for part in ("", "*/")]
UNKNOWN_FILES = (
    "%s: the hub cannot be asked, so its cache is used, which may lack files; if this is a sentence model, its "
    "modules.json is missing there, and vectors of texts are plain means: `hf download %s` completes the cache"
)
# Downloaded only where there is nothing better, in this order.
OTHER_WEIGHTS = (
    [*PICKLES, "pytorch_model-*-of-*.bin"],
    [*FLAX, "flax_model-*-of-*.msgpack"],
    [*KERAS, "tf_model-*-of-*.h5"],
)


def hub_cache() -> Path:
    """Return the cache folder of the hub's client, using the environment variables that the client reads."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if os.environ.get(variable):
            return Path(os.environ[variable]).expanduser()
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{caches}/huggingface"
    return Path(home).expanduser() / "hub"


def check_path(path: str | Path) -> Path:
    """Return a path with the home folder of `~`, or the path of an address's copy; raise if it is none."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"a path or a hub name is expected, but {path!r:.60} was given: write it as text")
    if not str(path).strip():
        raise ValueError("a path or a hub name is expected, but an empty text was given")
    try:
        return Path(local_copy(str(path))).expanduser()
    except RuntimeError:
        user = str(path).partition("/")[0]
        raise FileNotFoundError(f"{path}: there is no user {user.removeprefix('~')} with a home folder") from None


def resolve(name_or_path: str | Path, *, revision: str | None = None, token: str | bool | None = None) -> Path:
    """Return the local path of a model: an existing path unchanged, a hub name from the cache or else downloaded.

    `revision` is a branch, tag or commit on the hub, by default "main"; `token` gives access to private models, by
    default the one that the client has stored.
    """
    path = check_path(name_or_path)
    if path.exists() or path.with_name(path.name + ".index").is_file():
        if revision is not None or token is not None:
            raise ValueError(f"{path} is a local path; revision and token belong to a hub name: leave them out")
        return path
    name = str(name_or_path)
    if not NAME.fullmatch(name) or ".." in name:
        raise FileNotFoundError(
            f"{path} does not exist and is not a hub name (such as google-bert/bert-base-uncased)"
            f"{near_file(path, folders=True)}"
        )
    revision = "main" if revision is None else revision
    if not isinstance(revision, str) or not revision or revision.startswith("/") or ".." in revision.split("/"):
        raise ValueError(f"revision={revision!r}: expected a branch, a tag or a commit of {name}, such as 'main'")
    return _find_snapshot(name, revision, token)


def _find_snapshot(name: str, revision: str, token: str | bool | None) -> Path:
    """Return the folder of a model: from the cache if it is complete there, else downloaded."""
    import huggingface_hub

    cache = hub_cache()

    def download(patterns: list[str], *, offline: bool) -> Path:
        others = [f"*{name}" for names in OTHER_WEIGHTS for name in names]
        ignored = [*COPIES, *others] if patterns is READ else COPIES
        options: dict[str, Any] = {"allow_patterns": patterns, "ignore_patterns": ignored, "local_files_only": offline}
        return Path(huggingface_hub.snapshot_download(name, revision=revision, cache_dir=cache, token=token, **options))

    problem, cached = None, None
    for offline in (True, False):
        try:
            folder = _download_model(partial(download, offline=offline))
        except Exception as error:  # the client and its dependencies raise a dozen kinds of errors
            problem = error
            continue
        problem = None
        lacking = _parts_without_weights(folder)
        if not lacking and _is_whole(folder, downloaded=not offline):
            return folder
        cached = None if lacking else folder
    if problem is None and lacking:
        parts = " and ".join(str(folder / part) for part in lacking)
        raise FileNotFoundError(f"{name} on the hub has none of {', '.join(WEIGHTS)}; see {parts}")
    reason = (str(problem).strip() or type(problem).__name__).splitlines()[0]
    if cached is None and (cached := _find_incomplete(problem, download)):
        logging.getLogger(__name__).warning("%s: %s is used, although files are missing: %s", name, cached, reason)
        return cached
    if cached is None:
        raise FileNotFoundError(
            f"there is no path {name}, and no {name} (revision {revision}) with weights in the hub's cache {cache}, "
            f"and the download failed ({reason}). Without a network, give the path of a folder with the model's files"
            f"{near_file(name, folders=True)}"
        ) from problem
    if not (cached / MODULES).is_file():
        logging.getLogger(__name__).warning(UNKNOWN_FILES, name, name)
    return cached


def _download_model(download: Callable[[list[str]], Path]) -> Path:
    """Return the folder with a model's files; other weights are downloaded only for parts without safetensors."""
    folder = download(READ)
    for files in OTHER_WEIGHTS:
        if parts := _parts_without_weights(folder):
            folder = download([f"{part}/{file}".lstrip("/") for part in parts for file in files])
    return folder


def _read_modules(folder: Path) -> list[tuple[str, str]]:
    """Return the type and the path of each module of a folder; [] without a `modules.json`."""
    try:
        return [(str(module["type"]), str(module["path"])) for module in read_json_value(folder / MODULES)]
    except (OSError, ValueError, LookupError, TypeError):  # a damaged file is reported when it is read
        return []


def list_module_folders(folder: Path) -> list[Path]:
    """Return the folders inside a model's folder that its `modules.json` names.

    >>> list_module_folders(Path("tests/goldens/bert_tiny"))
    []
    """
    inside = dict.fromkeys(path for _, path in _read_modules(folder) if path and ".." not in Path(path).parts)
    return [folder / path for path in inside if (folder / path).is_dir() and not Path(path).is_absolute()]


def _parts_without_weights(folder: Path) -> list[str]:
    """Return the parts of a model whose weights are missing: its own folder, "", or folders of its `modules.json`."""
    parts = [path for kind, path in _read_modules(folder) if kind.endswith((".Transformer", ".Dense"))]
    return [part for part in parts or [""] if not any((folder / part / file).is_file() for file in WEIGHTS)]


def _find_incomplete(problem: Exception | None, download: Callable[..., Path]) -> Path | None:
    """Return an incomplete snapshot that the client found offline, if weights and modules.json are there."""
    snapshot = getattr(problem, "snapshot_path", None)
    try:
        if snapshot is None or _parts_without_weights(download([MODULES], offline=True)):
            return None
    except Exception:  # modules.json is missing, without which the vectors of texts are others
        return None
    return Path(snapshot)


def _is_whole(snapshot: Path, downloaded: bool) -> bool:
    """Return whether a snapshot is known to have all files of its model.

    The client keeps a list of them. Caches that other programs filled file by file have none, and older clients write
    none; there a modules.json or a download shows it.
    """
    import huggingface_hub

    if (snapshot / MODULES).is_file():
        return True

    repository = snapshot.parent.parent
    name = repository.name.removeprefix("models--").replace("--", "/")
    try:
        tree = huggingface_hub.get_cached_repo_tree(name, revision=snapshot.name, cache_dir=repository.parent)
    except AttributeError:
        return downloaded
    except Exception:
        return False
    return bool(tree)
