"""Choose the positions to predict, and replace their tokens.

A row of n tokens (special ones count) gets min(K, max(1, round(rate · n))) predictions; [CLS], [SEP] and padding are
never predicted. Examples packed into one row share its predictions.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int32, Int64

from bert_elmo_jax.data.rows.widths import enumerate_runs
from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.text import Tokenizer

DRAWS = 4  # random numbers per position
# Lengths of spans in words: geometric with p = 0.2, truncated at 10.
SPANS = np.cumsum(0.8 ** np.arange(10)) / np.sum(0.8 ** np.arange(10))
LAST = 2.0  # a score that sorts after every random one
KINDS = ("token", "word", "span", "next")

Rows = Int32[np.ndarray, "B T"]
Marks = Bool[np.ndarray, "B T"]
Scores = Float64[np.ndarray, "B T"]
Draws = Float64[np.ndarray, "B 4 T"]
Counts = Int64[np.ndarray, "B"]
Places = Int32[np.ndarray, "B K"]
Weights = Float32[np.ndarray, "B K"]


@dataclass(frozen=True)
class Masking:
    """Masking settings.

    Args:
        kind: `token` picks single tokens, `word` picks whole words and skips words with more pieces than are left to
            pick, `span` picks spans of whole words of geometric length and replaces each span in one way. `next` masks
            nothing: a causal model predicts every token from those before it.
        rate: share of tokens to predict.
        predictions: maximum number of predictions per row; None: rate · length, rounded up.
        split: shares of picked tokens that become [MASK], become a random token, and stay unchanged.
    """

    kind: Literal["token", "word", "span", "next"] = "token"
    rate: float = 0.15
    predictions: int | None = None
    split: tuple[float, float, float] = (0.8, 0.1, 0.1)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            hint = did_you_mean(self.kind, KINDS)
            raise ValueError(f"masking {self.kind!r} is not known; it is token, word, span or next{hint}")
        if len(self.split) != 3 or min(self.split) < 0 or abs(sum(self.split) - 1) > 1e-6:
            expected = "three shares that add up to 1 ([MASK], random token, unchanged), such as (0.8, 0.1, 0.1)"
            raise ValueError(f"split={self.split}: expected {expected}")

    def places(self, length: int) -> int:
        """Return the maximum number of predictions (K) in a row of this length."""
        if self.kind == "next":
            return length - 1
        # In floating point, 0.05 · 20 is slightly more than 1.
        return self.predictions or max(1, int(np.ceil(self.rate * length - 1e-9)))


@dataclass(frozen=True)
class Vocabulary:
    """The properties of a tokenizer that masking and row building use."""

    size: int
    cls: int
    sep: int
    pad: int
    mask: int
    continues: Bool[np.ndarray, "V"]  # tokens that continue the word of the token before them
    fixed: Bool[np.ndarray, "V"]  # tokens that are never picked


def vocabulary_of(tokenizer: Tokenizer) -> Vocabulary:
    """Return a tokenizer's vocabulary: `##` continues a word; ▁ (SentencePiece) or Ġ (byte-level BPE) begins one."""
    fixed = np.zeros(tokenizer.vocab_size, bool)
    fixed[[tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id]] = True
    continues = ~tokenizer.word_starts & ~fixed
    continues[tokenizer.mask_id] = False
    if tokenizer.kind == "suffix_bpe":
        continues[:] = False  # </w> marks where words end, so every piece counts as a word
    if tokenizer.kind == "wordpiece":
        continues[tokenizer.unk_id] = False  # [UNK] is a whole word in WordPiece, a character in SentencePiece
    return Vocabulary(
        tokenizer.vocab_size, tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id, tokenizer.mask_id, continues, fixed
    )


def mask_rows(
    tokens: Rows, segments: Rows, masking: Masking, vocabulary: Vocabulary, draws: Draws
) -> tuple[Rows, Places, Places, Weights]:
    """Return the masked rows, and the positions (ascending), targets and weights of the predictions.

    Row i depends only on `draws[i]`. With `next`, each token is predicted at the position before it in its example. A
    row without tokens to pick has no prediction: all its weights are 0.
    """
    places = masking.places(tokens.shape[1])
    if masking.kind == "next":
        real = (segments[:, 1:] > 0) & (segments[:, 1:] == segments[:, :-1])
        positions = np.tile(np.arange(places, dtype=np.int32), (len(tokens), 1))
        return tokens, positions, np.where(real, tokens[:, 1:], 0).astype(np.int32), real.astype(np.float32)
    free = (segments > 0) & ~vocabulary.fixed[tokens]
    counts = np.rint(masking.rate * (segments > 0).sum(axis=1)).astype(np.int64)
    counts = np.minimum(np.clip(counts, 1, places), free.sum(axis=1))
    fates = draws[:, 2]
    if masking.kind == "token":
        picked = _pick_tokens(free, counts, draws[:, 0])
    else:
        starts = free & ~(vocabulary.continues[tokens] & np.pad(free[:, :-1], ((0, 0), (1, 0))))
        if masking.kind == "word":
            picked = _pick_words(free, starts, counts, draws[:, 0])
        else:
            picked, fates = _pick_spans(free, starts, counts, draws)
    (row, place), column = enumerate_runs(picked.sum(axis=1)), np.nonzero(picked)[1]
    positions, targets = np.zeros((2, len(tokens), places), np.int32)
    weights = np.zeros((len(tokens), places), np.float32)
    positions[row, place] = column
    targets[row, place] = tokens[row, column]
    weights[row, place] = 1
    fate = fates[row, column]
    random = (draws[row, 3, column] * vocabulary.size).astype(np.int32)
    masked = tokens.copy()
    replaced = np.where(fate < masking.split[0] + masking.split[1], random, tokens[row, column])
    masked[row, column] = np.where(fate < masking.split[0], vocabulary.mask, replaced)
    return masked, positions, targets, weights


def _pick_tokens(free: Marks, counts: Counts, scores: Scores) -> Marks:
    """Pick `counts` free positions of each row, those with the lowest scores."""
    order = np.argsort(np.where(free, scores, LAST), axis=1)
    picked = np.zeros_like(free)
    np.put_along_axis(picked, order, np.arange(free.shape[1]) < counts[:, None], axis=1)
    return picked


def _pick_words(free: Marks, starts: Marks, counts: Counts, scores: Scores) -> Marks:
    """Pick whole words in random order; skip words with more pieces than are left to pick."""
    first = np.maximum.accumulate(np.where(starts, np.arange(starts.shape[1]), 0), axis=1)  # of each position's word
    sizes = np.zeros(free.shape, np.int64)
    np.add.at(sizes, (np.nonzero(free)[0], first[free]), 1)
    order = np.argsort(np.where(starts, scores, LAST), axis=1)
    sizes = np.take_along_axis(sizes, order, axis=1)
    left, picked = counts.copy(), np.zeros_like(free)
    for turn in range(int(starts.sum(axis=1).max(initial=0))):  # every row takes its next word at once
        picked[:, turn] = (sizes[:, turn] > 0) & (sizes[:, turn] <= left)
        left -= sizes[:, turn] * picked[:, turn]
        if not left.any():
            break
    chosen = np.zeros_like(free)
    np.put_along_axis(chosen, order, picked, axis=1)
    return free & np.take_along_axis(chosen, first, axis=1)


def _pick_spans(free: Marks, starts: Marks, counts: Counts, draws: Draws) -> tuple[Marks, Scores]:
    """Pick spans of words at random positions until enough is picked (the last may be cut), and their replacements."""
    word = np.cumsum(starts, axis=1)
    run = np.cumsum(~free, axis=1)  # special tokens end a span
    order = np.argsort(np.where(free, draws[:, 0], LAST), axis=1)
    words = 1 + np.searchsorted(SPANS, draws[:, 1], side="right").clip(max=len(SPANS) - 1)
    picked, fates = np.zeros_like(free), np.zeros(free.shape)
    left, turn = counts.copy(), 0
    while len(rows := np.flatnonzero(left)):  # rows with tokens left to pick have a free position left
        anchor = order[rows, turn]
        still = ~picked[rows, anchor]
        rows, anchor = rows[still], anchor[still]
        first = word[rows, anchor]
        inside = (word[rows] >= first[:, None]) & (word[rows] < (first + words[rows, turn])[:, None])
        inside &= free[rows] & (run[rows] == run[rows, anchor][:, None]) & ~picked[rows]
        inside &= np.cumsum(inside, axis=1) <= left[rows, None]
        picked[rows] |= inside
        fates[rows] = np.where(inside, draws[rows, 2, turn][:, None], fates[rows])
        left[rows] -= inside.sum(axis=1)
        turn += 1
    return picked, fates
