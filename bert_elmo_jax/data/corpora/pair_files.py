"""Texts with their translations, from two line-aligned files or a tsv table, as documents of two sentences.

`prepare_data` then makes one store of both sides, with one vocabulary. A pair with an empty side is bad input.
"""

import contextlib
import dataclasses
import itertools
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from bert_elmo_jax.data.corpora.corpus import decode_line, iterate_lines, line_number
from bert_elmo_jax.data.corpora.describe_source import describe
from bert_elmo_jax.data.corpora.prepare import JOINED, hold_output
from bert_elmo_jax.data.corpora.reading import BadInput, Reading, Source, Tally, find_files, has_text, shown
from bert_elmo_jax.data.corpora.unpack import needs_unpacking, unpack
from bert_elmo_jax.did_you_mean import did_you_mean

# Flags that describe texts without translations.
IDLE = ("input", "documents", "split", "text_field")
SIDES = ("source", "target")
Line = tuple[int, str | None]  # the byte offset of a line, and its text; None: bad, and skipped


@contextlib.contextmanager
def joined_inputs(values: Mapping[str, Any], flags_set: Iterable[str] = ()) -> Iterator[dict[str, Any]]:
    """Yield the values of `prepare_data`'s flags; pairs are joined in a file below the output, which becomes the input.

    `flags_set` are the flags that the user set. Without `source`, `target` or `pairs`, nothing changes.
    """
    aligned = [list(values.get(name) or ()) for name in SIDES]
    tables, columns = list(values.get("pairs") or ()), list(values.get("columns") or ())
    if columns and not tables:
        raise ValueError(f"--columns={','.join(columns)} names the columns of --pairs=FILE.tsv: give that, too")
    if not tables and not any(aligned):
        yield dict(values)
        return
    if idle := [name for name in flags_set if name in IDLE]:
        raise ValueError(
            f"--{idle[0]} is for texts without translations: leave it out with --source, --target, --pairs"
        )
    if len(aligned[0]) != len(aligned[1]):
        counts = " and ".join(f"{len(files)} --{name}" for name, files in zip(SIDES, aligned))
        raise ValueError(f"there are {counts} files: give as many of both, in the same order")
    if (Path(values.get("tokenizer") or "").expanduser() / "source.spm").is_file():
        raise ValueError(
            f"--tokenizer={values['tokenizer']} is Marian's, which splits each language by a model of its own; pairs "
            "need one for both: use --tokenizer=sentencepiece or wordpiece"
        )
    reading = Reading(**{field.name: values[field.name] for field in dataclasses.fields(Reading)} | {"split": "lines"})
    output = Path(values["output"]).expanduser()
    folder, is_new = output / JOINED, not output.exists()
    with hold_output(output):
        try:
            shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
            folder.mkdir()
            into = folder / "pairs.txt"
            skipped, joined = join_pairs(into, reading, list(zip(*aligned)), tables, columns)
        except BaseException:
            shutil.rmtree(output if is_new else folder, ignore_errors=True)
            raise
    try:
        for reason, count in skipped.items():
            print(f"  {count:,} × {reason}")
        plain = {"documents": "blank_line", "split": "lines", "encoding": "utf-8"}
        yield {**values, "input": [str(into)], "joined": joined, **plain}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def join_pairs(
    into: Path,
    reading: Reading,
    aligned: Sequence[tuple[str, str]] = (),
    tables: Sequence[str] = (),
    columns: Sequence[str] = (),
) -> tuple[dict[str, int], tuple[tuple[str, int], ...]]:
    r"""Write all pairs to a file of documents with two sentences.

    Return how often input was skipped or corrected, and each file of sources or table with its first byte in `into`.

    `aligned` are files whose lines are translations of each other, `tables` tsv files. With `columns`, a table's first
    line names its columns, and these two are source and target; without, it has two columns and no header.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "sts.tsv").write_text("score\ten\tko\n0.5\ta pear\t배\n", encoding="utf-8")
    >>> join_pairs(folder / "pairs.txt", Reading(), tables=[str(folder / "sts.tsv")], columns=["en", "ko"])
    ({}, (('...sts.tsv', 0),))
    >>> (folder / "pairs.txt").read_text(encoding="utf-8")
    'a pear\n배\n\n'
    """
    if columns and len(columns) != 2:
        raise ValueError(f"--columns={','.join(columns)}: name two columns, source and target")
    tally = Tally(reading)
    starts: list[tuple[str, int]] = []

    def begin(path: str) -> None:
        out.flush()
        starts.append((path, into.stat().st_size))

    with into.open("w", encoding="utf-8", newline="\n") as out:
        for source, target in aligned:
            begin(source)
            _join_files(source, target, into.parent, tally, out)
        for table in tables:
            begin(table)
            _join_table(table, columns, into.parent, tally, out)
    if not into.stat().st_size:
        names = ", ".join([*itertools.chain.from_iterable(aligned), *tables])
        raise BadInput(names, None, "no pair in any file", "check --source, --target and --pairs")
    return dict(tally.skipped), tuple(starts)


def _open(path: str, work: Path, tally: Tally) -> Source:
    """Return a file as plain lines, unpacked if needed."""
    matches = find_files([path], tally)
    if len(matches) != 1:
        raise BadInput(path, None, f"{len(matches)} files match", "give one file to each --source, --target, --pairs")
    source = describe(matches[0], matches[0])
    if source.is_json:
        tally.bad(path, None, "JSON lines hold no aligned text", "write the texts to .txt files or a .tsv")
    if needs_unpacking(source.path, tally.reading):
        plain = work / f"plain-{len(list(work.iterdir()))}"
        unpack(source.path, plain, tally)
        source = dataclasses.replace(source, plain=str(plain), size=plain.stat().st_size)
    has_text(source, tally)
    return source


def _lines(source: Source, tally: Tally) -> Iterator[Line]:
    for offset, line in iterate_lines(source, 0, tally):
        yield offset, decode_line(line, offset, source, tally)


def _join_files(first: str, second: str, work: Path, tally: Tally, out: TextIO) -> None:
    sides = [_open(path, work, tally) for path in (first, second)]
    missing = object()
    lines = [_lines(side, tally) for side in sides]
    for source, target in itertools.zip_longest(*lines, fillvalue=missing):
        if source is missing or target is missing:
            first_count, second_count = (sum(1 for _ in iterate_lines(side, 0, tally)) for side in sides)
            problem = f"{first_count:,} lines, but {shown(sides[1].path)} has {second_count:,}"
            remedy = "line n of one file must be the translation of line n of the other"
            raise BadInput(sides[0].path, None, problem, remedy)
        _write(sides, [source, target], tally, out)  # type: ignore[list-item]


def _join_table(path: str, columns: Sequence[str], work: Path, tally: Tally, out: TextIO) -> None:
    table = _open(path, work, tally)
    names: list[str] = []
    for number, (offset, line) in enumerate(_lines(table, tally), 1):
        if line is None or not line.strip():
            continue
        cells = line.split("\t")
        if columns and not names:
            names = [cell.strip() for cell in cells]
            for column in columns:
                if column not in names:
                    has, hint = ", ".join(names), did_you_mean(column, names)
                    raise BadInput(path, number, f"no column {column!r} (the first line has {has})", f"name two{hint}")
            continue
        width = len(names) if columns else 2
        if len(cells) != width:
            problem = f"{len(cells)} columns, expected {width}"
            remedy = "separate the columns by one tab" if columns or len(cells) < 2 else "name two with --columns=a,b"
            tally.bad(path, lambda at=number: at, problem, remedy, flag="pass --on_bad=skip")  # type: ignore[misc]
            continue
        chosen = [cells[names.index(column)] for column in columns] if columns else cells
        _write([table, table], [(offset, cell) for cell in chosen], tally, out)


def _write(sides: Sequence[Source], pair: Sequence[Line], tally: Tally, out: TextIO) -> None:
    """Write a pair, unless a side is bad or empty."""
    texts = [None if text is None else text.strip() for _, text in pair]
    if None in texts:
        return  # counted already
    if not any(texts):
        tally.count("a line that is empty on both sides")
        return
    for name, side, (offset, _), text in zip(SIDES, sides, pair, texts):
        if not text:
            problem, remedy = f"the {name} is empty", "translate it, or remove the line on both sides"
            place = (side, offset)
            tally.bad(side.path, lambda at=place: line_number(*at), problem, remedy, flag="pass --on_bad=skip")  # type: ignore[misc]
            return
    out.write(f"{texts[0]}\n{texts[1]}\n\n")
