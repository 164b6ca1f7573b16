"""The result of encoding a text, and the special pieces around one text or two."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int32


@dataclass(frozen=True, eq=False)
class Encoding:
    """The pieces of one or two texts, with the characters and words they came from.

    `types` are what the model reads: 0 in the first text (with its special pieces) and 1 in the second, or 0
    everywhere, as the tokenizer says. `texts` is 0 in the first text and 1 in the second for every tokenizer; `second`
    is the place where the second begins. `offsets` are (start, end) in the original text, or in the word for
    `encode_words`. `word_ids` number the words of each text from 0. Special pieces that the tokenizer added have the
    offsets (0, 0) and the word id -1.

    >>> from bert_elmo_jax.text import train_wordpiece
    >>> train_wordpiece(["배를 타고"] * 9, vocab_size=30).encode("타고 배를").offsets.tolist()
    [[0, 0], [0, 2], [3, 5], [0, 0]]
    """

    ids: Int32[np.ndarray, "T"]
    types: Int32[np.ndarray, "T"]
    offsets: Int32[np.ndarray, "T 2"]
    word_ids: Int32[np.ndarray, "T"]
    tokens: tuple[str, ...]
    second: int | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, begin: int, end: int) -> "Encoding":
        """Return the pieces from `begin` to `end` of the encoding of one text.

        >>> build_encoding([7, 8], [(0, 4), (4, 7)], [0, 0], ["play", "##ing"]).part(1, 2).tokens
        ('##ing',)
        """
        ids, types, offsets, words = (x[begin:end] for x in (self.ids, self.types, self.offsets, self.word_ids))
        return Encoding(ids, types, offsets, words, self.tokens[begin:end])

    @property
    def texts(self) -> Int32[np.ndarray, "T"]:
        """Return the text of each piece, 0 or 1; special pieces between the texts belong to the first."""
        return np.zeros_like(self.types) if self.second is None else (np.arange(len(self)) >= self.second).astype("i4")


@dataclass(frozen=True)
class Frame:
    """The special pieces around one text and around a pair, and the types of the two texts.

    >>> Frame(before=(2,), between=(3,), after=(3,))  # [CLS] a [SEP] b [SEP]
    Frame(before=(2,), between=(3,), after=(3,), types=(0, 1))
    """

    before: tuple[int, ...] = ()
    between: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    types: tuple[int, int] = (0, 1)

    def count(self, pair: bool) -> int:
        """Return the number of special pieces of one text or a pair."""
        return len(self.before) + len(self.between) * pair + len(self.after)

    def join(
        self, first: Int32[np.ndarray, "A"], second: Int32[np.ndarray, "B"] | None = None
    ) -> tuple[Int32[np.ndarray, "T"], Int32[np.ndarray, "T"]]:
        """Return the ids and types of one text or a pair with its special pieces.

        >>> [array.tolist() for array in Frame((2,), (3,), (3,)).join(np.array([7, 8], "i4"), np.array([9], "i4"))]
        [[2, 7, 8, 3, 9, 3], [0, 0, 0, 0, 1, 1]]
        """
        before, between, after = (np.array(part, np.int32) for part in (self.before, self.between, self.after))
        head = [before, first] if second is None else [before, first, between]
        tail = [after] if second is None else [second, after]
        ids = np.concatenate([*head, *tail])
        types = np.full(len(ids), self.types[0], np.int32)
        if second is not None:
            types[sum(map(len, head)) :] = self.types[1]
        return ids, types


def build_encoding(
    ids: Sequence[int] = (),
    offsets: Sequence[tuple[int, int]] = (),
    word_ids: Sequence[int] = (),
    tokens: Sequence[str] = (),
) -> Encoding:
    """Return the encoding of one text without special pieces.

    >>> build_encoding([7, 8], [(0, 4), (4, 7)], [0, 0], ["play", "##ing"]).types.tolist()
    [0, 0]
    """
    return Encoding(
        ids=np.array(ids, np.int32),
        types=np.zeros(len(ids), np.int32),
        offsets=np.array(offsets, np.int32).reshape(len(ids), 2),
        word_ids=np.array(word_ids, np.int32),
        tokens=tuple(tokens),
    )


def join_words(words: Sequence[Encoding]) -> Encoding:
    """Return the encoding of a list of words, from the encoding of each word.

    >>> play, ship = build_encoding([7], [(0, 4)], [0], ["play"]), build_encoding([9], [(0, 4)], [0], ["ship"])
    >>> join_words([play, ship]).word_ids.tolist()
    [0, 1]
    """
    return build_encoding(
        [number for word in words for number in word.ids.tolist()],
        [(start, end) for word in words for start, end in word.offsets.tolist()],
        [number for number, word in enumerate(words) for _ in word.tokens],
        [token for word in words for token in word.tokens],
    )


def join_texts(
    first: Encoding, second: Encoding | None, specials: Sequence[Encoding], types: tuple[int, int] = (0, 1)
) -> Encoding:
    """Return one text or a pair between special pieces: those before, between and after the texts.

    >>> cls, sep = build_encoding([2], [(0, 0)], [-1], ["[CLS]"]), build_encoding([3], [(0, 0)], [-1], ["[SEP]"])
    >>> play = build_encoding([7], [(0, 4)], [0], ["play"])
    >>> join_texts(play, play, [cls, sep, sep]).types.tolist()
    [0, 0, 0, 1, 1]
    """
    before, between, after = specials
    head, tail = [before, first], [after]
    if second is not None:
        head, tail = [*head, between], [second, after]
    parts, start = [*head, *tail], sum(map(len, head))
    part_types = np.full(sum(map(len, parts)), types[0], np.int32)
    if second is not None:
        part_types[start:] = types[1]
    return Encoding(
        ids=np.concatenate([part.ids for part in parts]),
        types=part_types,
        offsets=np.concatenate([part.offsets for part in parts]),
        word_ids=np.concatenate([part.word_ids for part in parts]),
        tokens=tuple(token for part in parts for token in part.tokens),
        second=None if second is None else start,
    )
