"""Read and write dependency trees in CoNLL-U: one head and one relation for each word."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from bert_elmo_jax.data.tasks.examples import ParsedSentence
from bert_elmo_jax.data.tasks.files import BadRow, read_lines
from bert_elmo_jax.data.tasks.tagged import conllu_cells
from bert_elmo_jax.did_you_mean import did_you_mean

FORM, HEAD, RELATION = 1, 6, 7  # columns of CoNLL-U
TAG_COLUMNS = {"upos": 3, "xpos": 4}


def check_column(name: str) -> None:
    """Raise ValueError unless `name` is a column of tags, or "" for none.

    >>> check_column("upos")
    >>> check_column("pos")
    Traceback (most recent call last):
    ...
    ValueError: tag_column='pos' is not known; use upos, xpos, or leave it empty; did you mean xpos?
    """
    if name and name not in TAG_COLUMNS:
        hint = did_you_mean(name, TAG_COLUMNS)
        raise ValueError(f"tag_column={name!r} is not known; use {', '.join(TAG_COLUMNS)}, or leave it empty{hint}")


def read_trees(
    path: str | Path, *, parsed: bool = True, tag_column: str = "", encoding: str = "utf-8"
) -> list[ParsedSentence]:
    r"""Read the sentences of a CoNLL-U file; multiword tokens (3-4) and empty nodes (3.1) are no words.

    Each tree must have one root and no cycle; `parsed=False` ignores heads and relations. With a `tag_column`, upos or
    xpos, every word needs a tag.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "train.conllu"
    >>> lines = ["1\tIt\t_\t_\t_\t_\t2\tnsubj\t_\t_", "2\trains\t_\t_\t_\t_\t0\troot\t_\t_"]
    >>> _ = file.write_text("\n".join(lines), encoding="utf-8")
    >>> [(sentence.words, sentence.heads, sentence.relations) for sentence in read_trees(file)]
    [(('It', 'rains'), (2, 0), ('nsubj', 'root'))]
    """
    check_column(tag_column)
    sentences: list[ParsedSentence] = []
    source: list[str] = []
    words: list[tuple[int, list[str]]] = []  # line and cells
    for number, line in enumerate([*read_lines(path, encoding), ""], start=1):
        if line.strip():
            source.append(line)
            if cells := conllu_cells(line, len(words) + 1, str(path), number):
                words.append((number, cells))
        elif words:
            sentences.append(_make_sentence(str(path), words, source, parsed, tag_column))
            source, words = [], []
        elif source and source[-1]:
            source.append("")  # comments with a blank line after them
    if not sentences:
        raise BadRow(path, 1, "no words, expected sentences in CoNLL-U", "check that the file is complete")
    if source:  # comments after the last sentence
        sentences[-1] = replace(sentences[-1], source=(*(sentences[-1].source or ()), "", *source[:-1]))
    return sentences


def _make_sentence(
    path: str, words: Sequence[tuple[int, list[str]]], source: Sequence[str], parsed: bool, tag_column: str
) -> ParsedSentence:
    lines = tuple(number for number, _ in words)
    tags = heads = relations = None
    for number, cells in words:
        if not cells[FORM].strip():
            raise BadRow(path, number, "no word in the second column", "add the word, or _")
    if tag_column:
        tags = tuple(cells[TAG_COLUMNS[tag_column]] for _, cells in words)
        for line, tag in zip(lines, tags):
            if tag in ("", "_"):
                remedy = "tag the words first, or train a parser without tags (--config.tag_column=)"
                raise BadRow(path, line, f"no tag in the column {tag_column}", remedy)
    if parsed:
        heads = tuple(_read_head(path, number, cells[HEAD], len(words)) for number, cells in words)
        relations = tuple(cells[RELATION] for _, cells in words)
        for line, relation in zip(lines, relations):
            if relation in ("", "_"):
                raise BadRow(path, line, "no relation (the eighth column)", "add it, or leave the sentence out")
        check_tree(heads, path, lines)
    return ParsedSentence(tuple(cells[FORM] for _, cells in words), tags, heads, relations, path, lines, tuple(source))


def _read_head(path: str, line: int, cell: str, count: int) -> int:
    if cell.isascii() and cell.isdigit() and int(cell) <= count:
        return int(cell)
    problem = f"the head {cell!r}, expected a number from 0 (the root) to {count}, the words of the sentence"
    raise BadRow(path, line, problem, "correct it, or leave the sentence out")


def check_tree(heads: Sequence[int], path: str, lines: Sequence[int]) -> None:
    """Raise with file and line unless one word has the head 0, and every word leads to it.

    >>> check_tree((2, 0), "train.conllu", (1, 2))
    >>> check_tree((2, 1, 0), "train.conllu", (1, 2, 3))
    Traceback (most recent call last):
    ...
    bert_elmo_jax.data.tasks.files.BadRow: train.conllu:1: the heads of the words 1, 2 form a cycle; correct one of \
them, or leave the sentence out
    """
    bad = partial(BadRow, path)
    remedy = "correct one of them, or leave the sentence out"
    roots = [word for word, head in enumerate(heads, start=1) if head == 0]
    if len(roots) > 1:
        shown = f"the words {roots[0]} (line {lines[roots[0] - 1]}) and {roots[1]} have the head 0"
        raise bad(lines[roots[1] - 1], f"two roots: {shown}, and a tree has one root", remedy)
    reaches_root = {0}
    for start in range(1, len(heads) + 1):
        way: list[int] = []
        word = start
        while word not in reaches_root:
            if word in way:
                cycle = sorted(way[way.index(word) :])
                shown = ", ".join(map(str, cycle))
                problem = (
                    f"the heads of the words {shown} form a cycle" if cycle[1:] else f"word {shown} is its own head"
                )
                raise bad(
                    lines[cycle[0] - 1], problem, remedy if cycle[1:] else "correct it, or leave the sentence out"
                )
            way.append(word)
            word = heads[word - 1]
        reaches_root.update(way)


def word_lines(words: Sequence[str], tags: Sequence[str] | None, tag_column: str) -> list[str]:
    r"""Return the lines of words without a tree in CoNLL-U, with their tags in `tag_column`, if there are any.

    >>> word_lines(["rains"], ["VERB"], "upos")
    ['1\trains\t_\tVERB\t_\t_\t_\t_\t_\t_']
    """
    lines = []
    for number, word in enumerate(words, start=1):
        cells = [str(number), " ".join(word.split()) or "_", *"_" * 8]
        if tags is not None and tag_column:
            cells[TAG_COLUMNS[tag_column]] = tags[number - 1]
        lines.append("\t".join(cells))
    return lines


def write_tree(source: Iterable[str], heads: Sequence[int], relations: Sequence[str]) -> str:
    r"""Return the lines of a sentence in CoNLL-U with other heads and relations, and a blank line after it.

    Comments, multiword tokens and empty nodes are kept.

    >>> write_tree(word_lines(["It", "rains"], None, ""), [2, 0], ["nsubj", "root"])
    '1\tIt\t_\t_\t_\t_\t2\tnsubj\t_\t_\n2\trains\t_\t_\t_\t_\t0\troot\t_\t_\n'
    """
    lines, arcs = [], iter(zip(heads, relations))
    for line in source:
        cells = line.split("\t")
        if not line.startswith("#") and cells[0].isdigit():
            head, cells[RELATION] = next(arcs)
            cells[HEAD] = str(head)
        lines.append("\t".join(cells))
    return "".join(f"{line}\n" for line in lines)
