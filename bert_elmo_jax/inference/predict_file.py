"""Predictions for the examples of a file or of standard input, as JSON lines or as a table with the input's columns."""

import dataclasses
import itertools
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import jax

from bert_elmo_jax.addresses import local_copy
from bert_elmo_jax.data.arrow_files import INDEX, ArrowTable, import_pyarrow, is_arrow, open_arrow
from bert_elmo_jax.data.corpora.reading import plain_name
from bert_elmo_jax.data.tasks.files import (
    BadRow,
    OnBad,
    check_file,
    describe_skipped,
    hash_files,
    list_files,
    read_lines,
    stop,
    write_skipped,
)
from bert_elmo_jax.data.tasks.layouts import Layout
from bert_elmo_jax.data.tasks.sentence_files import STS, find_columns
from bert_elmo_jax.data.tasks.tables import Record, find_format, read_arrow_records, read_records
from bert_elmo_jax.data.tasks.task import OWN_FILES, Task, has_plain_lines, stream_examples, task_named
from bert_elmo_jax.encoders.encoder import fingerprint
from bert_elmo_jax.files import read_json
from bert_elmo_jax.inference.document_model import DocumentModel
from bert_elmo_jax.inference.entities import Aggregation
from bert_elmo_jax.inference.load_model import load
from bert_elmo_jax.inference.output_file import STDIN, find_output, open_lines
from bert_elmo_jax.inference.parquet_output import write_parquet
from bert_elmo_jax.inference.prediction_lines import CONLLU, Cells, InputRows, choose_writer
from bert_elmo_jax.inference.rerank import takes_pairs
from bert_elmo_jax.inference.task_model import Predictor, TaskModel, to_example, to_text
from bert_elmo_jax.inference.task_network import TaskNetwork
from bert_elmo_jax.progress_bars import BarPart, progress_bar
from bert_elmo_jax.train.devices import describe_devices

TREE_TABLES = (".csv", ".tsv", ".parquet", ".jsonl", ".json")  # other outputs of a parser are CoNLL-U
AHEAD = 64  # batches that are sorted together


def predict_file(
    model: str,
    source: str = "-",
    target: str = "-",
    *,
    n_best: int | None = None,
    batch_size: int = 32,
    aggregation: Aggregation | None = None,
    text: str | None = None,
    pair: str | None = None,
    encoding: str | None = None,
    dtype: Literal["float32", "bfloat16", "int8"] = "float32",
    overwrite: bool = False,
    guard_formulas: bool = False,
    on_bad: Literal["stop", "skip"] = "stop",
    untrusted: bool = False,
    stride: int | None = None,
) -> int:
    """Predict each example of `source`, write the predictions to `target`, and return their number.

    "-" is standard input or output. A file appears under its name only when it is complete; the same call continues
    one that was stopped, unless its input was standard input. `encoding` is the source's; by default the encoding of
    the run's own files. With `guard_formulas`, a cell of a table that a spreadsheet would compute gets a `'` in front.
    `aggregation` finds the entities of raw texts. `text` and `pair` name the columns of a table: by default those
    of the training data, or `text` for a released model. `on_bad="skip"` leaves out the rows of a table, and the lines
    of a text, that cannot be read, and lists them in `<target>.skipped.jsonl`. `untrusted` is as in `load`, and
    `stride` as in `predict`.
    """
    if on_bad not in ("stop", "skip"):
        raise ValueError(f"on_bad={on_bad!r} is not known; it is one of stop, skip")
    source, model = "-" if source in STDIN else source, local_copy(model)
    target = os.path.expanduser(target)  # noqa: PTH111 -- keeps the spelling
    files = [] if source == "-" else list_files(source)
    skipped: list[BadRow] = []
    bad_row = stop if on_bad == "stop" else skipped.append
    path, ending = find_output(target, *files, overwrite=overwrite), Path(target).suffix.lower()
    for file in files:
        check_file(file)
    if guard_formulas and ending not in (".csv", ".tsv"):
        form = "no formulas" if ending == ".parquet" else "JSON lines"
        raise ValueError(f"--guard_formulas is for tables, and --output={target} has {form}: leave it out")
    mark = b"\xef\xbb\xbf" if ending == ".csv" else b""  # tells Excel that it is UTF-8
    finish = write_parquet if ending == ".parquet" else None
    if finish:
        import_pyarrow(target)  # before anything is computed
    with open_lines(path, mark=mark, overwrite=overwrite, finish=finish) as out:
        loaded = load(model, dtype=dtype, untrusted=untrusted)
        if not isinstance(loaded, Predictor):
            raise ValueError(
                f"--model={model} has no head of a task: give a run of finetune, or a released classifier, tagger or "
                "reader"
            )
        if loaded.task.kind == "trees":
            ending = ending if ending in TREE_TABLES else CONLLU
        elif ending == CONLLU:
            raise ValueError(f"--output={target}: only a parser writes CoNLL-U, and --model={model} is none")
        if n_best is not None and loaded.task.kind != "questions":
            raise ValueError(
                f"--n_best={n_best} is for questions, and --model={model} predicts {loaded.task.kind}: leave it out"
            )
        task = name_columns(loaded.task, source, text, pair, aggregation)
        if source == "-" and encoding:
            _set_encoding(encoding)
        encoding = encoding or str(read_json(Path(model, "run.json"), default={}).get("encoding", "utf-8"))
        names = _name_source(source), "standard output" if path is None else target
        print(f"{model} ({loaded.task.name}): {' -> '.join(names)}, on {describe_devices()}", file=sys.stderr)
        columns = read_columns(task, source, encoding, bad_row) if ending in (".csv", ".tsv", ".parquet") else None
        options: dict[str, Any] = {"n_best": n_best or 20, "batch_size": batch_size, "aggregation": aggregation}
        if stride is not None:
            options["stride"] = stride
        if loaded.task.kind == "questions":
            options["top_k"] = n_best
        settings = {
            **options,
            "encoding": encoding,
            "dtype": dtype,
            "ending": ending,
            **({"on_bad": on_bad} if on_bad != "stop" else {}),
            **({"stride": stride} if stride is not None else {}),
        }
        # A pipe can be read only once.
        resumable = source != "-" and all(Path(file).is_file() or is_arrow(file) for file in files)
        out.begin(
            {**settings, "guard": guard_formulas, **_describe_request(loaded, task, source)} if resumable else None
        )
        skipped.clear()  # the columns of the same rows were read
        total, parts = _read_examples(task, source, encoding, AHEAD * batch_size, aggregation, bad_row)
        has_pairs = ending in (".csv", ".tsv") and columns is None and _may_have_pairs(loaded.task, source, encoding)
        lines = choose_writer(ending, columns, out.header, guard_formulas, task.tag_column, has_pairs)
        count = 0
        with progress_bar(total, "predicting", "examples", shown=path is not None) as bar:
            bar.shapes = set()
            for examples in parts:
                if out.skip(len(examples)):
                    bar.pass_over(len(examples))
                else:
                    part = BarPart(bar, len(examples))
                    predictions = loaded.predict_examples(examples, **options, progress=part)
                    out.add(lines(examples, predictions), len(examples))
                    loaded.warns_of_texts = False  # once is enough
                count += len(examples)
    if out.finished is not None:  # by an earlier start of the same command
        return out.finished
    if skipped:
        print(f"warning: {describe_skipped(skipped, count + len(skipped), _name_source(source))}", file=sys.stderr)
        if path is not None:
            write_skipped(f"{target}.skipped.jsonl", skipped)
            print(f"{target}.skipped.jsonl: all rows that are skipped", file=sys.stderr)
    elif path is not None:
        Path(f"{target}.skipped.jsonl").unlink(missing_ok=True)  # of an earlier output of this name
    assert isinstance(loaded, Predictor)
    if path is not None:
        before = f"; {out.done:,} of them are from a stopped run" if out.done else ""
        print(f"{count:,} predictions in {target}{before}", file=sys.stderr)
    print_work(loaded)
    return count


def name_columns(task: Task, source: str, text: str | None, pair: str | None, aggregation: str | None) -> Task:
    """Return the task with the columns of an input; the training data's are read unless others are named."""
    if (text or pair) and (source == "-" or all(plain_name(file).endswith(".txt") for file in list_files(source))):
        flag, name = ("text", text) if text else ("pair", pair)
        raise ValueError(
            f"--{flag}={name} names a column of a table, and {_name_source(source)} has lines without columns: leave "
            "it out, or give a table (.csv, .tsv, .jsonl, .parquet) with --input=…"
        )
    if (task.kind in ("classification", "regression") and task.layout is None) or aggregation is not None:
        return dataclasses.replace(task, layout=Layout(text or "text", pair))
    if task.kind == "questions" and (text or pair or _has_question_tables(task, source)):
        return dataclasses.replace(task, layout=Layout(text or "question", pair or "context"))
    if task.kind == "tags" and text and not pair and not task.characters and _has_lists_of_words(source):
        return dataclasses.replace(task, layout=task_named("tags", text=text, file=source).layout)
    if text or pair:
        if not isinstance(task.layout, Layout):
            reads = f"predicts {task.kind}" if task.pipeline else f"was fine-tuned on {task.name}"
            raise ValueError(
                f"--text and --pair name columns of texts, and the model {reads}: leave them out "
                "(without --input=, texts are read from standard input)"
            )
        if pair and task.layout.pair is None:
            raise ValueError(f"--pair={pair}: the model was fine-tuned on single texts; leave it out")
        layout = Layout(text or task.layout.text, pair or task.layout.pair, regression=task.layout.regression)
        # A table of one's own: files of a named task may have other rules, such as columns without names.
        return dataclasses.replace(task, layout=layout, name=task.name if task.name in OWN_FILES else task.kind)
    if task.kind == "tags" and task.layout is None:
        return dataclasses.replace(task, layout=task_named("tags", file=source).layout)
    return task


def _has_question_tables(task: Task, source: str) -> bool:
    """Return True for tables with a question in each row; those of QAMR have other columns."""
    files = [] if source == "-" or task.name == "qamr" else list_files(source)
    return bool(files) and all(find_format(file) in ("csv", "tsv", "jsonl") for file in files)


def _has_lists_of_words(source: str) -> bool:
    """Return True for tables with a list of words in each row, whose columns have names."""
    return all(is_arrow(file) or find_format(file) == "jsonl" for file in list_files(source))


def _describe_request(model: Predictor, task: Task, source: str) -> dict[str, Any]:
    """Return what the predictions depend on: the model, the content of the input, JAX and the device."""
    if isinstance(model, TaskModel):
        parts = [model.fingerprint, str(model.head)]
    elif isinstance(model, DocumentModel):
        members = (model, *model.others)
        parts = [fingerprint(one.config, one.params, one.encoder.vocabulary.fingerprint) for one in members]
    else:
        assert isinstance(model, TaskNetwork)
        parts = [fingerprint(model.config, model.params, model.lexicon.fingerprint)]
        parts += [] if model.encoder is None else [model.encoder.fingerprint]
    device = jax.devices()[0].device_kind
    inputs = {"model": parts, "task": str(task), "content": hash_files(source)}
    return {**inputs, "jax": jax.__version__, "device": device}


def print_work(model: Predictor) -> None:
    """Print the pieces that a model with a head has read, its share of padding, and how many texts were cut.

    A network reads words, and cuts those of labelled texts.
    """
    cut, units = 0, "words"
    if isinstance(model, TaskModel):
        print(model.work, file=sys.stderr)
        cut, units = model.work.cut, "pieces"
    elif isinstance(model, TaskNetwork):
        cut = model.cut
    if cut:
        advice = "--stride=16 reads them in parts" if model.reads_in_parts else "split long texts"
        texts = "1 text was" if cut == 1 else f"{cut:,} texts were"
        print(
            f"{texts} longer than the {model.task.max_length} {units} that this model reads (max_length of its "
            f"training); the rest was not read: {advice}",
            file=sys.stderr,
        )


def _read_examples(
    task: Task, source: str, encoding: str, size: int, aggregation: str | None = None, on_bad: OnBad = stop
) -> tuple[int | None, Iterator[Sequence[Any]]]:
    """Return the number of examples, None for a stream, and the examples, `size` at a time; from a terminal one."""
    if source == "-":
        size, total = 1 if sys.stdin.isatty() else size, None
        parts: list[Iterable[Any]] = [_read_lines(task, _standard_input(), source, aggregation, on_bad)]
    else:
        counts, parts = zip(*(_read_file(task, file, encoding, aggregation, on_bad) for file in list_files(source)))
        total = sum(counts)
    examples = itertools.chain.from_iterable(parts)
    if task.context and source != "-":  # there, every line is a document
        return total, _whole_documents(examples, size)
    return total, iter(lambda: list(itertools.islice(examples, size)), [])


def _whole_documents(sentences: Iterable[Any], size: int) -> Iterator[Sequence[Any]]:
    """Yield `size` sentences or more, and all of a document, because a sentence is read with those around it."""
    part: list[Any] = []
    for _, document in itertools.groupby(sentences, lambda sentence: (sentence.file, sentence.document)):
        part += document
        if len(part) >= size:
            yield part
            part = []
    if part:
        yield part


def _read_file(
    task: Task, file: str, encoding: str, aggregation: str | None, on_bad: OnBad
) -> tuple[int, Iterable[Any]]:
    """Return the number of a file's examples, and the examples; an error of a table comes before the first one."""
    if has_plain_lines(file, task, encoding):
        lines = read_lines(file, encoding)
        return len(lines), _read_lines(task, lines, file, aggregation, on_bad)
    if is_arrow(file):  # read twice, because few examples are in memory at a time
        ignored: OnBad = stop if on_bad is stop else lambda row: None
        return sum(1 for _ in stream_examples(file, task, on_bad=ignored)), stream_examples(file, task, on_bad=on_bad)
    examples = list(stream_examples(file, task, encoding=encoding, on_bad=on_bad))
    return len(examples), examples


def _read_lines(task: Task, lines: Iterable[str], source: str, aggregation: str | None, on_bad: OnBad) -> Iterator[Any]:
    """Yield the examples of lines."""
    for number, line in enumerate(lines, start=1):
        try:
            example = _read_line(task, line.rstrip("\n"), source, number, aggregation)
        except BadRow as error:
            on_bad(error)
        else:
            yield example


def _may_have_pairs(task: Task, source: str, encoding: str) -> bool:
    """Return True if a released model may be given a pair, a line with a tab, in an input of lines."""
    if not (task.pipeline and takes_pairs(task)):
        return False
    files = [] if source == "-" else list_files(source)
    lines = (line for file in files if has_plain_lines(file, task, encoding) for line in read_lines(file, encoding))
    return source == "-" or any("\t" in line for line in lines)


def _set_encoding(encoding: str) -> None:
    """Set the encoding of standard input, which by default is the locale's."""
    try:
        sys.stdin.reconfigure(encoding=encoding)  # type: ignore[union-attr]
    except LookupError:
        raise ValueError(f"encoding={encoding!r} is not known; use one of Python's, such as utf-8 or cp949") from None


def _standard_input() -> Iterator[str]:
    try:
        for number, line in enumerate(sys.stdin):
            yield line if number else line.removeprefix("\ufeff")  # the byte-order mark is no part of the text
    except UnicodeDecodeError as error:  # files report the line themselves
        raise ValueError(f"standard input is not {error.encoding}: {error}; convert it first") from error


def _read_line(task: Task, line: str, source: str, number: int, aggregation: str | None) -> Any:
    value: Any = line
    if task.kind == "choice":
        first, *choices = line.split("\t")
        value = (first, choices)
    elif task.kind == "questions" or task.pairs or task.tag_column:
        value = tuple(line.split("\t"))
    elif task.pipeline and task.kind != "tags":
        value = tuple(line.split("\t")) if "\t" in line else line
        task = dataclasses.replace(task, layout=None)
    try:
        return to_example(task, value, number) if aggregation is None else to_text(task, value, number)
    except ValueError as error:
        name = _name_source(source)
        problem = str(error).partition(f"input {number} ")[2] or str(error)
        if not line.strip():
            problem = "a blank line, expected one example per line"
        raise BadRow(name, number, problem, "fix or delete the line") from None


def _name_source(source: str) -> str:
    return "standard input" if source == "-" else source


def read_columns(task: Task, source: str, encoding: str, on_bad: OnBad = stop) -> InputRows | None:
    """Return the cells of each row of an input table; None for other inputs."""
    layout, files = task.layout, [] if source == "-" else list_files(source)
    tables = [is_arrow(file) or bool(find_format(file)) for file in files]
    if not isinstance(layout, Layout) or not files or not (all(tables) or layout.table):
        return None
    if any(has_plain_lines(file, task, encoding) for file in files):
        return None
    names, rows = dict[str, None](), []
    for file in files:
        required, file_layout = _find_layout(task, layout, file, encoding)
        if is_arrow(file):
            table = open_arrow(file)
            names |= dict.fromkeys(table.columns)
            _warn_of_other_columns(table)
            records: Iterable[Record] = read_arrow_records(file, required)
        else:
            records = read_records(
                file, required, layout=file_layout.table, bare=file_layout.bare, spare=file_layout.spare,
                encoding=encoding, fallback=file_layout.fallback, on_bad=on_bad,
            )  # fmt: skip
            names |= dict.fromkeys(name for record in records for name in record.cells)
        rows.append(_numbered(file, records))
    return InputRows(list(names), itertools.chain.from_iterable(rows))


def _find_layout(task: Task, layout: Layout, file: str, encoding: str) -> tuple[list[str], Layout]:
    """Return the columns of a file that hold texts, and the layout in which the task reads the file."""
    if task.kind != "sentences":
        return [name for name in (layout.text, layout.pair) if name], layout
    columns = find_columns(file, dataclasses.replace(layout, label=""), encoding)
    return list(columns.texts[:2]), STS if columns.bare else layout


def _warn_of_other_columns(table: ArrowTable) -> None:
    others = [f"{name} ({kind})" for name, kind in table.kinds.items() if name not in table.columns and name != INDEX]
    if others:
        print(
            f"warning: the output lacks these columns of {table.path}: {', '.join(others)}; write them as texts or "
            "numbers to keep them",
            file=sys.stderr,
        )


def _numbered(file: str, records: Iterable[Record]) -> Iterator[tuple[str, int, Cells]]:
    return ((file, record.line, record.cells) for record in records)
