"""Reading and writing small files so that nothing half-written ever looks finished."""

import json
import os
from pathlib import Path
from typing import Any

# Our own part of `tokenizer_config.json`, beside what other programs read.
OWN_KEY = "bert_elmo_jax"


def write_atomically(path: Path, data: bytes) -> None:
    """The file is either the old one or the complete new one, whenever the process dies.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder) / "a.txt", b"whole")
    ...     (Path(folder) / "a.txt").read_bytes()
    b'whole'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def read_utf8(path: Path) -> str:
    r"""The text of a file, without a byte-order mark; bytes that are no UTF-8 are an error that names the line.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.txt").write_bytes(b"\xef\xbb\xbfword\n")
    ...     read_utf8(Path(folder) / "a.txt")
    'word\n'
    """
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        # With utf-8-sig the position counts from behind the mark, if there is one.
        line = problem.object.count(b"\n", 0, problem.start) + 1
        raise ValueError(
            f"{path}: line {line} is not UTF-8 ({problem.reason}); convert the file to UTF-8 first"
        ) from None


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; {} where there is no such file.

    >>> read_json(Path("no/such/file.json"))
    {}
    """
    if not path.is_file():
        return {}
    try:
        content = json.loads(read_utf8(path))
    except json.JSONDecodeError as problem:
        raise ValueError(f"{path} is not JSON: {problem}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} should hold a JSON object {{…}}; it holds a {type(content).__name__}")
    return content


def write_json(path: Path, content: dict[str, Any]) -> None:
    """A JSON file that people can read, written atomically.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_json(Path(folder) / "a.json", {"배": 1})
    ...     read_json(Path(folder) / "a.json")
    {'배': 1}
    """
    write_atomically(path, (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode())


def check_fingerprint(config: dict[str, Any], fingerprint: str, file: Path) -> None:
    """Raises where a saved tokenizer's two files do not belong together; one that we did not save has nothing to check.

    >>> check_fingerprint({"do_lower_case": False}, "0123", Path("vocab.txt"))
    """
    saved = config.get(OWN_KEY, {}).get("fingerprint", fingerprint)
    if saved != fingerprint:
        raise ValueError(
            f"{file} does not belong to the tokenizer_config.json beside it (fingerprint {fingerprint[:12]}…, expected "
            f"{saved[:12]}…): one of the two was edited, or copied alone. Restore both, or delete "
            "tokenizer_config.json to use the file as a released one."
        )
