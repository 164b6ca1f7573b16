"""Rows of pieces for tagged sentences: the first piece of each word carries the tag; optional document context."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Int32

from bert_elmo_jax.data.tasks.examples import TaggedSentence
from bert_elmo_jax.data.tasks.squad_windows import best_windows
from bert_elmo_jax.text import Tokenizer

Ids = Int32[np.ndarray, "_"]


def tag_places(
    sentences: Sequence[TaggedSentence],
    tokenizer: Tokenizer,
    length: int,
    *,
    context: bool = False,
    characters: bool = False,
) -> Iterator[tuple[int, Ids, Int32[np.ndarray, "W 2"]]]:
    """Yield (sentence, ids, (word, place) of the words to tag) for each row of at most `length` pieces.

    Long sentences are split into rows that overlap by half, and each word is tagged in the row with the most context
    around it. With `context`, rows are filled up with neighbouring pieces of the document. With `characters`, words are
    the characters of a text, and only characters that begin a piece have a place.
    """
    room = length - 2
    pieces = [_pieces(sentence, tokenizer, characters) for sentence in sentences]
    cls, sep = np.array([tokenizer.cls_id], np.int32), np.array([tokenizer.sep_id], np.int32)
    for first, behind in _documents(sentences) if context else ((n, n + 1) for n in range(len(sentences))):
        stream = np.concatenate([ids for ids, _ in pieces[first:behind]])
        begin = 0
        for number in range(first, behind):
            ids, places = pieces[number]
            end = begin + len(ids)
            words = np.flatnonzero(places >= 0)
            at = begin + places[words]
            parts = list(_parts(begin, end, len(stream), room))
            owners = best_windows([(max(a, begin) - begin, min(b, end) - begin) for a, b in parts], len(ids))
            for part, (a, b) in enumerate(parts):
                mine = owners[at - begin] == part
                if mine.any():
                    row = np.concatenate([cls, stream[a:b], sep])
                    yield number, row, np.stack([words[mine], at[mine] - a + 1], axis=1).astype(np.int32)
            begin = end


def _pieces(sentence: TaggedSentence, tokenizer: Tokenizer, characters: bool) -> tuple[Ids, Int32[np.ndarray, "W"]]:
    """Return the pieces of a sentence, and the first piece of each word (-1 for a character inside a piece)."""
    places = np.full(len(sentence.words), -1, np.int32)
    if characters:
        encoding = tokenizer.encode("".join(sentence.words), specials=False)
        starts = encoding.offsets[:, 0]
        # If several pieces begin in one character, such as the marks of a letter, the first one counts.
        first = np.flatnonzero(np.diff(starts, prepend=-1) > 0)
        places[starts[first]] = first
        return encoding.ids, places
    encoding = tokenizer.encode_words(sentence.words, specials=False)
    known, first = np.unique(encoding.word_ids, return_index=True)
    if len(known) == len(places) and not (known < 0).any():
        places[:] = first
        return encoding.ids, places
    # A word without pieces, such as a control character, becomes [UNK] so that it can be tagged.
    ids: list[int] = []
    for word in range(len(places)):
        places[word] = len(ids)
        ids += encoding.ids[encoding.word_ids == word].tolist() or [tokenizer.unk_id]
    return np.array(ids, np.int32), places


def _documents(sentences: Sequence[TaggedSentence]) -> Iterator[tuple[int, int]]:
    first = 0
    for _, group in itertools.groupby(sentences, key=lambda sentence: (sentence.file, sentence.document)):
        behind = first + len(list(group))
        yield first, behind
        first = behind


def _parts(begin: int, end: int, total: int, room: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a stream that cover pieces `begin` to `end`: one with context, or several that overlap."""
    if end - begin <= room:
        spare = room - (end - begin)
        before = min(begin, max(spare // 2, spare - (total - end)))
        yield begin - before, min(total, end + spare - before)
        return
    at = begin
    while at + room < end:
        yield at, at + room
        at += max(1, room // 2)
    yield end - room, end
