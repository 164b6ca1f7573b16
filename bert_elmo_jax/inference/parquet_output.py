"""Turn a file of JSON lines into a Parquet file, with a type for each column that holds all its values."""

import json
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

ROWS = 4096  # rows that are read at once


def write_parquet(path: Path) -> None:
    r"""Replace a file of JSON lines by a Parquet file of the same rows; columns with values of several kinds are texts.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "lines"
    >>> _ = file.write_text('{"text": "좋다", "probability": 1}\n{"text": "나쁘다", "probability": 0.5}\n', "utf-8")
    >>> write_parquet(file)
    >>> from pyarrow import parquet
    >>> parquet.read_table(file).to_pydict()
    {'text': ['좋다', '나쁘다'], 'probability': [1.0, 0.5]}
    """
    import pyarrow
    from pyarrow import parquet

    types: dict[str, Any] = {}
    for rows in _read_rows(path):
        for name in dict.fromkeys(name for row in rows for name in row):
            kind = _infer([row.get(name) for row in rows])
            types[name] = _join(types[name], kind) if name in types else kind
    schema = pyarrow.schema(
        [(n, pyarrow.string() if t is None or t == pyarrow.null() else t) for n, t in types.items()]
    )
    as_text = {name for name, kind in types.items() if kind is None}
    partial = path.with_name(f"{path.name}.parquet")
    with parquet.ParquetWriter(partial, schema) as writer:
        for rows in _read_rows(path):
            for row in rows:
                row.update({name: _to_text(row[name]) for name in as_text if name in row})
            writer.write_table(pyarrow.Table.from_pylist(rows, schema=schema))
    with partial.open("rb") as file:
        os.fsync(file.fileno())
    partial.replace(path)


def _read_rows(path: Path) -> Iterator[list[dict[str, Any]]]:
    with path.open(encoding="utf-8") as lines:
        while rows := [json.loads(line) for line in islice(lines, ROWS)]:
            yield rows


def _infer(values: list[Any]) -> Any:
    """Return the type of a column's values, or None if they are of several kinds."""
    import pyarrow

    try:
        kind = pyarrow.infer_type(values)
    except (pyarrow.ArrowException, OverflowError):
        return None
    return None if "struct<>" in str(kind) else kind  # Parquet has no objects without fields


def _join(first: Any, second: Any) -> Any:
    import pyarrow

    if first is None or second is None:
        return None
    try:
        schemas = [pyarrow.schema([("values", kind)]) for kind in (first, second)]
        return pyarrow.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pyarrow.ArrowException:
        return None


def _to_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
