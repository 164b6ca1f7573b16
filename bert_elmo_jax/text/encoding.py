"""The result of encoding a text or a pair of texts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int32


@dataclass(frozen=True, eq=False)
class Encoding:
    """The pieces of one or two texts, with the characters and words they came from.

    `types` is 0 in the first text (with its special pieces) and 1 in the second. `offsets` are (start, end) in the
    original text, or in the word for `encode_words`. `word_ids` number the words of each text from 0. Special pieces
    that the tokenizer added have the offsets (0, 0) and the word id -1.

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
    """Build the encoding of one text without special pieces from the libraries' lists."""
    return Encoding(
        ids=np.array(ids, np.int32),
        types=np.zeros(len(ids), np.int32),
        offsets=np.array(offsets, np.int32).reshape(len(ids), 2),
        word_ids=np.array(word_ids, np.int32),
        tokens=tuple(tokens),
    )


def join_texts(first: Encoding, second: Encoding | None, cls: Encoding | None, sep: Encoding | None) -> Encoding:
    """Return `[CLS] first [SEP] second [SEP]`, or `first second` if `cls` and `sep` are None."""
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
