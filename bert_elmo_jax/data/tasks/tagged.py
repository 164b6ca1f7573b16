"""Read tagged words: columns (CoNLL, UNER, WNUT, KLUE), CoNLL-U, and JSON lines."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from bert_elmo_jax.data.arrow_files import is_arrow
from bert_elmo_jax.data.tasks.examples import TaggedSentence
from bert_elmo_jax.data.tasks.files import BadRow, check_characters, parse_json, read_lines
from bert_elmo_jax.data.tasks.labels import check_tags, find_scheme
from bert_elmo_jax.data.tasks.tables import read_arrow_records, spell_keys
from bert_elmo_jax.did_you_mean import did_you_mean

_DOCUMENT = "-DOCSTART-"
_NEW_DOCUMENT = re.compile(r"#\s*newdoc\b")
_COMMENT = re.compile(r"#+(\s|$)")
_COMMENT_CELL = re.compile(r"#+\s+\S")  # words between tabs contain no spaces
_CONLLU_COLUMNS = 10
_WORD_NAMES, _TAG_NAMES = {"word", "token", "form"}, {"tag", "pos", "upos", "xpos", "ner", "label"}


@dataclass(frozen=True)
class TagLayout:
    """The columns of words and tags, counted from 0 (or back from -1, the last), or the keys of JSON lines.

    Tags of `entities` (O, B-PER, …) must follow one scheme. With `characters`, words are single characters, including
    spaces.

    >>> TagLayout(word=0, tag=-1).table
    'columns'
    """

    word: int | str = 0
    tag: int | str = -1
    entities: bool = True
    table: Literal["columns", "conllu", "jsonl"] = "columns"
    characters: bool = False


TAG_LAYOUTS: Mapping[str, TagLayout] = {
    "conll": TagLayout(),
    "uner": TagLayout(word=1, tag=2),
    "wnut17": TagLayout(),
    "klue_ner": TagLayout(characters=True),
    "ud_upos": TagLayout(word=1, tag=3, entities=False, table="conllu"),
    "ud_xpos": TagLayout(word=1, tag=4, entities=False, table="conllu"),
    "jsonl": TagLayout(word="words", tag="tags", entities=False, table="jsonl"),
}


def read_tagged(
    path: str | Path, layout: str | TagLayout, *, tagged: bool = True, encoding: str = "utf-8"
) -> list[TaggedSentence]:
    r"""Read a file of words and tags; a blank line ends a sentence, `-DOCSTART-` or `# newdoc` begins a document.

    In columns, `#` may be a word: a line that begins with `#` and a space is a comment if it is at the beginning of a
    sentence and has a different number of columns than the words, or (with tabs) a first column such as `# id`. In
    CoNLL-U, ranges (3-4) and empty words (3.1) are skipped. `tagged=False` reads words only.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "train.conll"
    >>> _ = file.write_text("-DOCSTART- O\n\n서울 B-LOC\n역 I-LOC\n\nhere O\n", encoding="utf-8")
    >>> [(sentence.words, sentence.tags, sentence.lines) for sentence in read_tagged(file, "conll")]
    [(('서울', '역'), ('B-LOC', 'I-LOC'), (3, 4)), (('here',), ('O',), (6,))]
    """
    if isinstance(layout, str) and layout not in TAG_LAYOUTS:
        listed = ", ".join(TAG_LAYOUTS) + ", and TagLayout(…) for others" + did_you_mean(layout, TAG_LAYOUTS)
        raise ValueError(f"there is no layout {layout!r}; there are {listed}")
    columns = TAG_LAYOUTS[layout] if isinstance(layout, str) else layout
    if {isinstance(columns.word, str), isinstance(columns.tag, str)} != {columns.table == "jsonl"}:
        raise ValueError(f"{columns}: columns are numbers (word=0, tag=-1), keys of JSON lines are names (word='word')")
    if is_arrow(path):
        sentences = list(_arrow(path, columns, tagged))
    else:
        lines = read_lines(path, encoding)
        readers = {"columns": _columns, "conllu": _conllu, "jsonl": _jsonl}
        sentences = list(readers[columns.table](lines, str(path), columns, tagged))
    if not sentences:
        raise BadRow(path, 1, "only comments, expected words with tags", "check that the file is complete")
    for sentence in sentences:
        for word, line in zip(sentence.words, sentence.lines):
            check_characters(word, path, line)
    if columns.entities and tagged:
        for sentence in sentences:
            check_tags(sentence)
        find_scheme(sentences)
    return sentences


def _columns(lines: Sequence[str], path: str, layout: TagLayout, tagged: bool) -> Iterator[TaggedSentence]:
    assert isinstance(layout.word, int) and isinstance(layout.tag, int)
    usual = _first_word(lines)
    if usual is None:
        return
    tabs = "\t" in usual[1]
    width = len(_cells(usual[1], tabs))
    _check_columns(layout, width, path, usual[0], tagged)
    first = _cells(usual[1], tabs)
    if tagged and first[layout.word].lower() in _WORD_NAMES and first[layout.tag].lower() in _TAG_NAMES:
        raise BadRow(path, usual[0], f"names of columns ({first[layout.word]}, {first[layout.tag]})", "delete the line")
    alone = layout.characters and width == 1  # a line of a space is a character, too
    gathered = _Gathered(path, tagged)
    for number, line in enumerate(lines, start=1):
        blank = not line.strip()
        if blank and not (alone and line):
            yield from gathered.end()
            continue
        cells = [line] if blank else _cells(line, tabs)
        comment = _COMMENT.match(line) and (len(cells) != width or (tabs and _COMMENT_CELL.match(cells[0])))
        if cells[0] == _DOCUMENT:
            yield from gathered.end()
            gathered.new_document()
        elif comment and not gathered.words:
            if _NEW_DOCUMENT.match(line):
                gathered.new_document()
        elif len(cells) != width:
            problem = f"{len(cells)} column{'s'[: len(cells) != 1]}, expected {width} as on line {usual[0]}"
            remedy = f"add or remove columns; words cannot contain {'tabs' if tabs else 'spaces'}"
            raise BadRow(path, number, problem, remedy)
        else:
            gathered.add(number, cells[layout.word], cells[layout.tag] if tagged else "", layout.characters)
    yield from gathered.end()


def are_columns(lines: Sequence[str]) -> bool:
    """Return whether lines are words with their tags, as many cells in each, and blank lines between sentences.

    >>> are_columns(["the DET", "sea NOUN", "", "it PRON"]), are_columns(["The sea.", "A ship sank."])
    (True, False)
    """
    usual = _first_word(lines)
    if usual is None or not any(not line.strip() for line in lines[usual[0] :]):
        return False
    tabs = "\t" in usual[1]
    width = len(_cells(usual[1], tabs))
    words = (line for line in lines if line.strip() and not _COMMENT.match(line) and not line.startswith(_DOCUMENT))
    return width > 1 and all(len(_cells(line, tabs)) == width for line in words)


def _check_columns(layout: TagLayout, width: int, path: str, line: int, tagged: bool) -> None:
    """Raise for a column that is not among the `width` of a line, and for words and tags in one column."""
    assert isinstance(layout.word, int) and isinstance(layout.tag, int)
    for name, column in (("word", layout.word), ("tag", layout.tag))[: 1 + tagged]:
        if not -width <= column < width:
            problem = f"{width} column{'s'[: width != 1]}, expected a {name} in column {column} (counted from 0)"
            raise BadRow(
                path, line, problem, "give the right column, or check the separator (tabs or spaces, no commas)"
            )
    if tagged and layout.word % width == layout.tag % width:
        problem = f"{width} column{'s'[: width != 1]}, expected words and tags in two of them"
        raise BadRow(path, line, problem, "add the tags, or give the columns of both")


def _conllu(lines: Sequence[str], path: str, layout: TagLayout, tagged: bool) -> Iterator[TaggedSentence]:
    assert isinstance(layout.word, int) and isinstance(layout.tag, int)
    gathered = _Gathered(path, tagged)
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            yield from gathered.end()
        elif _NEW_DOCUMENT.match(line):
            gathered.new_document()
        elif cells := conllu_cells(line, len(gathered.words) + 1, path, number):
            _check_columns(layout, _CONLLU_COLUMNS, path, number, tagged)
            if tagged and cells[layout.tag] == "_":
                problem = f"no tag (_) in column {layout.tag}"
                raise BadRow(path, number, problem, "tag the word, or choose another column")
            gathered.add(number, cells[layout.word], cells[layout.tag] if tagged else "", characters=False)
    yield from gathered.end()


def conllu_cells(line: str, word: int, path: str, number: int) -> list[str]:
    """Return the cells of a CoNLL-U line, which must be word `word`; none for comments, ranges and empty words."""
    cells = line.split("\t")
    if line.startswith("#"):
        return []
    if len(cells) != _CONLLU_COLUMNS:
        problem = f"{len(cells)} column{'s'[: len(cells) != 1]} between tabs, expected the {_CONLLU_COLUMNS} of CoNLL-U"
        raise BadRow(path, number, problem, "correct it, or give a file in CoNLL-U")
    if re.fullmatch(r"\d+-\d+|\d+\.\d+", cells[0]):
        return []
    if cells[0] != str(word):
        problem = f"word {cells[0]!r}, expected word {word} of the sentence"
        raise BadRow(path, number, problem, "number the words from 1, with a blank line between sentences")
    return cells


def _jsonl(lines: Sequence[str], path: str, layout: TagLayout, tagged: bool) -> Iterator[TaggedSentence]:
    items = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            raise BadRow(path, number, "a blank line, expected an example", "remove it")
        items.append((number, parse_json(line, path, number)))
    yield from _lists(items, path, layout, tagged)


def _arrow(path: str | Path, layout: TagLayout, tagged: bool) -> Iterator[TaggedSentence]:
    if layout.table != "jsonl":
        remedy = "use --task=entities or tags with --text= and --label="
        if layout.characters:
            remedy = "write a character and its tag per line, and a blank line after each text"
        raise BadRow(path, 1, "a table, expected the columns of CoNLL", remedy)
    names = [str(layout.word), str(layout.tag)][: 1 + tagged]
    records = read_arrow_records(path, names, ())
    yield from _lists(((record.line, record.cells) for record in records), str(path), layout, tagged)


def _lists(items: Iterable[tuple[int, Any]], path: str, layout: TagLayout, tagged: bool) -> Iterator[TaggedSentence]:
    names = [str(layout.word), str(layout.tag)][: 1 + tagged]
    for number, item in items:
        bad = partial(BadRow, path, number)
        item = spell_keys(item, names) if isinstance(item, dict) else item
        if not isinstance(item, dict) or not set(names) <= set(item):
            keys = ", ".join(map(repr, item)) if isinstance(item, dict) else type(item).__name__
            raise bad(f"{keys}, expected an object with {' and '.join(names)}", "give the right keys, or add these")
        lists = [item[name] for name in names]
        for name, values in zip(names, lists):
            if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
                raise bad(f"{name} is {str(values)[:40]!r}, expected a list of texts", "write one text per word")
        if len({len(values) for values in lists}) > 1:
            problem = f"{len(lists[0])} words and {len(lists[1])} tags, expected the same number"
            raise bad(problem, "give each word its tag")
        if not lists[0]:
            raise bad("no words", "remove the line, or fill it in")
        gathered = _Gathered(path, tagged)
        for word, tag in zip(lists[0], lists[-1]):
            gathered.add(number, word, tag, characters=False)
        yield from gathered.end()


class _Gathered:
    """The sentence that is being read."""

    def __init__(self, path: str, tagged: bool):
        self.path, self.tagged = path, tagged
        self.document, self.sentences = 0, 0
        self.words: list[str] = []
        self.tags: list[str] = []
        self.lines: list[int] = []

    def add(self, line: int, word: str, tag: str, characters: bool) -> None:
        bad = partial(BadRow, self.path, line)
        if not (word if characters else word.strip()):
            raise bad("no word before the tag", "add the word, or remove the line")
        if characters and len(word) != 1:
            raise bad(f"{word!r}, expected a single character", "read words with another layout")
        if self.tagged and not tag.strip():
            raise bad(f"no tag for {word!r}", "add the tag (O for none)")
        self.words.append(word if characters else word.strip(" \t"))
        self.tags.append(tag.strip())
        self.lines.append(line)

    def end(self) -> Iterator[TaggedSentence]:
        if self.words:
            tags = tuple(self.tags) if self.tagged else None
            yield TaggedSentence(tuple(self.words), tags, self.path, tuple(self.lines), self.document)
            self.words, self.tags, self.lines = [], [], []
            self.sentences += 1

    def new_document(self) -> None:
        """Begin a new document, unless the current one is empty."""
        self.document += self.sentences > 0
        self.sentences = 0


def _cells(line: str, tabs: bool) -> list[str]:
    # Not split(): a word may contain other kinds of spaces, such as U+00A0.
    return line.split("\t") if tabs else re.split(" +", line.strip(" "))


def _first_word(lines: Sequence[str]) -> tuple[int, str] | None:
    """Return the first line that is certainly a word: it shows the number of columns and their separator."""

    def lone_mark(line: str) -> bool:
        cells = _cells(line, "\t" in line)
        return line.startswith("#") and not _COMMENT_CELL.match(cells[0]) and ("\t" in line or len(cells) == 2)

    numbered = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    certain = (place for place in numbered if not place[1].startswith(("#", _DOCUMENT)))
    # If all lines begin with #, a lone # with a tag is a word.
    return next(certain, None) or next((place for place in numbered if lone_mark(place[1])), None)
