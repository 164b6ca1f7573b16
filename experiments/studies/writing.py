"""Let a masked language model write by filling masks, and compare its texts with a language model's.

The model continues a sentence of the toy world with a second one. A masked language model fills masks, in several
orders; it is even told how many words the right sentence has. The toy world scores the sentences exactly.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bert_elmo_jax.toyworld import ToyWorld
from bert_elmo_jax.toyworld.automaton import infer
from bert_elmo_jax.toyworld.oracle import automaton, encode

Order = Literal["left to right", "confidence", "gibbs"]
ORDERS: tuple[Order, ...] = ("left to right", "confidence", "gibbs")
Logits = Callable[[Int[np.ndarray, "N T"]], Float[np.ndarray, "N T V"]]


class Story(NamedTuple):
    """The first sentence of a document of the toy world, and the sentence that follows it there."""

    opening: str
    following: str


class Scores(NamedTuple):
    """Scores of written sentences; perplexities are per word, of the sentences after their openings."""

    possible: float  # the share that the toy world can say after the opening
    true: float  # perplexity by the toy world's own probabilities, of the possible ones
    distinct: tuple[float, float]  # different pairs and triples of words, as shares of all
    length: float  # words on average


def read_stories(world: ToyWorld, count: int, first: int = 1_000_000) -> list[Story]:
    """Return the first two sentences of some documents that no corpus has.

    >>> read_stories(ToyWorld("en", topics=4, words=3), 1)[0].opening
    'One spring Hyun was at the dark harbor .'
    """
    documents = (world.document(first + n) for n in range(count))
    return [Story(*(sentence.text for sentence in document.sentences[:2])) for document in documents]


def fill_in(
    logits: Logits, rows: Int[np.ndarray, "N T"], mask: int, allowed: Sequence[int], order: Order,
    *, seed: int = 0, sweeps: int = 5,
) -> Int[np.ndarray, "N T"]:  # fmt: skip
    """Return rows whose masks are filled one by one, each with a piece drawn from the model's probabilities.

    - left to right: the first mask of each row, then the next one;
    - confidence: the mask whose likeliest piece has the largest probability;
    - gibbs: from left to right, then each place is masked and drawn again, `sweeps` times in random order (Wang and
      Cho 2019, https://arxiv.org/abs/1902.04094).

    `logits(rows)` are the model's at every place; only the pieces in `allowed` are drawn.

    >>> always = lambda rows: np.broadcast_to(np.array([0.0, 9.0, 99.0]), (*rows.shape, 3))
    >>> fill_in(always, np.array([[1, 0, 0]]), mask=0, allowed=[1, 2], order="confidence").tolist()
    [[1, 2, 2]]
    """
    if order not in ORDERS:
        raise ValueError(f"order={order!r}: it is one of {', '.join(ORDERS)}")
    draw, filled, allowed_ids = np.random.default_rng(seed), rows.copy(), np.asarray(allowed)
    gaps = rows == mask
    numbers = np.arange(len(rows))

    def redraw(places: Int[np.ndarray, " N"], live: np.ndarray) -> None:
        """Draw the piece at one place of each live row, given all others."""
        filled[numbers[live], places[live]] = mask
        chances = normalise(logits(filled)[numbers, places][:, allowed_ids])
        drawn = (chances.cumsum(axis=1) > draw.random((len(rows), 1))).argmax(axis=1)
        filled[numbers[live], places[live]] = allowed_ids[drawn[live]]

    while (open_gaps := filled == mask).any():
        places = open_gaps.argmax(axis=1)
        if order == "confidence":
            surest = normalise(logits(filled)[..., allowed_ids]).max(axis=-1)
            places = np.where(open_gaps, surest, -1.0).argmax(axis=1)
        redraw(places, open_gaps.any(axis=1))
    for _ in range(sweeps if order == "gibbs" else 0):
        ranks = np.where(gaps, draw.random(rows.shape), 2.0).argsort(axis=1)
        for n in range(int(gaps.sum(axis=1).max())):
            redraw(ranks[:, n], gaps.sum(axis=1) > n)
    return filled


def normalise(logits: Float[np.ndarray, "*N V"]) -> Float[np.ndarray, "*N V"]:
    """Return the softmax over the last axis, in float64."""
    powers = np.exp(np.asarray(logits, np.float64) - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def lay_out(encoder: Any, stories: Sequence[Story]) -> tuple[Int[np.ndarray, "N T"], list[slice]]:
    """Return a row of ids for each story, and the places of the words of its second sentence.

    Each word must be one piece, as in the recipes of the toy world.
    """
    texts, places = [], []
    for story in stories:
        first, second = story.opening.split(), story.following.split()
        text = encoder.tokenizer.encode_words([*first, *second])
        of_word = [n for n, word in enumerate(text.word_ids) if word >= 0]
        if [int(text.word_ids[n]) for n in of_word] != list(range(len(first) + len(second))):
            raise ValueError(f"{story.following!r} has words of several pieces: train with a larger vocabulary")
        texts.append(list(text.ids))
        places.append(slice(of_word[len(first)], of_word[-1] + 1))
    width = max(map(len, texts))
    rows = np.array([[*ids, *[encoder.config.pad_id] * (width - len(ids))] for ids in texts], np.int32)
    return rows, places


def write_masked(encoder: Any, stories: Sequence[Story], order: Order, *, seed: int = 0, sweeps: int = 5) -> list[str]:
    """Return second sentences from a masked language model, each with as many words as the true sentence."""
    rows, places = lay_out(encoder, stories)
    lengths = [(row != encoder.config.pad_id).sum() for row in rows]
    tokens, mask = encoder.tokenizer.tokens, encoder.tokenizer.mask_id
    allowed = [n for n, token in enumerate(tokens) if not (token.startswith("[") and token.endswith("]"))]
    hidden = rows.copy()
    for row, place in zip(hidden, places):
        row[place] = mask
    real = (np.arange(rows.shape[1])[None] < np.array(lengths)[:, None]).astype(np.int32)
    filled = fill_in(
        lambda ids: np.asarray(encoder.forward(ids, mask=real).logits), hidden, mask, allowed, order,
        seed=seed, sweeps=sweeps,
    )  # fmt: skip
    return [" ".join(tokens[i] for i in row[place]) for row, place in zip(filled, places)]


def write_next(writer: Any, stories: Sequence[Story], *, seed: int = 0, most: int = 24) -> list[str]:
    """Return second sentences from a language model, drawn piece by piece until a full stop or question mark."""
    opening = [list(writer.tokenizer.encode_words(story.opening.split()).ids) for story in stories]
    ends = [writer.tokenizer.tokens.index(sign) for sign in (".", "?")]
    last = writer.tokenizer.tokens.index("[SEP]")
    prompts = [ids[:-1] if ids[-1] == last else ids for ids in opening]
    texts = writer.generate(tokens=prompts, max_new=most, temperature=1.0, ends=[*ends, last], seed=seed)
    return [" ".join(writer.tokenizer.tokens[i] for i in samples[0].ids if i != last) for samples in texts]


def score_next(writer: Any, stories: Sequence[Story]) -> float:
    """Return a language model's perplexity per word of the second sentences."""
    rows, places = lay_out(writer, stories)
    chances = normalise(np.asarray(writer.forward(rows).logits))
    true = [
        chances[n, place.start - 1 : place.stop - 1][np.arange(place.stop - place.start), rows[n, place]]
        for n, place in enumerate(places)
    ]
    return float(np.exp(-np.log(np.concatenate(true)).mean()))


def score_masked(encoder: Any, stories: Sequence[Story], batch: int = 512) -> float:
    """Return a masked language model's pseudo-perplexity: each word of the second sentence is masked alone.

    Salazar et al. 2020, https://arxiv.org/abs/1910.14659.
    """
    rows, places = lay_out(encoder, stories)
    targets = [(n, at) for n, place in enumerate(places) for at in range(place.start, place.stop)]
    numbers, at = (np.array(part) for part in zip(*targets))
    logs = []
    for start in range(0, len(targets), batch):
        batch_targets = np.resize(np.arange(start, min(start + batch, len(targets))), batch)  # always one shape
        hidden, inside = rows[numbers[batch_targets]], np.arange(batch)
        true = hidden[inside, at[batch_targets]]
        hidden[inside, at[batch_targets]] = encoder.tokenizer.mask_id
        real = (hidden != encoder.config.pad_id).astype(np.int32)
        chances = normalise(np.asarray(encoder.forward(hidden, mask=real).logits)[inside, at[batch_targets]])
        logs.append(np.log(chances[inside, true])[: len(targets) - start])
    return float(np.exp(-np.concatenate(logs).mean()))


def score_texts(world: ToyWorld, stories: Sequence[Story]) -> Scores:
    """Score second sentences by the toy world's own probabilities, and count how many word groups differ.

    >>> world = ToyWorld("en", topics=4, words=3)
    >>> [story] = read_stories(world, 1)
    >>> score_texts(world, [story, story._replace(following="the the .")]).possible
    0.5
    """
    logs = log_likelihoods(world, stories)
    possible = np.isfinite(logs)
    lengths = np.array([len(story.following.split()) for story in stories])
    true = np.exp(-logs[possible].sum() / lengths[possible].sum()) if possible.any() else np.inf
    texts = [story.following for story in stories]
    return Scores(float(possible.mean()), float(true), (distinct(texts, 2), distinct(texts, 3)), float(lengths.mean()))


def log_likelihoods(world: ToyWorld, stories: Sequence[Story]) -> Float[np.ndarray, " N"]:
    """Return log P(second sentence | opening) of each story, -inf for what the toy world never says."""
    words, chain = set(world.network.words), automaton(world, "passage")

    def infer_all(texts: Sequence[str]) -> Float[np.ndarray, " N"]:
        return infer(chain, [encode(world, text) for text in texts]).log_likelihood

    logs = np.full(len(stories), -np.inf)
    able = [n for n, s in enumerate(stories) if s.following and set(s.following.split()) <= words]
    if able:
        openings = infer_all([stories[n].opening for n in able])
        logs[able] = infer_all([f"{stories[n].opening} {stories[n].following}" for n in able]) - openings
    return logs


def distinct(texts: Sequence[str], size: int) -> float:
    """Return the share of different groups of `size` words among all such groups: Li et al. 2016's distinct-n.

    >>> distinct(["a b a b", "a b"], 2)
    0.5
    """
    groups = [tuple(words[n : n + size]) for words in map(str.split, texts) for n in range(len(words) - size + 1)]
    return len(set(groups)) / len(groups) if groups else 0.0


class Row(NamedTuple):
    """A way of writing, its sentences, their scores, and their perplexity under both models."""

    way: str
    stories: list[Story]
    scores: Scores
    by_masked: float
    by_next: float


def compare_writing(masked: Any, writer: Any, world: ToyWorld, *, count: int = 200, seed: int = 0) -> list[Row]:
    """Compare the true sentences, a language model's, and a masked language model's in each order.

    The perplexities under the two models leave out sentences with other pieces than the words of the toy world.
    """
    stories = read_stories(world, count)
    ways: dict[str, list[str]] = {"the toy world": [story.following for story in stories]}
    ways["language model"] = write_next(writer, stories, seed=seed)
    for order in ORDERS:
        ways[f"masks, {order}"] = write_masked(masked, stories, order, seed=seed)
    rows = []
    for way, texts in ways.items():
        written = [story._replace(following=text) for story, text in zip(stories, texts)]
        readable = [s for s in written if s.following and set(s.following.split()) <= set(world.network.words)]
        by_masked = score_masked(masked, readable) if readable else math.inf
        by_next = score_next(writer, readable) if readable else math.inf
        rows.append(Row(way, written, score_texts(world, written), by_masked, by_next))
    return rows
