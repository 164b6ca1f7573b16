"""Entities in raw texts from the labels of their pieces, by the strategies of transformers' pipeline."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float32

from bert_elmo_jax.data.tasks.examples import TextExample
from bert_elmo_jax.data.tasks.rows import Row, split_pieces
from bert_elmo_jax.inference.predictions import Entities, Entity, softmax
from bert_elmo_jax.text import Tokenizer
from bert_elmo_jax.text.encoding import Encoding

Aggregation = Literal["none", "simple", "first", "average", "max"]
AGGREGATIONS: tuple[Aggregation, ...] = ("none", "simple", "first", "average", "max")
OUTSIDE = "O"


class LabelledPart(NamedTuple):
    """A piece or a word of a text: its label, the label's probability, its characters."""

    label: str
    probability: Any
    start: int
    end: int


def make_text_rows(texts: Sequence[TextExample], tokenizer: Tokenizer, length: int, stride: int | None) -> list[Row]:
    """Return rows of at most `length` pieces.

    A longer text is cut, at the end that the tokenizer cuts, or with `stride` read in rows that overlap by so many
    pieces and begin at the other end.
    """
    rows = []
    frame = tokenizer.frame
    capacity = length - frame.count(pair=False)
    for number, example in enumerate(texts):
        encoding = tokenizer.encode(example.text, specials=False)
        pieces = len(encoding)
        parts = split_pieces(pieces, capacity, max(1, capacity - (stride or 0)))
        if stride is None:
            parts = parts[:1]
        lost = pieces - parts[-1][1]
        if tokenizer.cuts_start:
            parts = [(pieces - end, pieces - begin) for begin, end in parts]
        for begin, end in parts:
            ids, types = frame.join(encoding.ids[begin:end])
            rows.append(Row(number, (ids,), (types,), pieces=encoding.part(begin, end), lost=lost))
    return rows


def find_entities(
    texts: Sequence[TextExample],
    rows: Sequence[Row],
    outputs: Sequence[Float32[np.ndarray, "_ N"]],
    labels: Sequence[str],
    tokenizer: Tokenizer,
    aggregation: Aggregation,
) -> list[Entities]:
    """Return the entities of texts, from the scores of the labels of each row's pieces."""
    entities: list[list[Entity]] = [[] for _ in texts]
    parts_of = [0] * len(texts)
    before = len(tokenizer.frame.before)
    for row, output in zip(rows, outputs, strict=True):
        text, encoding = texts[row.example].text, row.pieces
        assert encoding is not None
        shares = softmax(output[before : before + len(encoding)])
        parts_of[row.example] += 1
        words = _join_words(text, encoding, tokenizer) if aggregation in ("first", "average", "max") else None
        labelled = label_parts(_find_offsets(encoding, tokenizer), shares, labels, words, aggregation)
        groups = labelled if aggregation == "none" else join_groups(labelled)
        entities[row.example] += [
            Entity(text[part.start : part.end], part.label, part.start, part.end, float(part.probability))
            for part in groups
            if part.label != OUTSIDE
        ]
    return [
        Entities(tuple(drop_overlaps(of_text) if parts > 1 else of_text)) for of_text, parts in zip(entities, parts_of)
    ]


def label_parts(
    offsets: Sequence[Sequence[int]],
    shares: Float32[np.ndarray, "T N"],
    labels: Sequence[str],
    words: Sequence[Sequence[int]] | None,
    aggregation: Aggregation,
) -> list[LabelledPart]:
    """Return the likeliest label of each piece, or of each of `words`, which list the places of their pieces.

    >>> shares = np.array([[0.9, 0.1], [0.0, 1.0]], np.float32)
    >>> [part.label for part in label_parts([[0, 2], [2, 4]], shares, ["O", "B-PER"], [[0, 1]], "max")]
    ['B-PER']
    """
    parts = []
    for places in [[place] for place in range(len(offsets))] if words is None else words:
        chosen = shares[places[0]]
        if aggregation == "max":
            chosen = shares[max(places, key=lambda place: shares[place].max())]
        elif aggregation == "average":
            chosen = shares[places].mean(axis=0)
        best = int(chosen.argmax())
        parts.append(LabelledPart(labels[best], chosen[best], offsets[places[0]][0], offsets[places[-1]][1]))
    return parts


def join_groups(parts: Sequence[LabelledPart]) -> list[LabelledPart]:
    """Join neighbours of one type, unless the later one begins an entity (B-); a label without B- or I- is a type.

    >>> [group.label for group in join_groups([LabelledPart("B-PER", 1, 0, 2), LabelledPart("I-PER", 1, 2, 4)])]
    ['PER']
    """
    groups: list[list[LabelledPart]] = []
    for part in parts:
        if groups and not part.label.startswith("B-") and _type_of(part.label) == _type_of(groups[-1][-1].label):
            groups[-1].append(part)
        else:
            groups.append([part])
    return [
        LabelledPart(
            group[0].label.split("-", 1)[-1], np.mean([part.probability for part in group]), group[0].start,
            group[-1].end,
        )
        for group in groups
    ]  # fmt: skip


def drop_overlaps(entities: Sequence[Entity]) -> list[Entity]:
    """Keep of entities that overlap the longer one, or else the likelier one.

    >>> long, short = Entity("New York", "LOC", 0, 8, 0.5), Entity("York", "PER", 4, 8, 0.9)
    >>> drop_overlaps([long, short]) == [long]
    True
    """
    longest: list[Entity] = []
    for entity in sorted(entities, key=lambda entity: entity.start):
        if not longest or not longest[-1].start <= entity.start < longest[-1].end:
            longest.append(entity)
        elif (entity.end - entity.start, entity.probability) > (
            longest[-1].end - longest[-1].start,
            longest[-1].probability,
        ):
            longest[-1] = entity
    return longest


def _type_of(label: str) -> str:
    return label[2:] if label.startswith(("B-", "I-")) else label


def _find_offsets(encoding: Encoding, tokenizer: Tokenizer) -> list[tuple[int, int]]:
    """Return the characters of each piece; a mark of a space without characters covers the next one."""
    offsets = [(start, end) for start, end in encoding.offsets.tolist()]
    if tokenizer.kind != "sentencepiece":
        return offsets
    return [(start, max(end, start + 1)) for start, end in offsets]


def _join_words(text: str, encoding: Encoding, tokenizer: Tokenizer) -> list[list[int]]:
    """Return the places of the pieces of each word, as transformers' pipeline finds words.

    With WordPiece, a piece continues a word if it is longer or shorter than its characters, as are those with ##. Other
    pieces continue a word unless there is a space at their first character or before it. An unknown piece is a word.
    """
    words: list[list[int]] = []
    for place, (number, token, (start, end)) in enumerate(
        zip(encoding.ids.tolist(), encoding.tokens, encoding.offsets.tolist())
    ):
        if tokenizer.kind == "wordpiece":
            continues = len(token) != end - start
        else:
            continues = start > 0 and " " not in text[start - 1 : start + 1]
        if words and continues and number != tokenizer.unk_id:
            words[-1].append(place)
        else:
            words.append([place])
    return words
