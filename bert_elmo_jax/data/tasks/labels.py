"""Labels, tags and entity tagging schemes: collect them from training data, check them, turn them into ids."""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import numpy as np
from jaxtyping import Bool, Int32

from bert_elmo_jax.data.tasks.examples import TaggedSentence, TextExample, a_number
from bert_elmo_jax.data.tasks.files import BadRow

MISSING = ("nan", "null", "<na>", "#n/a")  # what programs write for a cell without a value
Scheme = Literal["IOB1", "IOB2", "BIOES"]
Tag = tuple[str, str]  # prefix and type


def find_labels(examples: Sequence[TextExample]) -> list[str]:
    """Return the labels of training examples, sorted by value if all of them are numbers.

    >>> find_labels([TextExample("…", None, label, None, "train.csv", 2) for label in ("10", "2", "10")])
    ['2', '10']
    """
    labels = sorted(first_spellings(map(_label, examples)))
    if not examples:
        raise ValueError("no examples to find labels in; give a file with some")
    if len(labels) < 2:
        problem = f"{labels[0]!r} is the label of all {len(examples)} examples, expected at least two labels"
        remedy = "check the column of the label, and that the file is not part of a file sorted by label"
        raise BadRow(examples[0].file, examples[0].line, problem, remedy)
    return _sorted_by_value(labels)


def compose(name: str) -> str:
    r"""Return a name in NFC, the form that labels and columns are compared in: macOS splits Hangul and accents.

    >>> compose("\u1100\u1161")
    '가'
    """
    return unicodedata.normalize("NFC", name)


def first_spellings(names: Iterable[str]) -> list[str]:
    r"""Return different names in the order of their first use; names that are equal in NFC have the first spelling.

    >>> first_spellings(["가", "나", "\u1100\u1161"])
    ['가', '나']
    """
    spellings: dict[str, str] = {}
    for name in dict.fromkeys(names):
        spellings.setdefault(compose(name), name)
    return list(spellings.values())


def label_ids(examples: Sequence[TextExample], labels: Sequence[str]) -> Int32[np.ndarray, "N"]:
    """Return the index of each example's label in `labels`.

    >>> label_ids([TextExample("…", None, "재미", None, "dev.csv", 2)], ["노잼", "재미"]).tolist()
    [1]
    """
    places = ((example.file, example.line) for example in examples)
    return _ids("label", list(map(_label, examples)), labels, places)


def find_tags(sentences: Sequence[TaggedSentence], *, entities: bool = False) -> list[str]:
    """Return the sorted tags of training sentences.

    With `entities`, each type gets every prefix in use, so that an I- that occurs only in the dev data is known.

    >>> sentence = TaggedSentence(("서울", "역", "밖"), ("B-LOC", "I-LOC", "B-PER"), "train.conll", (1, 2, 3), 0)
    >>> find_tags([sentence]), find_tags([sentence], entities=True)
    (['B-LOC', 'B-PER', 'I-LOC'], ['B-LOC', 'B-PER', 'I-LOC', 'I-PER', 'O'])
    """
    tags = set(first_spellings(tag for sentence in sentences for tag in sentence.tags or ()))
    if not tags:
        raise ValueError("no tags in these sentences; read a file that has some, with tagged=True")
    if entities:
        inside = {tag.partition("-")[::2] for tag in tags if tag != "O"}
        prefixes = {prefix for prefix, _ in inside} | ({"B", "I"} if inside else set())
        tags |= {f"{prefix}-{kind}" if kind else prefix for prefix in prefixes for _, kind in inside} | {"O"}
    return _sorted_by_value(sorted(tags))


def tag_ids(sentence: TaggedSentence, tags: Sequence[str]) -> Int32[np.ndarray, "W"]:
    """Return the index of each word's tag in `tags`.

    >>> tag_ids(TaggedSentence(("서울",), ("B-LOC",), "dev.conll", (1,), 0), ["B-LOC", "O"]).tolist()
    [0]
    """
    return _ids("tag", sentence.tags or (), tags, ((sentence.file, line) for line in sentence.lines))


def _ids(
    kind: str, names: Sequence[str], known_names: Sequence[str], places: Iterable[tuple[str, int]]
) -> Int32[np.ndarray, "N"]:
    index = {name: number for number, name in enumerate(known_names)}
    for name, place in zip(names, places):
        if name not in index:  # it may be spelled otherwise
            same = next((label for label in known_names if compose(label) == compose(name)), None)
            if same is not None:
                index[name] = index[same]
        if name not in index:
            shown = ", ".join(map(repr, known_names[:20])) + (", …" if len(known_names) > 20 else "")
            problem = f"the {kind} {name!r} is not in the training data ({shown})"
            raise BadRow(*place, problem, "correct it, or train on data that have it")
    return np.array([index[name] for name in names], np.int32)


def _label(example: TextExample) -> str:
    if not isinstance(example.label, str):
        problem = f"the label {example.label!r}, expected a name"
        raise BadRow(example.file, example.line, problem, "read the file with its labels")
    check_missing(example.label, example.file, example.line)
    return example.label


def check_missing(label: str, file: str, line: int) -> None:
    """Raise for a label that programs write for a cell without a value.

    >>> check_missing("NaN", "train.csv", 2)
    Traceback (most recent call last):
    ...
    bert_elmo_jax.data.tasks.files.BadRow: train.csv:2: the label 'NaN', which programs write for a cell without a \
value: is it a label, or is the label missing?; fill it in, or rename it if it is a label; --on_bad=skip skips the row
    """
    if label.strip().lower() in MISSING:
        problem = (
            f"the label {label!r}, which programs write for a cell without a value: is it a label, or is the label "
            "missing?"
        )
        raise BadRow(file, line, problem, "fill it in, or rename it if it is a label; --on_bad=skip skips the row")


def _sorted_by_value(names: list[str]) -> list[str]:
    if any(a_number(name) is None for name in names):
        return names
    return [name for _, name in sorted(zip(map(float, names), names))]


def find_scheme(sentences: Sequence[TaggedSentence]) -> Scheme:
    """Return the tagging scheme of a file: BIOES if any tag has E- or S-, IOB1 if an entity begins with I-, else IOB2.

    In IOB2, entities begin with B-; in IOB1 with I-, or with B- directly after another entity of the same type; in
    BIOES they are B- I- E- of one type, or S-. Mixed schemes and illegal sequences raise an error.

    >>> def sentence(*tags):
    ...     return TaggedSentence(("…",) * len(tags), tags, "train.conll", tuple(range(1, len(tags) + 1)), 0)
    >>> find_scheme([sentence("B-PER", "O", "B-LOC", "I-LOC")]), find_scheme([sentence("O", "I-PER", "B-PER")])
    ('IOB2', 'IOB1')
    """
    prefixes = {tag.partition("-")[0] for sentence in sentences for tag in sentence.tags or ()}
    if prefixes & {"E", "S"}:
        for sentence in sentences:
            _check_bioes(sentence)
        return "BIOES"
    begins: dict[str, list[tuple[str, int, str]]] = {"B": [], "I": []}  # entities that begin with B- and with I-
    for sentence in sentences:
        for (before, old), (prefix, kind), tag, line in _walk(sentence):
            if prefix in begins and (before == "O" or old != kind):
                begins[prefix].append((sentence.file, line, tag))
    if not begins["I"]:
        return "IOB2"
    if not begins["B"]:
        return "IOB1"
    (file, line, inside), (_, other, begin) = begins["I"][0], begins["B"][0]
    as_begin, as_inside = "B" + inside[1:], "I" + begin[1:]
    if len(begins["I"]) <= len(begins["B"]):
        problem = f"{inside} without a {as_begin} before it, while line {other} has {begin} where IOB1 has {as_inside}"
        raise BadRow(file, line, problem, f"write {as_begin} here (IOB2), or {as_inside} there (IOB1)")
    problem = f"{begin} begins an entity, while on line {line} {inside} does: the file mixes IOB2 and IOB1"
    raise BadRow(file, other, problem, f"write {as_inside} here (IOB1), or {as_begin} there (IOB2)")


def check_tags(sentence: TaggedSentence) -> None:
    """Raise if a tag is not an entity tag."""
    for tag, line in zip(sentence.tags or (), sentence.lines):
        prefix, dash, kind = tag.partition("-")
        if tag != "O" and (prefix not in ("B", "I", "E", "S") or bool(dash) != bool(kind)):
            bilou = " (L- and U- of BILOU are E- and S- here)" if prefix in ("L", "U") and kind else ""
            problem = f"the tag {tag!r}, expected O, or B-, I-, E- or S- and a type{bilou}"
            remedy = "correct it, give the column of the tags, or read other tags with --task=tags (entities=False)"
            raise BadRow(sentence.file, line, problem, remedy)


def _walk(sentence: TaggedSentence) -> Iterator[tuple[Tag, Tag, str, int]]:
    """Yield the tag before each tag, the tag, its text and its line."""
    before = ("O", "")
    for tag, line in zip(sentence.tags or (), sentence.lines):
        prefix, _, kind = tag.partition("-")
        yield before, (prefix, kind), tag, line
        before = (prefix, kind)


def _check_bioes(sentence: TaggedSentence) -> None:
    def bad(line: int, problem: str, remedy: str = "end an entity with E-, and mark a single word with S-") -> BadRow:
        return BadRow(sentence.file, line, f"{problem}, in a file with E- or S- (BIOES)", remedy)

    last = sentence.line
    open_kind: str | None = None
    for _, (prefix, kind), tag, line in _walk(sentence):
        if open_kind is not None and (prefix not in ("I", "E") or kind != open_kind):
            raise bad(last, f"an unfinished entity of type {open_kind!r}, but {tag} follows")
        if open_kind is None and prefix in ("I", "E"):
            raise bad(line, f"{tag} without a B{tag[1:]} before it", f"write B{tag[1:]} or S{tag[1:]}")
        open_kind = kind if prefix in ("B", "I") else None
        last = line
    if open_kind is not None:
        raise bad(last, f"an unfinished entity of type {open_kind!r}, but the sentence ends")


def legal_transitions(tags: Sequence[str], scheme: Scheme | None) -> Bool[np.ndarray, "N N"]:
    """Return the mask whose entry i, j is True if tag j may follow tag i.

    With K tags, row K marks the tags that may begin a sentence, column K those that may end one. Without a scheme (tags
    that are not entities) every transition is legal.
    """
    if scheme is None:
        return np.ones((len(tags) + 1, len(tags) + 1), bool)
    # The boundaries of a sentence behave like O.
    parts = [tag.partition("-")[::2] for tag in tags] + [("O", "")]
    return np.array([[_may_follow(before, after, scheme) for after in parts] for before in parts])


def _may_follow(before: Tag, after: Tag, scheme: Scheme) -> bool:
    (prefix, kind), (following, other) = before, after
    same = kind == other
    if scheme == "IOB2":
        return following != "I" or (prefix in ("B", "I") and same)
    if scheme == "IOB1":
        return following != "B" or (prefix in ("B", "I") and same)
    continues = following in ("I", "E")
    return continues and same if prefix in ("B", "I") else not continues
