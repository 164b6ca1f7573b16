"""Rows of Parquet files, Arrow files, and folders that `datasets` has saved; they need pyarrow, and nothing else.

Files are read batch by batch, and only the columns that are needed. Nothing in them is executed: extension types are
read as what they store, and the names in the JSON files of a folder may name files of that folder only.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from bert_elmo_jax.data.corpora.reading import SPLITS, STATE, BadInput, is_saved_folder
from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.files import check_links, check_regular, read_json
from bert_elmo_jax.json_values import parse_json

PARQUET, ARROW = (".parquet", ".pq"), (".arrow", ".feather")
ENDINGS = (*PARQUET, *ARROW)
INFO = "dataset_info.json"  # next to the files of a saved data set
INDEX = "__index_level_0__"  # the column of row numbers that pandas writes
ROWS, LARGEST_TEXTS = 1024, 1 << 26  # rows, and bytes of texts, that become Python objects at once
LARGEST_METADATA = 64 << 20  # bytes of the strings of a footer, and the number of its lists' items
MOST_COLUMNS, DEEPEST = 10_000, 16
MOST_ROWS_PER_BYTE = 10_000  # repeated values take little space, but a footer may also promise rows that are not there

Convert = Callable[[Any], Any]


@dataclass(frozen=True)
class ArrowTable:
    """The columns of a file or folder: their names and types, as text, and the number of rows.

    `names` lists the columns with texts, numbers, truth values, lists and objects of them; images are left out.
    `dated` lists those with dates, times and decimals, which `rows` gives as texts.
    """

    path: str
    files: tuple[Path, ...]
    kinds: dict[str, str]
    count: int
    names: tuple[str, ...]
    dated: tuple[str, ...] = ()
    converters: dict[str, Convert] = field(default_factory=dict, repr=False)

    @property
    def columns(self) -> list[str]:
        """The columns that `rows` can give, in the order of the file."""
        return [name for name in self.kinds if name in self.names or name in self.dated]

    def check_columns(self, columns: Sequence[str]) -> None:
        """Raise if a column is missing, or if its type cannot be read."""
        for name in columns:
            if name in self.names:
                continue
            if name in self.kinds:
                raise BadInput(
                    self.path, None, f"the column {name!r} is {self.kinds[name]}, expected texts or numbers",
                    "name another column, or write it as texts",
                )  # fmt: skip
            listed = ", ".join(map(repr, self.names)) or "no column of texts or numbers"
            near = did_you_mean(name, self.names)
            raise BadInput(self.path, None, f"no column {name!r} among {listed}", f"give the name of a column{near}")

    def check_texts(self, column: str) -> None:
        """Raise if a column is missing or is not one of texts."""
        self.check_columns([column])
        if not _is_text(self.kinds[column]):
            texts = ", ".join(repr(name) for name in self.names if _is_text(self.kinds[name])) or "none"
            raise BadInput(
                self.path, None, f"the column {column!r} is {self.kinds[column]}, expected texts (string)",
                f"name a column of texts ({texts})",
            )  # fmt: skip

    def rows(self, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield the cells of each row in these columns; labels that have names are given as names."""
        self.check_columns([name for name in columns if name not in self.dated])
        converters = {name: self.converters[name] for name in columns if name in self.converters}
        for file in self.files:
            with _naming_damage(file):
                for batch in _batches(file, columns):
                    batch.validate(full=True)  # a damaged file may point outside of its memory
                    for row in _spell_dates(batch).to_pylist():
                        try:
                            cells = {name: converters.get(name, _finite)(row[name]) for name in columns}
                        except IndexError as error:
                            raise BadInput(
                                str(file), None, str(error), "correct its features, or remove them"
                            ) from None
                        yield cells


def is_arrow(path: str | Path) -> bool:
    """Return True for the name of a Parquet or Arrow file, and for a folder that `datasets` has saved.

    >>> is_arrow("train.parquet"), is_arrow("train.csv"), is_arrow("tests")
    (True, False, False)
    """
    return str(path).lower().endswith(ENDINGS) or is_saved_folder(path)


def open_arrow(path: str | Path) -> ArrowTable:
    r"""Return the table of a Parquet or Arrow file, or of a folder that `datasets` has saved.

    >>> import tempfile
    >>> open_arrow(Path(tempfile.mkdtemp(), "reviews.parquet"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    bert_elmo_jax.data.corpora.reading.BadInput: ...reviews.parquet: no such file; check the path
    """
    files = arrow_files(path)
    import_pyarrow(path)
    features: dict[str, Any] = {}
    if Path(path).is_dir():
        info = files[0].with_name(INFO)
        features = read_json(info, default={}).get("features") or {}
    first, count = None, 0
    for file in files:
        with _naming_damage(file):
            schema, rows = _read_schema(file)
        count += rows
        if first is None:
            first = schema
        elif schema.names != first.names or schema.types != first.types:
            remedy = "give files with the same columns"
            raise BadInput(str(file), None, f"other columns than {files[0]}", remedy)
    assert first is not None
    features = features if isinstance(features, dict) and features else _read_features(first)
    doubled = next((name for name in first.names if first.names.count(name) > 1), None)
    if doubled is not None:
        raise BadInput(str(path), None, f"two columns called {doubled!r}", "rename one of them")
    kinds = {column.name: str(column.type) for column in first}
    names = tuple(column.name for column in first if _is_plain(column.type) and column.name != INDEX)
    converters = {name: convert for name in names if (convert := _converter(features.get(name)))}
    dated = tuple(column.name for column in first if _is_dated(column.type))
    return ArrowTable(str(path), files, kinds, count, names, dated, converters)


def arrow_files(path: str | Path) -> tuple[Path, ...]:
    """Return the files with the rows of a table: the file itself, or those that a saved folder lists."""
    path = Path(path)
    if not path.is_dir():
        if not path.exists():
            raise BadInput(str(path), None, "no such file", "check the path")
        check_regular(path)
        return (path,)
    if (path / SPLITS).is_file():
        splits = read_json(path / SPLITS).get("splits")
        if not isinstance(splits, list) or not splits or not all(_is_file_name(name) for name in splits):
            raise BadInput(str(path / SPLITS), None, "no list of splits", "save the data set again")
        if len(splits) > 1:
            remedy = f"name one: {path / splits[0]}"
            raise BadInput(str(path), None, f"a data set with the splits {', '.join(splits)}", remedy)
        return arrow_files(path / splits[0])
    if not (path / STATE).is_file():
        raise BadInput(str(path), None, "a folder without a saved data set", "name the files in it")
    check_links(path)
    state = read_json(path / STATE)
    if state.get("_indices_files") or state.get("_indices_data_files"):
        raise BadInput(
            str(path / STATE), None, "rows that another file selects", "flatten_indices(), and save it again"
        )
    entries = state.get("_data_files")
    names = [entry.get("filename") if isinstance(entry, dict) else None for entry in _as_list(entries)]
    if not names or not all(_is_file_name(name) for name in names) or len(set(names)) < len(names):
        raise BadInput(str(path / STATE), None, "no list of different files", "save the data set again")
    files = tuple(path / str(name) for name in names)
    for file in files:
        if not file.is_file():
            raise BadInput(str(file), None, f"no such file, which {STATE} lists", "copy the folder again")
        check_regular(file)
    return files


def _is_text(kind: str) -> bool:
    return kind.removeprefix("dictionary<values=").startswith(("string", "large_string"))


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_file_name(name: object) -> bool:
    return isinstance(name, str) and name not in ("", ".", "..") and PurePosixPath(name).name == name


def import_pyarrow(path: str | Path) -> Any:
    """Return pyarrow; raise if it is not installed."""
    try:
        import pyarrow
    except ImportError:
        raise ImportError(f"{path} needs pyarrow: pip install 'bert_elmo_jax[parquet]'") from None
    return pyarrow


@contextlib.contextmanager
def _naming_damage(file: Path) -> Iterator[None]:
    """Turn errors of pyarrow about the content of a file into one line that names the file."""
    pyarrow = import_pyarrow(file)
    try:
        yield
    except BadInput:
        raise
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError, MemoryError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = (str(error).splitlines() or [type(error).__name__])[0][:150]
        kind = "Parquet" if file.suffix.lower() in PARQUET else "Arrow"
        remedy = "copy or download it again"
        raise BadInput(str(file), None, f"damaged, or not a complete {kind} file ({reason})", remedy) from None


@contextlib.contextmanager
def _open_parquet(file: Path) -> Iterator[Any]:
    from pyarrow import parquet

    limits = {"thrift_string_size_limit": LARGEST_METADATA, "thrift_container_size_limit": LARGEST_METADATA}
    with parquet.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20, **limits) as opened:
        yield opened


@contextlib.contextmanager
def _open_ipc(file: Path) -> Iterator[Any]:
    """Yield a reader of Arrow's stream or file format."""
    import pyarrow

    with pyarrow.memory_map(str(file)) as source:
        is_file = source.read(6) == b"ARROW1"
        source.seek(0)
        with (pyarrow.ipc.open_file if is_file else pyarrow.ipc.open_stream)(source) as reader:
            yield reader


def _read_schema(file: Path) -> tuple[Any, int]:
    """Return the schema of a file and the number of its rows, both bounded; -1 rows for a stream."""
    size = file.stat().st_size
    if file.suffix.lower() in PARQUET:
        with _open_parquet(file) as opened:
            schema, rows = opened.schema_arrow, opened.metadata.num_rows
    else:
        with _open_ipc(file) as reader:
            schema, rows = reader.schema, 0
            if hasattr(reader, "num_record_batches"):
                rows = sum(reader.get_batch(n).num_rows for n in range(reader.num_record_batches))
            else:
                for batch in reader:  # mapped into memory: the texts are not read
                    rows += batch.num_rows
    if not 0 <= rows <= MOST_ROWS_PER_BYTE * size:
        raise BadInput(str(file), None, f"{rows:,} rows in {size:,} bytes", "copy or download it again")
    if len(schema.names) > MOST_COLUMNS:
        remedy = f"at most {MOST_COLUMNS:,} are read: keep those that you need"
        raise BadInput(str(file), None, f"{len(schema.names):,} columns", remedy)
    for column in schema:
        if _depth(column.type) > DEEPEST:
            remedy = "write its texts to a column of texts"
            raise BadInput(str(file), None, f"the column {column.name!r} is nested too deeply", remedy)
    return schema, rows


def _batches(file: Path, columns: Sequence[str]) -> Iterator[Any]:
    """Yield batches of at most `ROWS` rows with these columns."""
    if file.suffix.lower() in PARQUET:
        with _open_parquet(file) as opened:
            for batch in opened.iter_batches(ROWS, columns=list(columns), use_threads=False):
                yield from _cut(batch)
        return
    with _open_ipc(file) as reader:
        indexed = hasattr(reader, "num_record_batches")
        batches = (reader.get_batch(n) for n in range(reader.num_record_batches)) if indexed else reader
        for batch in batches:
            selected = batch.select(list(columns))
            yield from _cut(selected)


def _cut(batch: Any) -> Iterator[Any]:
    """Yield slices of a batch; fewer rows if its columns repeat a long text."""
    from pyarrow import compute, types

    texts = [column.dictionary for column in batch.columns if types.is_dictionary(column.type)]
    texts = [text for text in texts if types.is_string(text.type) or types.is_large_string(text.type)]
    longest = sum(compute.max(compute.binary_length(text)).as_py() or 0 for text in texts)
    size = max(1, min(ROWS, LARGEST_TEXTS // max(1, longest)))
    for at in range(0, batch.num_rows, size):
        yield batch.slice(at, size)


def _depth(kind: Any) -> int:
    return 1 + max((_depth(kind.field(n).type) for n in range(kind.num_fields)), default=0)


def _is_plain(kind: Any) -> bool:
    """Return True for texts, numbers, truth values, and lists and objects of them."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return _is_plain(kind.value_type)
    if types.is_struct(kind) or types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return all(_is_plain(kind.field(n).type) for n in range(kind.num_fields))
    tests = (types.is_string, types.is_large_string, types.is_integer, types.is_floating, types.is_boolean)
    return any(test(kind) for test in tests) or str(kind) in ("string_view", "null")


def _is_dated(kind: Any) -> bool:
    """Return True for dates, times of day, timestamps and decimals."""
    from pyarrow import types

    return any(test(kind) for test in (types.is_date, types.is_time, types.is_timestamp, types.is_decimal))


def _spell_dates(batch: Any) -> Any:
    """Return a batch with texts in the place of dates, times and decimals; timestamps with a zone are given in UTC."""
    import pyarrow
    from pyarrow import compute

    if not any(_is_dated(column.type) for column in batch.columns):
        return batch
    arrays = []
    for column in batch.columns:
        zone = getattr(column.type, "tz", None)
        if zone is not None:  # without it, no database of time zones is needed
            column = column.cast(pyarrow.timestamp(column.type.unit))
        if _is_dated(column.type):
            column = column.cast("string")
        arrays.append(column if zone is None else compute.binary_join_element_wise(column, "Z", ""))
    return pyarrow.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _read_features(schema: Any) -> dict[str, Any]:
    """Return the features that `datasets` writes into the metadata of a schema; {} if there are none."""
    text = (schema.metadata or {}).get(b"huggingface", b"")
    if not text or len(text) > LARGEST_METADATA:
        return {}
    with contextlib.suppress(ValueError):
        content = parse_json(text.decode(errors="replace"), "its metadata")
        info = content.get("info") if isinstance(content, dict) else None
        features = info.get("features") if isinstance(info, dict) else None
        return features if isinstance(features, dict) else {}
    return {}


def _converter(feature: Any) -> Convert | None:
    """Return a function that replaces the numbers of labels by their names, or None if a feature has no names."""
    if isinstance(feature, list) and len(feature) == 1:  # a list, in earlier versions
        feature = {"_type": "List", "feature": feature[0]}
    if not isinstance(feature, dict):
        return None
    names = feature.get("names")
    if feature.get("_type") == "ClassLabel" and isinstance(names, list) and all(isinstance(n, str) for n in names):
        counts = Counter(names)
        return partial(_name_label, [name if counts[name] == 1 else None for name in names])
    if feature.get("_type") in ("Sequence", "List", "LargeList") and (inner := _converter(feature.get("feature"))):
        return lambda values: [inner(value) for value in values] if isinstance(values, list) else values
    return None


def _name_label(names: Sequence[str | None], value: Any) -> Any:
    """Return the name of a label; -1 is no label. Raise IndexError for numbers without a name of their own."""
    if not isinstance(value, int) or value == -1:
        return None if value == -1 else value
    if not 0 <= value < len(names) or names[value] is None:
        raise IndexError(f"the label {value}, which has no name of its own among the {len(names)} of its ClassLabel")
    return names[value]


def _finite(value: Any) -> Any:
    """Return None for NaN, which is a missing cell."""
    return None if isinstance(value, float) and value != value else value
