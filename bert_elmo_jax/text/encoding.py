"""What a tokenizer gives back for one text or a pair of texts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int32


@dataclass(frozen=True, eq=False)
class Encoding:
    """Pieces of one text, or of two, with the way back to the characters and words they came from.

    `types` is 0 in the first text (with its special pieces) and 1 in the second. `offsets` are character positions
    (start, end) in the original text the piece came from: the second text's point into the second text, those of
    `encode_words` into the piece's own word. `word_ids` number the words of each text from 0. A special piece that the
    tokenizer added has the offsets (0, 0) and the word -1.

    >>> from bert_elmo_jax.text import WordPiece
    >>> pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "배", "##를", "play", "##ing"]
    >>> encoding = WordPiece(pieces).encode("배를 playing")
    >>> encoding.tokens
    ('[CLS]', '배', '##를', 'play', '##ing', '[SEP]')
    >>> encoding.offsets[3].tolist(), encoding.word_ids.tolist()
    ([3, 7], [-1, 0, 0, 1, 1, -1])
    """

    ids: Int32[np.ndarray, "T"]
    types: Int32[np.ndarray, "T"]
    offsets: Int32[np.ndarray, "T 2"]
    word_ids: Int32[np.ndarray, "T"]
    tokens: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)


def encoding_of(
    ids: Sequence[int], offsets: Sequence[tuple[int, int]], word_ids: Sequence[int], tokens: Sequence[str]
) -> Encoding:
    """One text without special pieces, from the lists the libraries return.

    >>> encoding_of([7, 8], [(0, 4), (4, 7)], [0, 0], ["play", "##ing"]).types.tolist()
    [0, 0]
    """
    return Encoding(
        ids=np.array(ids, np.int32),
        types=np.zeros(len(ids), np.int32),
        offsets=np.array(offsets, np.int32).reshape(len(ids), 2),
        word_ids=np.array(word_ids, np.int32),
        tokens=tuple(tokens),
    )


def join_texts(first: Encoding, second: Encoding | None, cls: Encoding | None, sep: Encoding | None) -> Encoding:
    """`[CLS] first [SEP] second [SEP]`, or `first second` where the special pieces are None.

    >>> cls, sep = (encoding_of([i], [(0, 0)], [-1], [token]) for i, token in ((2, "[CLS]"), (3, "[SEP]")))
    >>> play = encoding_of([7], [(0, 4)], [0], ["play"])
    >>> join_texts(play, play, cls, sep).types.tolist()
    [0, 0, 0, 1, 1]
    """
    parts = [(part, 0) for part in (cls, first, sep) if part is not None]
    if second is not None:
        parts += [(part, 1) for part in (second, sep) if part is not None]
    return Encoding(
        ids=np.concatenate([part.ids for part, _ in parts]),
        types=np.concatenate([np.full(len(part), number, np.int32) for part, number in parts]),
        offsets=np.concatenate([part.offsets for part, _ in parts]),
        word_ids=np.concatenate([part.word_ids for part, _ in parts]),
        tokens=tuple(token for part, _ in parts for token in part.tokens),
    )
