"""Entity tagging schemes: detection and validation."""

from collections.abc import Iterator, Sequence
from typing import Literal

from bert_elmo_jax.data.tasks.examples import TaggedSentence
from bert_elmo_jax.data.tasks.files import BadRow

Scheme = Literal["IOB1", "IOB2", "BIOES"]
_Tag = tuple[str, str]


def find_scheme(sentences: Sequence[TaggedSentence]) -> Scheme:
    """Return the tagging scheme of a file: BIOES if any tag has E- or S-, IOB1 if an entity begins with I-, else IOB2.

    In IOB2, entities begin with B-; in IOB1 with I-, or with B- directly after another entity of the same type; in
    BIOES they are B- I- E- of one type, or S-. Mixed schemes and illegal sequences raise an error.

    >>> def sentence(*tags):
    ...     return TaggedSentence(("…",) * len(tags), tags, "train.conll", tuple(range(1, len(tags) + 1)), 0)
    >>> find_scheme([sentence("B-PER", "O", "B-LOC", "I-LOC")]), find_scheme([sentence("O", "I-PER", "B-PER")])
    ('IOB2', 'IOB1')
    >>> find_scheme([sentence("B-PER", "O", "I-LOC")])
    Traceback (most recent call last):
    bert_elmo_jax.data.tasks.files.BadRow: train.conll:3: I-LOC without a B-LOC before it, while line 1 has B-PER \
where IOB1 has I-PER; write B-LOC here (IOB2), or I-PER there (IOB1)
    """
    seen = {tag.partition("-")[0] for sentence in sentences for tag in sentence.tags or ()}
    if seen & {"E", "S"}:
        for sentence in sentences:
            _check_bioes(sentence)
        return "BIOES"
    stray_inside: list[tuple[str, int, str]] = []
    plain_begin: list[tuple[str, int, str]] = []
    for sentence in sentences:
        for (before, old), (prefix, kind), tag, line in _walk(sentence):
            begins = before == "O" or old != kind
            if prefix == "I" and begins:
                stray_inside.append((sentence.file, line, tag))
            if prefix == "B" and begins:
                plain_begin.append((sentence.file, line, tag))
    if not stray_inside:
        return "IOB2"
    if not plain_begin:
        return "IOB1"
    file, line, inside = stray_inside[0]
    _, other, begin = plain_begin[0]
    as_begin, as_inside = "B" + inside[1:], "I" + begin[1:]
    if len(stray_inside) <= len(plain_begin):
        what = f"{inside} without a {as_begin} before it, while line {other} has {begin} where IOB1 has {as_inside}"
        raise BadRow(file, line, what, f"write {as_begin} here (IOB2), or {as_inside} there (IOB1)")
    what = f"{begin} begins an entity, while on line {line} {inside} does: the file mixes IOB2 and IOB1"
    raise BadRow(file, other, what, f"write {as_inside} here (IOB1), or {as_begin} there (IOB2)")


def check_tags(sentence: TaggedSentence) -> None:
    """Raise if a tag is not an entity tag."""
    for tag, line in zip(sentence.tags or (), sentence.lines):
        prefix, dash, kind = tag.partition("-")
        if tag != "O" and (prefix not in ("B", "I", "E", "S") or bool(dash) != bool(kind)):
            bilou = " (L- and U- of BILOU are E- and S- here)" if prefix in ("L", "U") and kind else ""
            what = f"the tag {tag!r}, expected O, or B-, I-, E- or S- and a type{bilou}"
            remedy = "correct it, give the column of the tags, or read other tags with entities=False"
            raise BadRow(sentence.file, line, what, remedy)


def _walk(sentence: TaggedSentence) -> Iterator[tuple[_Tag, _Tag, str, int]]:
    before: _Tag = ("O", "")
    for tag, line in zip(sentence.tags or (), sentence.lines):
        prefix, _, kind = tag.partition("-")
        yield before, (prefix, kind), tag, line
        before = (prefix, kind)


def _check_bioes(sentence: TaggedSentence) -> None:
    def wrong(line: int, what: str, remedy: str) -> BadRow:
        return BadRow(sentence.file, line, f"{what}, in a file with E- or S- (BIOES)", remedy)

    last = sentence.line
    open_kind: str | None = None
    for _, (prefix, kind), tag, line in _walk(sentence):
        if open_kind is not None and (prefix not in ("I", "E") or kind != open_kind):
            raise wrong(last, f"an unfinished entity of type {open_kind!r}, but {tag} follows", _LONE)
        if open_kind is None and prefix in ("I", "E"):
            raise wrong(line, f"{tag} without a B{tag[1:]} before it", f"write B{tag[1:]} or S{tag[1:]}")
        open_kind = kind if prefix in ("B", "I") else None
        last = line
    if open_kind is not None:
        raise wrong(last, f"an unfinished entity of type {open_kind!r}, but the sentence ends", _LONE)


_LONE = "end an entity with E-, and mark a single word with S-"
