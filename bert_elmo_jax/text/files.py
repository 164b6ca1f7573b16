"""Reading small files, and writing them atomically."""

import json
import os
from pathlib import Path
from typing import Any

# The key of our own entries in `tokenizer_config.json`.
OWN_KEY = "bert_elmo_jax"


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that it holds either the old or the complete new data, even if the process dies.

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
    r"""Return the text of a file without its byte-order mark; raise with the line number if it is not UTF-8.

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
        line = problem.object.count(b"\n", 0, problem.start) + 1
        raise ValueError(
            f"{path}: line {line} is not UTF-8 ({problem.reason}); convert the file to UTF-8 first"
        ) from None


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file, or {} if there is no such file.

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
    """Write an indented JSON file atomically.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_json(Path(folder) / "a.json", {"배": 1})
    ...     read_json(Path(folder) / "a.json")
    {'배': 1}
    """
    write_atomically(path, (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode())


def check_fingerprint(config: dict[str, Any], fingerprint: str, file: Path) -> None:
    """Raise if the config was saved with another tokenizer; a config without a fingerprint passes.

    >>> check_fingerprint({"do_lower_case": False}, "0123", Path("vocab.txt"))
    """
    saved = config.get(OWN_KEY, {}).get("fingerprint", fingerprint)
    if saved != fingerprint:
        raise ValueError(
            f"{file} does not match the tokenizer_config.json in its folder (fingerprint {fingerprint[:12]}…, expected "
            f"{saved[:12]}…): one of the two was edited or replaced. Restore both, or delete tokenizer_config.json to "
            "use the file as a released one."
        )
