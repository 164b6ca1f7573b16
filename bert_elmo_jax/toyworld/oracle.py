"""What an ideal reader knows: exact probabilities of words, senses, topics and next sentences, from text alone.

Texts and the ways of reading them are defined in reading.py.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float, Int

from bert_elmo_jax.toyworld.automaton import MASKED, Automaton, Lattice, infer, sums
from bert_elmo_jax.toyworld.lexicon import HEROES
from bert_elmo_jax.toyworld.reading import MASK, Direction, Reading, automaton, batches, encode, infer_texts
from bert_elmo_jax.toyworld.world import ToyWorld

__all__ = [
    "Row",
    "fill_masks",
    "mask_words",
    "masked_posteriors",
    "next_sentence_probabilities",
    "sense_posteriors",
    "sense_priors",
    "topic_posteriors",
    "word_log_probabilities",
]

Row = str | tuple[str, str]


def word_log_probabilities(
    world: ToyWorld, texts: Sequence[str], reading: Reading = "sentence", direction: Direction = "forward"
) -> list[Float[np.ndarray, "_"]]:
    """The true log-probability of every target of a language model, in the order of the text.

    Forward: each word given the words before it, then that the text ends (`</S>`: certain after the full stop of a
    sentence). Backward: that the text begins (`<S>`), then each word given the words after it. The sum is the
    probability of the text, the same in both directions.

    >>> [p] = word_log_probabilities(ToyWorld("en"), ["The bankers close the company ."])
    >>> np.exp(p).round(2)
    array([0.35, 0.01, 0.02, 1.  , 0.09, 0.5 , 1.  ])
    """
    chain = automaton(world, reading, direction)
    found: list[np.ndarray] = [np.zeros(0)] * len(texts)
    encoded = [encode(world, text, masks=False) for text in texts]
    step = 1 if direction == "forward" else -1
    for batch in batches(encoded, len):
        lattice = infer_texts(chain, [texts[i] for i in batch], [encoded[i][::step] for i in batch])
        for row, i in enumerate(batch):
            found[i] = np.append(lattice.forward[row, : len(encoded[i])], lattice.ending[row])[::step]
    return found


def mask_words(text: str, positions: Sequence[int]) -> str:
    """The text with the words at these positions hidden.

    >>> mask_words("그물은 하얗다 .", [0])
    '[MASK] 하얗다 .'
    """
    words = text.split()
    outside = [position for position in positions if not 0 <= position < len(words)]
    if outside:
        raise ValueError(f"cannot mask word {outside[0]} of a text of {len(words)} words; positions count from 0")
    for position in positions:
        words[position] = MASK
    return " ".join(words)


def masked_posteriors(world: ToyWorld, rows: Sequence[Row]) -> list[Float[np.ndarray, "M V"]]:
    """P(word | every unmasked word on both sides) of each masked word, in order, over `world.network.words`.

    A row is a passage, or a pair of passages as next-sentence prediction reads it: the second follows the first or is
    from elsewhere, each as likely beforehand. Every masked word has its own marginal, the others summed out.

    >>> world = ToyWorld("ko")
    >>> [posterior] = masked_posteriors(world, ["할머니께서는 항구에서 그물을 [MASK] ."])
    >>> world.network.words[posterior[0].argmax()]
    '당기셨다'
    """
    passage = automaton(world, "passage")
    found: list[np.ndarray] = [np.zeros((0, passage.vocabulary))] * len(rows)
    singles = {i: row for i, row in enumerate(rows) if isinstance(row, str)}
    for i, posterior in zip(singles, _word_posteriors(world, passage, list(singles.values()))):
        found[i] = posterior
    pairs = {i: row for i, row in enumerate(rows) if not isinstance(row, str)}
    together = _word_posteriors(world, passage, [" ".join(pair) for pair in pairs.values()], impossible=True)
    first = _word_posteriors(world, _unfinished(world), [a for a, _ in pairs.values()])
    second = _word_posteriors(world, passage, [b for _, b in pairs.values()])
    following = next_sentence_probabilities(world, list(pairs.values()))
    for i, p, joint, a, b in zip(pairs, following, together, first, second, strict=True):
        found[i] = p * joint + (1 - p) * np.concatenate([a, b])
    return found


def _word_posteriors(
    world: ToyWorld, chain: Automaton, texts: Sequence[str], impossible: bool = False
) -> list[Float[np.ndarray, "_ V"]]:
    """The marginals of masked words; zeros for an impossible text where that is no error."""
    encoded = [encode(world, text) for text in texts]
    found: list[np.ndarray] = [np.zeros((0, chain.vocabulary))] * len(texts)
    for batch in batches(encoded, len):
        ids = [encoded[i] for i in batch]
        lattice = infer(chain, ids) if impossible else infer_texts(chain, [texts[i] for i in batch], ids)
        counts = [int((row == MASKED).sum()) for row in ids]
        number = np.full(lattice.forward.shape, -1)
        for b, row in enumerate(ids):
            number[b, np.flatnonzero(row == MASKED)] = sum(counts[:b]) + np.arange(counts[b])
        mixed = _mix_emissions(chain, lattice, number[lattice.sequences, lattice.positions], sum(counts))
        for i, part in zip(batch, np.split(mixed, np.cumsum(counts)[:-1])):
            found[i] = part
    return found


def _mix_emissions(
    chain: Automaton, lattice: Lattice, owner: Int[np.ndarray, "N"], count: int
) -> Float[np.ndarray, "M V"]:
    """The emissions of the lattice's states, weighted by their posteriors and summed by owner (-1 is nobody)."""
    chosen = np.flatnonzero(owner >= 0)
    rows = len(chain.emission_offsets) - 1
    # Many states share a row: add up their weights first.
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
    """The likeliest words for each `[MASK]` of a passage, best first, with their probabilities.

    >>> [guesses] = fill_masks(ToyWorld("en"), "The nets near the old tree [MASK] strange .", top=2)
    >>> [(word, round(probability, 2)) for word, probability in guesses]
    [('are', 0.5), ('were', 0.5)]
    """
    [posterior] = masked_posteriors(world, [text])
    words = world.network.words
    return [[(words[i], float(row[i])) for i in np.argsort(-row, kind="stable")[:top]] for row in posterior]


def next_sentence_probabilities(world: ToyWorld, pairs: Sequence[tuple[str, str]]) -> Float[np.ndarray, "N"]:
    """P(b follows a | both) where b either follows a in its document or is drawn from another, each as likely.

    a is never the end of its document, b one sentence or several. Words may be masked.

    >>> a = "선원은 그물을 당겼다 ."
    >>> pairs = [(a, "미나는 항구에서 쉬었다 ."), (a, "의사는 눈을 가렸다 .")]
    >>> next_sentence_probabilities(ToyWorld("ko"), pairs).round(2)
    array([0.95, 0.  ])
    """
    if not pairs:
        return np.zeros(0)
    passage, stop = automaton(world, "passage"), world.network.stop
    together = _log_likelihoods(passage, [" ".join(pair) for pair in pairs], world, impossible=True)
    apart = _log_likelihoods(_unfinished(world), [a for a, _ in pairs], world) + _log_likelihoods(
        passage, [b for _, b in pairs], world
    )
    # Passages of several sentences fit fewer documents: where b starts is not the same question in the two cases.
    several = np.array([_several(b) for _, b in pairs])
    with np.errstate(divide="ignore"):
        fits = np.where(several, -np.log(1 - stop) - np.log1p(stop), 0.0)
    possible = ~np.isneginf(together)
    odds = np.where(possible, together, 0.0) - apart + np.where(possible, fits, 0.0)
    return np.where(possible, np.exp(-np.logaddexp(0.0, -odds)), 0.0)


def _unfinished(world: ToyWorld) -> Automaton:
    """Passages after which their document goes on: certain after its opening sentence."""
    network = world.network
    opening = np.tile(network.part == 0, len(network.finals) // len(network.part))
    goes_on = np.where(opening, 1.0, 1 - network.stop)
    return replace(automaton(world, "passage"), end=np.where(network.finals, goes_on, 0.0))


def _several(text: str) -> bool:
    """Whether a text holds several sentences, by its visible full stops: the one case that masks can leave open."""
    return any(word in (".", "?") for word in text.split()[:-1])


def _log_likelihoods(
    chain: Automaton, texts: Sequence[str], world: ToyWorld, impossible: bool = False
) -> Float[np.ndarray, "N"]:
    encoded = [encode(world, text) for text in texts]
    found = np.zeros(len(texts))
    for batch in batches(encoded, len):
        ids = [encoded[i] for i in batch]
        lattice = infer(chain, ids) if impossible else infer_texts(chain, [texts[i] for i in batch], ids)
        found[batch] = lattice.log_likelihood
    return found


def sense_posteriors(world: ToyWorld, texts: Sequence[str]) -> list[Float[np.ndarray, "T S"]]:
    """P(sense | the whole passage) of every word, over `world.network.senses`, of which the first is `O`.

    >>> world = ToyWorld("en")
    >>> [senses] = sense_posteriors(world, ["The bankers close the bank ."])
    >>> world.network.senses[senses[4].argmax()]
    'bank.money'
    """
    network = world.network
    chain = automaton(world, "passage")
    keys = chain.emission_keys
    encoded = [encode(world, text, masks=False) for text in texts]
    found: list[np.ndarray] = [np.zeros((0, len(network.senses)))] * len(texts)
    for batch in batches(encoded, len):
        ids = [encoded[i] for i in batch]
        lattice = infer_texts(chain, [texts[i] for i in batch], ids)
        padded = np.zeros_like(lattice.forward, dtype=np.int64)
        for row, words in enumerate(ids):
            padded[row, : len(words)] = words
        cell = chain.rows[lattice.states] * chain.vocabulary + padded[lattice.sequences, lattice.positions]
        tags = network.tags[np.searchsorted(keys, cell)]
        place = (lattice.sequences * padded.shape[1] + lattice.positions) * len(network.senses) + tags
        flat = sums(place, lattice.posteriors, padded.size * len(network.senses))
        shares = flat.reshape(len(batch), -1, len(network.senses))
        for row, i in enumerate(batch):
            found[i] = shares[row, : len(encoded[i])]
    return found


def sense_priors(world: ToyWorld, word: str) -> dict[str, float]:
    """P(sense) of a word seen by itself.

    >>> {sense: round(p, 2) for sense, p in sense_priors(ToyWorld("en"), "bank").items()}
    {'bank.money': 0.49, 'bank.riverside': 0.51}
    """
    network = world.network
    [word_id] = encode(world, word)
    rows = np.bincount(network.document.rows, network.visits, minlength=len(network.document.emission_offsets) - 1)
    row_of = np.repeat(np.arange(len(rows)), np.diff(network.document.emission_offsets))
    here = np.flatnonzero(network.document.emission_words == word_id)
    weights = np.bincount(network.tags[here], rows[row_of[here]] * network.document.emission_weights[here])
    return {network.senses[tag]: float(weights[tag] / weights.sum()) for tag in np.flatnonzero(weights)}


def topic_posteriors(world: ToyWorld, texts: Sequence[str]) -> Float[np.ndarray, "N K"]:
    """P(topic | the whole passage), over `world.topic_names`.

    >>> world = ToyWorld("ko")
    >>> world.topic_names[topic_posteriors(world, ["선원은 그물을 당긴다 ."])[0].argmax()]
    'sea'
    """
    network = world.network
    chain = automaton(world, "passage")
    encoded = [encode(world, text) for text in texts]
    found = np.zeros((len(texts), network.topics))
    for batch in batches(encoded, len):
        ids = [encoded[i] for i in batch]
        lattice = infer_texts(chain, [texts[i] for i in batch], ids)
        last = lattice.positions == np.array([len(words) - 1 for words in ids])[lattice.sequences]
        topics = lattice.states[last] // (len(network.part) * len(HEROES))
        place = lattice.sequences[last] * network.topics + topics
        flat = sums(place, lattice.posteriors[last], len(batch) * network.topics)
        found[batch] = flat.reshape(len(batch), -1)
    return found
