"""Read texts, pairs and choices: the official tables of GLUE, its Korean counterparts and others, and users' own."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bert_elmo_jax.data.tasks.examples import ChoiceExample, TextExample, a_number
from bert_elmo_jax.data.tasks.files import BadRow, OnBad, check_characters, row_or_line, stop
from bert_elmo_jax.data.tasks.labels import check_missing
from bert_elmo_jax.data.tasks.tables import LEAVE_OUT, Record, read_arrow_records, read_records, read_text_cell
from bert_elmo_jax.did_you_mean import did_you_mean


@dataclass(frozen=True)
class Layout:
    """The columns of the texts and labels of a table.

    `table` is the format (see `read_records`), by default chosen by the file's ending; `bare` names the columns of
    files without a header. Rows with the label `no_label` are skipped: their annotators did not agree. Official files
    may contain broken rows up to the fraction `tolerance`: an empty text is kept, as it counts in published scores, and
    a row that lacks columns is skipped if the file is read with its labels.

    >>> Layout(text="review", label="stars", regression=True).pair is None
    True
    """

    text: str
    pair: str | None = None
    label: str = "label"
    id: str | None = None
    regression: bool = False
    table: str | None = None
    bare: tuple[str, ...] = ()
    spare: int = 0
    no_label: str | None = None
    tolerance: float = 0.0
    fallback: str | None = None


_STS = ("genre", "filename", "year", "id", "score", "sentence1", "sentence2")
_PAIR = ("sentence1", "sentence2", "label")
_ENDINGS = ("ending0", "ending1", "ending2", "ending3")

LAYOUTS: Mapping[str, Layout] = {
    "cola": Layout("sentence", table="tsv", bare=("source", "label", "mark", "sentence")),
    "sst2": Layout("sentence", table="tsv"),
    "mrpc": Layout("#1 String", "#2 String", "Quality", table="tsv"),
    "qqp": Layout("question1", "question2", "is_duplicate", "id", table="tsv", tolerance=1e-3),
    # The original files have no header, and for some pairs two additional columns about the licence.
    "stsb": Layout("sentence1", "sentence2", "score", regression=True, table="tsv", bare=_STS, spare=2),
    "mnli": Layout("sentence1", "sentence2", "gold_label", "index", table="tsv", no_label="-"),
    "ax": Layout("sentence1", "sentence2", "label", "index", table="tsv"),
    "qnli": Layout("question", "sentence", "label", "index", table="tsv"),
    "rte": Layout("sentence1", "sentence2", "label", table="tsv", bare=_PAIR),
    "wnli": Layout("sentence1", "sentence2", "label", "index", table="tsv"),
    "snli": Layout("sentence1", "sentence2", "gold_label", table="tsv", no_label="-", bare=(*_PAIR[:2], "gold_label")),
    "xnli": Layout("sentence1", "sentence2", "gold_label", table="tsv"),
    "kornli": Layout("sentence1", "sentence2", "gold_label", table="tsv"),
    "korsts": Layout("sentence1", "sentence2", "score", regression=True, table="tsv"),
    "nsmc": Layout("document", None, "label", "id", table="tsv", tolerance=1e-3),
    "klue_ynat": Layout("title", None, "label", "guid", table="json"),
    "klue_sts": Layout("sentence1", "sentence2", "labels.label", "guid", regression=True, table="json"),
    "klue_nli": Layout("premise", "hypothesis", "gold_label", "guid", table="json"),
    "trec": Layout("text", table="spaced", bare=("label", "text"), fallback="latin-1"),
    "trec_fine": Layout("text", table="spaced", bare=("label", "text"), fallback="latin-1"),
    "sst5": Layout("text", table="spaced", bare=("label", "text")),
}


def read_texts(
    path: str | Path, layout: str | Layout, *, labelled: bool = True, encoding: str = "utf-8", on_bad: OnBad = stop
) -> list[TextExample]:
    r"""Read a file of texts or text pairs, given the name of a task or the layout of a table.

    `labelled=False` reads files without labels, such as GLUE's test files, and ignores labels elsewhere. `on_bad` gets
    the errors about single rows: by default they are raised; with a list's `append` these rows are skipped.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "my.csv"
    >>> _ = file.write_text('review,stars\n"정말, 정말 재미있다",5\n', encoding="utf-8")
    >>> [example] = read_texts(file, Layout(text="review", label="stars"))
    >>> example.text, example.label, example.line
    ('정말, 정말 재미있다', '5', 2)
    """
    columns, required = _find_columns(layout, labelled)
    options = {name: getattr(columns, name) for name in ("bare", "spare", "fallback")}
    options["tolerance"] = columns.tolerance if labelled else 0.0  # each row has a prediction, or an error
    optional = [columns.id] if columns.id else []
    records = read_records(
        path, required, layout=columns.table, encoding=encoding, on_bad=on_bad, optional=optional, **options
    )
    empty: dict[int, BadRow] = {}  # by the line of the example
    coarse = layout == "trec"
    examples = list(_make_examples(records, columns, path, empty, on_bad, labelled=labelled, coarse=coarse))
    if len(empty) > columns.tolerance * len(records):
        for error in empty.values():
            on_bad(error)
        examples = [example for example in examples if example.line not in empty]
    if not examples:
        problem = f"no row with a label other than {columns.no_label!r}" if columns.no_label else "no row can be read"
        raise BadRow(path, 1, problem, "give a file with labels" if labelled else "give a file with texts")
    return examples


def stream_texts(path: str | Path, layout: str | Layout, on_bad: OnBad = stop) -> Iterator[TextExample]:
    """Yield the unlabelled texts of a Parquet or Arrow file, or of a saved data set, a few rows at a time."""
    columns, required = _find_columns(layout, labelled=False)
    records = read_arrow_records(path, required, [columns.id] if columns.id else [])
    empty: dict[int, BadRow] = {}
    for example in _make_examples(records, columns, path, empty, on_bad, labelled=False, coarse=False):
        if error := empty.pop(example.line, None):
            on_bad(error)
        else:
            yield example


def _find_columns(layout: str | Layout, labelled: bool) -> tuple[Layout, list[str]]:
    """Return a layout, and the columns that its files must have."""
    if isinstance(layout, str) and layout not in LAYOUTS:
        listed = ", ".join(LAYOUTS) + ", and Layout(…) for other tables" + did_you_mean(layout, LAYOUTS)
        raise ValueError(f"there is no layout {layout!r}; there are {listed}")
    columns = LAYOUTS[layout] if isinstance(layout, str) else layout
    texts = [name for name in (columns.text, columns.pair) if name is not None]
    if (labelled and columns.label in texts) or len(set(texts)) < len(texts):
        columns_of = {"text": columns.text, "pair": columns.pair, "label": columns.label}
        shown = ", ".join(f"{name}={value!r}" for name, value in columns_of.items() if value is not None)
        raise ValueError(f"one column for two things: {shown}; use different columns for text, pair and label")
    return columns, [*texts, columns.label] if labelled else texts


def _make_examples(
    records: Iterable[Record],
    columns: Layout,
    path: str | Path,
    empty: dict[int, BadRow],
    on_bad: OnBad,
    *,
    labelled: bool,
    coarse: bool,
) -> Iterator[TextExample]:
    """Yield the example of each record that has a label; add the errors about empty texts to `empty`."""
    texts = [name for name in (columns.text, columns.pair) if name is not None]
    lines: dict[str, int] = {}
    for record in records:
        if labelled and columns.no_label is not None and record.cells[columns.label] == columns.no_label:
            continue
        cell = None if columns.id is None else record.cells.get(columns.id)
        key = None if cell is None else str(cell)
        if key is not None and lines.setdefault(key, record.line) != record.line:
            problem = f"the {columns.id} {key!r} of {row_or_line(path, lines[key])} {lines[key]} again"
            on_bad(BadRow(path, record.line, problem, "remove one of the two"))
            continue
        without_text: list[BadRow] = []
        try:
            text, *pair = (read_text_cell(record, name, path, without_text) for name in texts)
            label = _label(record, columns, path, coarse=coarse) if labelled else None
        except BadRow as error:
            on_bad(error)
            continue
        if without_text:
            empty[record.line] = without_text[0]
        yield TextExample(text, pair[0] if pair else None, label, key, str(path), record.line)


def _label(record: Record, layout: Layout, path: str | Path, *, coarse: bool) -> str | float:
    value: Any = record.cells[layout.label]
    where = (path, record.line)
    if isinstance(value, int | float):
        value = str(value).lower() if isinstance(value, bool) else str(value)
    if not isinstance(value, str):
        raise BadRow(*where, f"{layout.label} is {value!r}, expected a name or a number", "write one label")
    value = value.strip()
    if not value:
        raise BadRow(*where, f"no label in {layout.label}", f"fill it in, or {LEAVE_OUT}")
    check_characters(value, *where)
    if layout.regression:
        number = a_number(value)
        if number is None:
            raise BadRow(*where, f"{layout.label} is {value!r}, expected a number such as 4.5", "correct or remove it")
        return number
    check_missing(value, str(path), record.line)
    if coarse:
        value, colon, _ = value.partition(":")
        if not colon:
            raise BadRow(*where, f"the label {value!r}, expected coarse:fine", "give the official file of TREC")
    return value


def read_swag(path: str | Path, *, labelled: bool = True, encoding: str = "utf-8") -> list[ChoiceExample]:
    r"""Read SWAG (`train.csv`, `val.csv`, `test.csv`): situations with four possible endings each.

    As for BERT, a choice is the beginning of the second sentence (`sent2`) followed by one of the endings.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "train.csv"
    >>> names = "sent1,sent2,ending0,ending1,ending2,ending3,label"
    >>> _ = file.write_text(f"{names}\n문이 열린다.,그녀는,들어온다.,먹는다.,난다.,운다.,0\n", encoding="utf-8")
    >>> read_swag(file)[0].choices[:2]
    ('그녀는 들어온다.', '그녀는 먹는다.')
    """
    required = ("sent1", "sent2", *_ENDINGS, *(("label",) if labelled else ()))
    examples = []
    for record in read_records(path, required, layout="csv", encoding=encoding, optional=()):
        cells = {name: "" if cell is None else str(cell) for name, cell in record.cells.items()}
        bad = partial(BadRow, path, record.line)
        for name in ("sent1", *_ENDINGS):
            if not cells[name].strip():
                raise bad(f"the text in {name} is empty", "fill it in, or remove the row")
        if labelled and cells["label"].strip() not in ("0", "1", "2", "3"):
            problem = f"the label {cells['label']!r}, expected 0, 1, 2 or 3"
            raise bad(problem, "give the number of the right ending, or read with labelled=False")
        label = int(cells["label"]) if labelled else None
        choices = tuple(f"{cells['sent2']} {cells[ending]}".strip() for ending in _ENDINGS)
        examples.append(ChoiceExample(cells["sent1"], choices, label, None, str(path), record.line))
    return examples
