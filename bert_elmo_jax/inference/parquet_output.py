"""Turn a file of JSON lines into a Parquet file, with a type for each column that holds all its values."""

import json
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

ROWS = 4096  # rows that are read at once


def write_parquet(lines: Path, target: Path) -> None:
    r"""Write the rows of a file of JSON lines as a Parquet file; columns with values of several kinds become texts.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "lines").write_text('{"id": "a1", "value": 1}\n{"id": 5, "value": 0.5}\n', "utf-8")
    >>> write_parquet(folder / "lines", folder / "out.parquet")
    >>> from pyarrow import parquet
    >>> parquet.read_table(folder / "out.parquet").to_pydict()
    {'id': ['a1', '5'], 'value': [1.0, 0.5]}
    """
    types: dict[str, Any] = {}
    for rows in _read_rows(lines):
        for name in dict.fromkeys(name for row in rows for name in row):
            kind = _infer([row.get(name) for row in rows])
            types[name] = _join(types[name], kind) if name in types else kind
    while mixed := _write_rows(lines, target, types):  # a type is inferred from a column's first values
        types.update(dict.fromkeys(mixed))
    with target.open("rb") as file:
        os.fsync(file.fileno())


def _read_rows(path: Path) -> Iterator[list[dict[str, Any]]]:
    with path.open(encoding="utf-8") as lines:
        while rows := [json.loads(line) for line in islice(lines, ROWS)]:
            yield rows


def _write_rows(lines: Path, target: Path, types: dict[str, Any]) -> list[str]:
    """Write all rows and return []; or return the columns with a value that is not of their type, None for texts."""
    import pyarrow
    from pyarrow import parquet

    schema = pyarrow.schema([(n, pyarrow.string() if t in (None, pyarrow.null()) else t) for n, t in types.items()])
    with parquet.ParquetWriter(target, schema) as writer:
        for rows in _read_rows(lines):
            columns: list[Any] = []
            mixed: list[str] = []
            for column in schema:
                values = [row.get(column.name) for row in rows]
                if types[column.name] is None:
                    values = [_to_text(value) for value in values]
                try:
                    columns.append(pyarrow.array(values, column.type))
                except (pyarrow.ArrowException, OverflowError):
                    mixed.append(column.name)
            if mixed:
                return mixed
            writer.write_table(pyarrow.table(columns, schema=schema))
    return []


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
