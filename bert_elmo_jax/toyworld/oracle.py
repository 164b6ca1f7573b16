"""The ideal reader: exact probabilities of words, senses, topics and next sentences given the text.

A *text* consists of whitespace-separated words and one or more sentences: punctuation is a word, line breaks are
spaces, and `[MASK]` hides a word. There are three readings:

- `sentence`: a single sentence, drawn uniformly from all sentences (for language models without context);
- `document`: a whole document from its first word to its last;
- `passage`: consecutive sentences from anywhere in a document (for masked language models).
"""

import functools
from collections.abc import Iterator, Sequence, Sized
from dataclasses import replace
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from bert_elmo_jax.toyworld.automaton import MASKED, Automaton, Lattice, infer, reverse, sums
from bert_elmo_jax.toyworld.lexicon import HEROES
from bert_elmo_jax.toyworld.world import ToyWorld

MASK = "[MASK]"
Reading = Literal["sentence", "document", "passage"]
Direction = Literal["forward", "backward"]
Row = str | tuple[str, str]
_BATCH_WORDS = 20_000


@functools.lru_cache(maxsize=16)
def automaton(world: ToyWorld, reading: Reading, direction: Direction = "forward") -> Automaton:
    """Return the automaton of a reading."""
    network = world.network
    document, finals = network.document, network.finals
    if reading == "sentence":
        source = np.repeat(np.arange(len(finals)), np.diff(document.arc_offsets))
        weights = np.where(finals[source], 0.0, document.arc_weights)
        document = replace(document, start=network.sentence_start, arc_weights=weights, end=finals.astype(np.float64))
    elif reading == "passage":
        document = replace(document, start=network.sentence_start, end=finals.astype(np.float64))
    if direction == "forward":
        return document
    if reading == "passage":
        raise ValueError('direction="backward" needs reading="sentence" or "document": a passage may begin anywhere')
    return reverse(document, network.visits / (world.sentences if reading == "sentence" else 1))


@functools.lru_cache(maxsize=4)
def _word_ids(world: ToyWorld) -> dict[str, int]:
    return {MASK: MASKED, **{word: number for number, word in enumerate(world.network.words)}}


def encode(world: ToyWorld, text: str, masks: bool = True) -> Int[np.ndarray, "T"]:
    """Return the word ids of a text, `MASKED` for `[MASK]`."""
    ids = _word_ids(world)
    words = text.split()
    if not masks and MASK in words:
        raise ValueError(f"{text!r} contains {MASK}: give a text without masks here")
    unknown = sorted({word for word in words if word not in ids})
    if unknown:
        raise ValueError(
            f"not words of this toy world ({world.language}, {len(ids) - 1} words): {', '.join(unknown[:5])}; "
            f"give its own sentences, with a space before punctuation, and {MASK} for a hidden word"
        )
    if not words:
        raise ValueError("an empty text: give at least one sentence of the toy world")
    return np.array([ids[word] for word in words], dtype=np.int64)


def infer_texts(chain: Automaton, texts: Sequence[str], ids: Sequence[Int[np.ndarray, "_"]]) -> Lattice:
    """Run inference on texts, and raise on the first word that is impossible."""
    lattice = infer(chain, ids)
    for row in np.flatnonzero(np.isneginf(lattice.log_likelihood)).tolist():
        word = np.flatnonzero(np.isneginf(lattice.forward[row]))
        where = f"{texts[row].split()[word[0]]!r} (word {word[0] + 1})" if len(word) else "the end"
        raise ValueError(f"not a text of this toy world: {where} cannot occur there in {texts[row]!r}")
    return lattice


def batches(items: Sequence[Sized]) -> Iterator[list[int]]:
    """Yield the indices of the items in batches of bounded total length, similar lengths together."""
    batch: list[int] = []
    total = 0
    for index in sorted(range(len(items)), key=lambda i: len(items[i])):
        batch.append(index)
        total += len(items[index])
        if total >= _BATCH_WORDS:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


def word_log_probabilities(
    world: ToyWorld, texts: Sequence[str], reading: Reading = "sentence", direction: Direction = "forward"
) -> list[Float[np.ndarray, "_"]]:
    """Return the true log-probability of every target of a language model, in the order of the text.

    Forward: each word given the words before it, then the end of the text (`</S>`, certain after the full stop of a
    sentence). Backward: the beginning of the text (`<S>`), then each word given the words after it. The sum is the
    log-probability of the text, the same in both directions.

    >>> [p] = word_log_probabilities(ToyWorld("en"), ["The bankers close the company ."])
    >>> np.exp(p).round(2)
    array([0.35, 0.01, 0.02, 1.  , 0.09, 0.5 , 1.  ])
    """
    chain = automaton(world, reading, direction)
    logs: list[np.ndarray] = [np.zeros(0)] * len(texts)
    step = 1 if direction == "forward" else -1
    for batch, ids, lattice in _lattices(world, chain, texts, masks=False, step=step):
        for row, i in enumerate(batch):
            logs[i] = np.append(lattice.forward[row, : len(ids[row])], lattice.ending[row])[::step]
    return logs


def _lattices(
    world: ToyWorld,
    chain: Automaton,
    texts: Sequence[str],
    *,
    masks: bool = True,
    impossible: bool = False,
    step: int = 1,
) -> Iterator[tuple[list[int], list[Int[np.ndarray, "_"]], Lattice]]:
    """Yield (indices of the texts, their word ids, their lattice) per batch; raise on impossible texts by default."""
    encoded = [encode(world, text, masks)[::step] for text in texts]
    for batch in batches(encoded):
        ids = [encoded[i] for i in batch]
        yield batch, ids, infer(chain, ids) if impossible else infer_texts(chain, [texts[i] for i in batch], ids)


def mask_words(text: str, positions: Sequence[int]) -> str:
    """Return the text with the words at these positions masked.

    >>> mask_words("그물은 하얗다 .", [0])
    '[MASK] 하얗다 .'
    """
    words = text.split()
    outside = [position for position in positions if not 0 <= position < len(words)]
    if outside:
        raise ValueError(f"cannot mask word {outside[0]} of a text of {len(words)} words; positions start at 0")
    for position in positions:
        words[position] = MASK
    return " ".join(words)


def masked_posteriors(world: ToyWorld, rows: Sequence[Row]) -> list[Float[np.ndarray, "M V"]]:
    """Return P(word | all unmasked words) of each masked word, in order, over `world.network.words`.

    A row is a passage, or a pair of passages for next-sentence prediction: the second follows the first or comes from
    another document, with equal prior probability. Every masked word has its own marginal, the others summed out.

    >>> world = ToyWorld("ko")
    >>> [posterior] = masked_posteriors(world, ["할머니께서는 항구에서 그물을 [MASK] ."])
    >>> world.network.words[posterior[0].argmax()]
    '당기셨다'
    """
    passage = automaton(world, "passage")
    posteriors: list[np.ndarray] = [np.zeros((0, passage.vocabulary))] * len(rows)
    singles = {i: row for i, row in enumerate(rows) if isinstance(row, str)}
    for i, posterior in zip(singles, _word_posteriors(world, passage, list(singles.values()))):
        posteriors[i] = posterior
    pairs = {i: row for i, row in enumerate(rows) if not isinstance(row, str)}
    together = _word_posteriors(world, passage, [" ".join(pair) for pair in pairs.values()], impossible=True)
    first = _word_posteriors(world, _unfinished(world), [a for a, _ in pairs.values()])
    second = _word_posteriors(world, passage, [b for _, b in pairs.values()])
    following = next_sentence_probabilities(world, list(pairs.values()))
    for i, p, joint, a, b in zip(pairs, following, together, first, second, strict=True):
        posteriors[i] = p * joint + (1 - p) * np.concatenate([a, b])
    return posteriors


def _word_posteriors(
    world: ToyWorld, chain: Automaton, texts: Sequence[str], impossible: bool = False
) -> list[Float[np.ndarray, "_ V"]]:
    """Return the marginals of masked words; zeros for an `impossible` text if those are allowed."""
    posteriors: list[np.ndarray] = [np.zeros((0, chain.vocabulary))] * len(texts)
    for batch, ids, lattice in _lattices(world, chain, texts, impossible=impossible):
        counts = [int((row == MASKED).sum()) for row in ids]
        number = np.full(lattice.forward.shape, -1)
        for b, row in enumerate(ids):
            number[b, np.flatnonzero(row == MASKED)] = sum(counts[:b]) + np.arange(counts[b])
        mixed = mix_emissions(chain, lattice, number[lattice.sequences, lattice.positions], sum(counts))
        for i, part in zip(batch, np.split(mixed, np.cumsum(counts)[:-1])):
            posteriors[i] = part
    return posteriors


def mix_emissions(
    chain: Automaton, lattice: Lattice, owner: Int[np.ndarray, "N"], count: int
) -> Float[np.ndarray, "M V"]:
    """Return the emissions of the lattice's states, weighted by posterior and summed by owner (-1: no owner)."""
    chosen = np.flatnonzero(owner >= 0)
    rows = len(chain.emission_offsets) - 1
    # Many states share an emission row: add up their weights first.
    cells, inverse = np.unique(owner[chosen] * rows + chain.rows[lattice.states[chosen]], return_inverse=True)
    weights = sums(inverse, lattice.posteriors[chosen], len(cells))
    owners, emission_rows = np.divmod(cells, rows)
    starts = chain.emission_offsets[emission_rows]
    sizes = chain.emission_offsets[emission_rows + 1] - starts
    index = np.arange(sizes.sum()) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
    place = np.repeat(owners, sizes) * chain.vocabulary + chain.emission_words[index]
    values = np.repeat(weights, sizes) * chain.emission_weights[index]
    return sums(place, values, count * chain.vocabulary).reshape(count, chain.vocabulary)


def fill_masks(world: ToyWorld, text: str, top: int = 5) -> list[list[tuple[str, float]]]:
    """Return the `top` words for each `[MASK]` of a passage with their probabilities, best first.

    >>> [guesses] = fill_masks(ToyWorld("en"), "The nets near the old tree [MASK] strange .", top=2)
    >>> [(word, round(probability, 2)) for word, probability in guesses]
    [('are', 0.5), ('were', 0.5)]
    """
    [posterior] = masked_posteriors(world, [text])
    words = world.network.words
    return [[(words[i], float(row[i])) for i in np.argsort(-row, kind="stable")[:top]] for row in posterior]


def next_sentence_probabilities(world: ToyWorld, pairs: Sequence[tuple[str, str]]) -> Float[np.ndarray, "N"]:
    """Return P(b follows a | both), where b follows a in its document or comes from another, with equal prior.

    a is never the end of its document; b has one or more sentences. Words may be masked.

    >>> a = "선원은 그물을 당겼다 ."
    >>> pairs = [(a, "미나는 항구에서 쉬었다 ."), (a, "의사는 눈을 가렸다 .")]
    >>> next_sentence_probabilities(ToyWorld("ko"), pairs).round(2)
    array([0.95, 0.  ])
    """
    if not pairs:
        return np.zeros(0)
    passage, stop = automaton(world, "passage"), world.network.stop
    together = _log_likelihoods(world, passage, [" ".join(pair) for pair in pairs], impossible=True)
    first = _log_likelihoods(world, _unfinished(world), [a for a, _ in pairs])
    apart = first + _log_likelihoods(world, passage, [b for _, b in pairs])
    # Passages of several sentences fit fewer documents, so the position of b has another prior in the two cases.
    # Only visible full stops tell them apart: masks can leave this open.
    several = np.array([any(word in (".", "?") for word in b.split()[:-1]) for _, b in pairs])
    with np.errstate(divide="ignore"):
        correction = np.where(several, -np.log(1 - stop) - np.log1p(stop), 0.0)
    possible = ~np.isneginf(together)
    odds = np.where(possible, together, 0.0) - apart + np.where(possible, correction, 0.0)
    return np.where(possible, np.exp(-np.logaddexp(0.0, -odds)), 0.0)


def _unfinished(world: ToyWorld) -> Automaton:
    """Return the automaton of passages that do not end their document; the opening sentence never does."""
    network = world.network
    opening = np.tile(network.part == 0, len(network.finals) // len(network.part))
    continues = np.where(opening, 1.0, 1 - network.stop)
    return replace(automaton(world, "passage"), end=np.where(network.finals, continues, 0.0))


def _log_likelihoods(
    world: ToyWorld, chain: Automaton, texts: Sequence[str], impossible: bool = False
) -> Float[np.ndarray, "N"]:
    logs = np.zeros(len(texts))
    for batch, _, lattice in _lattices(world, chain, texts, impossible=impossible):
        logs[batch] = lattice.log_likelihood
    return logs


def sense_posteriors(world: ToyWorld, texts: Sequence[str]) -> list[Float[np.ndarray, "T S"]]:
    """Return P(sense | the whole passage) of every word, over `world.network.senses`; the first sense is `O`.

    >>> world = ToyWorld("en")
    >>> [senses] = sense_posteriors(world, ["The bankers close the bank ."])
    >>> world.network.senses[senses[4].argmax()]
    'bank.money'
    """
    network = world.network
    chain = automaton(world, "passage")
    keys = chain.emission_keys
    posteriors: list[np.ndarray] = [np.zeros((0, len(network.senses)))] * len(texts)
    for batch, ids, lattice in _lattices(world, chain, texts, masks=False):
        padded = np.zeros_like(lattice.forward, dtype=np.int64)
        for row, words in enumerate(ids):
            padded[row, : len(words)] = words
        cell = chain.rows[lattice.states] * chain.vocabulary + padded[lattice.sequences, lattice.positions]
        tags = network.tags[np.searchsorted(keys, cell)]
        place = (lattice.sequences * padded.shape[1] + lattice.positions) * len(network.senses) + tags
        flat = sums(place, lattice.posteriors, padded.size * len(network.senses))
        shares = flat.reshape(len(batch), -1, len(network.senses))
        for row, i in enumerate(batch):
            posteriors[i] = shares[row, : len(ids[row])]
    return posteriors


def sense_priors(world: ToyWorld, word: str) -> dict[str, float]:
    """Return P(sense) of a word without context.

    >>> {sense: round(p, 2) for sense, p in sense_priors(ToyWorld("en"), "bank").items()}
    {'bank.money': 0.49, 'bank.riverside': 0.51}
    """
    network = world.network
    [word_id] = encode(world, word)
    rows = np.bincount(network.document.rows, network.visits, minlength=len(network.document.emission_offsets) - 1)
    row_of = np.repeat(np.arange(len(rows)), np.diff(network.document.emission_offsets))
    places = np.flatnonzero(network.document.emission_words == word_id)
    weights = np.bincount(network.tags[places], rows[row_of[places]] * network.document.emission_weights[places])
    return {network.senses[tag]: float(weights[tag] / weights.sum()) for tag in np.flatnonzero(weights)}


def topic_posteriors(world: ToyWorld, texts: Sequence[str]) -> Float[np.ndarray, "N K"]:
    """Return P(topic | the whole passage), over `world.topic_names`.

    >>> world = ToyWorld("ko")
    >>> world.topic_names[topic_posteriors(world, ["선원은 그물을 당긴다 ."])[0].argmax()]
    'sea'
    """
    network = world.network
    posteriors = np.zeros((len(texts), network.topics))
    for batch, ids, lattice in _lattices(world, automaton(world, "passage"), texts):
        last = lattice.positions == np.array([len(words) - 1 for words in ids])[lattice.sequences]
        topics = lattice.states[last] // (len(network.part) * len(HEROES))
        place = lattice.sequences[last] * network.topics + topics
        flat = sums(place, lattice.posteriors[last], len(batch) * network.topics)
        posteriors[batch] = flat.reshape(len(batch), -1)
    return posteriors
