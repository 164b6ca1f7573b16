"""Addresses of buckets (`s3://…`, `gs://…`, `hf://…`, `memory://…`) where paths are read and written.

The folder `buckets` is imported only for an address. Everything else is a path, and stays unchanged.
"""

import contextlib
import glob
import re
from collections.abc import Iterator
from pathlib import Path

from bert_elmo_jax.lazy_imports import lazy_function

fetch = lazy_function("bert_elmo_jax.buckets.cache", "fetch")
fetch_matches = lazy_function("bert_elmo_jax.buckets.cache", "fetch_matches")
publish_file = lazy_function("bert_elmo_jax.buckets.published_file", "publish_file")
publish_folder = lazy_function("bert_elmo_jax.buckets.published_folder", "publish_folder")
COPIES: dict[str, str] = {}  # the address of each copy that this process uses, by its path
SCHEMES = ("s3", "gs", "hf", "memory")
# `Path` removes one of the two slashes.
_ADDRESS = re.compile(rf"[A-Za-z][A-Za-z0-9+.-]+://|(?:{'|'.join(SCHEMES)}):/")


def is_address(path: str | Path) -> bool:
    """Return True for the address of a file or folder that is not on this machine's disks.

    >>> [is_address(path) for path in ("s3://reviews/train.csv", Path("gs://reviews/run"), "runs/s3", "C:/runs")]
    [True, True, False, False]
    """
    return _ADDRESS.match(str(path)) is not None


def local_copy(path: str) -> str:
    """Return a path unchanged; for an address, the path of its copy in the local cache, fetched if it is missing.

    >>> local_copy("reviews/train.csv")
    'reviews/train.csv'
    """
    if not is_address(path):
        return path
    return str(fetch(path))


def local_copies(pattern: str) -> list[str]:
    """Return a path or glob unchanged; for an address, the paths of the copies of all files that it matches.

    >>> local_copies("reviews/*.csv")
    ['reviews/*.csv']
    """
    if not is_address(pattern):
        return [pattern]
    return fetch_matches(pattern) if glob.has_magic(pattern) else [str(fetch(pattern))]


def name_addresses(text: str) -> str:
    """Return a text, such as an error, with addresses in place of the paths of their copies.

    >>> name_addresses("reviews/train.csv:2: no label")
    'reviews/train.csv:2: no label'
    """
    for copy, address in COPIES.items():
        text = text.replace(copy, address)
    return text


@contextlib.contextmanager
def open_workdir(path: str | Path, *, while_written: bool = True, resumes: bool = True) -> Iterator[Path]:
    """Yield the folder to write a run in: the path itself, or for an address a local folder that is published there.

    It is published at the end of the block and, if its program resumes from any state, `while_written`. For a program
    that never `resumes`, it is empty unless a whole folder was published there.

    >>> with open_workdir("runs/reviews") as folder:
    ...     folder.as_posix()
    'runs/reviews'
    """
    if not is_address(path):
        yield Path(path)
        return
    with publish_folder(path, while_written=while_written, resumes=resumes) as folder:
        yield folder


@contextlib.contextmanager
def open_output(path: str | Path) -> Iterator[Path]:
    """Yield the path of a file to write: the path itself, or for an address a local file that is published at the end.

    >>> with open_output("predictions.csv") as file:
    ...     file.as_posix()
    'predictions.csv'
    """
    if not is_address(path):
        yield Path(path)
        return
    with publish_file(path) as file:
        yield file
