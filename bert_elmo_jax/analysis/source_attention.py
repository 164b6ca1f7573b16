"""The attention of a translation to its source: maps between words, and pictures of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from bert_elmo_jax.nn.layers import layer_numbers
from bert_elmo_jax.report.figures import Grid
from bert_elmo_jax.report.page import draw_figures, write_page
from bert_elmo_jax.text import Encoding

NOTE = "A row shows which words of the source the model looks at when it writes the word on the left."


@dataclass(frozen=True, eq=False, repr=False)
class SourceAttention:
    """The attention maps between the words of a translation (rows) and of its source (columns), for L layers, A heads.

    Special pieces, such as the end of a text, are words of their own. Every row sums to 1.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    maps: Float[np.ndarray, "L A U S"]

    def __repr__(self) -> str:
        layers, heads, target, source = self.maps.shape
        return f"SourceAttention({layers} layers, {heads} heads, {target} words from {source})"


def attention_to_source(model: Any, source: str, target: str | None = None) -> SourceAttention:
    """Return where a model that translates looks while it writes `target`, by default its own translation.

    Attention to a word is the sum over its pieces; attention from a word is the mean over the pieces it is written
    with.
    """
    decoder = None if model.family.decoder is None else model.family.decoder(model.config)
    if decoder is None or decoder.first is None:
        raise ValueError(f"{model.source} does not translate, so it has no attention from a target to a source")
    read = model.tokenizer.encode(source)
    source_words, source_of = _words(read, source)
    ended = True
    if target is None:
        best = model.best_translations([source])[0]
        ended = best.finished
        ids = [number for number in best.ids if number not in decoder.ends]
        target_words, target_of = _words_of_ids(model.tokenizer, ids)
    else:
        written = model.tokenizer.encode_target(target, specials=False)
        ids = written.ids.tolist()
        target_words, target_of = _words(written, target)
    places = [decoder.first, *ids]
    if ended:  # the last place writes the piece that ends the text
        target_of = np.append(target_of, len(target_words))
        target_words = (*target_words, _end_name(model.tokenizer, decoder.ends[0]))
    output = model.forward(source=read.ids[None], target=np.array([places[: len(target_of)]]))
    maps = np.asarray(output.cross_attentions, np.float64)[:, 0]
    from_words = _members(target_of, len(target_words))
    from_words = from_words / from_words.sum(1, keepdims=True)
    to_words = _members(source_of, len(source_words))
    between = np.einsum("ut,lats,ws->lauw", from_words, maps, to_words, optimize=True)
    return SourceAttention(source_words, target_words, between)


def draw_source_attention(
    attention: SourceAttention, layers: Sequence[int] | None = None, heads: Sequence[int] | None = None
) -> list[Grid]:
    """Return a picture of each layer's mean over its heads, or of single heads if `heads` are given.

    Layers are numbered from 1, as elsewhere; -1 is the last.

    >>> maps = np.full((2, 3, 1, 2), 0.5)
    >>> [grid.title for grid in draw_source_attention(SourceAttention(("a", "b"), ("가",), maps), [-1])]
    ['layer 2, mean of 3 heads']
    """
    count, total = attention.maps.shape[:2]
    chosen = layer_numbers(list(layers) if layers is not None else list(range(1, count + 1)), count)
    if 0 in chosen:
        raise ValueError("layer 0 is the embeddings, which attend to nothing: layers are numbered from 1")
    outside = [head for head in heads or () if not 0 <= head < total]
    if outside:
        raise ValueError(f"there is no head {outside[0]}: a layer has the heads 0 to {total - 1}")
    grids = []
    for layer in chosen:
        maps = attention.maps[layer - 1]
        if heads is None:
            pictures = [(f"layer {layer}, mean of {total} heads", maps.mean(0))]
        else:
            pictures = [(f"layer {layer}, head {head}", maps[head]) for head in heads]
        grids += [Grid(title, attention.target, attention.source, values, NOTE) for title, values in pictures]
    return grids


def write_source_attention(path: str | Path, model: Any, pairs: Sequence[tuple[str, str | None]]) -> Path:
    """Write an HTML page with the attention of each pair of a source and a target; None is the model's translation."""
    sections = []
    for source, target in pairs:
        attention = attention_to_source(model, source, target)
        sections.append((source, draw_figures(draw_source_attention(attention))))
    return write_page(path, "Attention from target to source", sections)


def _words(encoding: Encoding, text: str) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the words of a text, and the number of the word of each piece; a special piece is a word of its own."""
    words: list[str] = []
    numbers: list[int] = []
    before = None
    for token, word, (start, end) in zip(encoding.tokens, encoding.word_ids.tolist(), encoding.offsets.tolist()):
        if word < 0 or word != before:
            words.append(token if word < 0 else text[start:end])
        else:
            words[-1] += text[start:end]
        numbers.append(len(words) - 1)
        before = word if word >= 0 else None
    return tuple(words), np.array(numbers, np.int64)


def _words_of_ids(tokenizer: Any, ids: Sequence[int]) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the words that a model has written, and the number of the word of each piece."""
    tokens = tokenizer.target_tokens
    begins = tokenizer.word_starts if tokens is tokenizer.tokens else [token.startswith("▁") for token in tokens]
    starts = [place == 0 or bool(begins[number]) for place, number in enumerate(ids)]
    word_of = np.cumsum(np.array(starts, np.int64)) - 1
    count = int(word_of[-1]) + 1 if len(ids) else 0
    groups = ([number for number, word in zip(ids, word_of) if word == n] for n in range(count))
    return tuple(tokenizer.decode(group).strip() or tokens[group[0]] for group in groups), word_of


def _members(word_of: np.ndarray, words: int) -> np.ndarray:
    return (np.arange(words)[:, None] == word_of[None, :]).astype(np.float64)


def _end_name(tokenizer: Any, end: int) -> str:
    tokens = tokenizer.target_tokens
    return str(tokens[end]) if end < len(tokens) else str(end)
