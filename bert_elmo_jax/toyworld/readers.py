"""Readers that see a part of a sentence, and the best score that each of them can reach.

A reader labels one word of a sentence. It sees `left` words before it and `right` words after it, and the border of
the sentence if that lies within them; `None` means all words. It knows the grammar, so it guesses the label with the
largest probability given these words. This probability is exact: forward-backward over the states of the grammar; for
words from amid a sentence it starts with the distribution of a random word's state. `exact_ceiling` sums over all views
instead of a sample.

`separate` is a reader of two halves, as ELMo is. One half reads up to the word, the other from the end back to the
word, and each reports only the probabilities of the labels. They are combined as if the halves were independent given
word and label: P(label | left) · P(label | right) / P(label | word). If each half reported the probabilities of the
grammar's *states* instead, nothing would be lost: given the state, the two sides of a Markov chain are independent. So
this reader misses only what the label alone does not tell, and two summaries that keep enough miss nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bert_elmo_jax.toyworld.automaton import MASKED, Automaton, infer
from bert_elmo_jax.toyworld.lexicon import HEROES
from bert_elmo_jax.toyworld.network import LANGUAGES, topic_weights
from bert_elmo_jax.toyworld.oracle import automaton, batches, encode, mix_emissions, topic_posteriors
from bert_elmo_jax.toyworld.scores import Best, score_guesses
from bert_elmo_jax.toyworld.shapes import Token
from bert_elmo_jax.toyworld.world import Document, Sentence, ToyWorld

LabelTask = Literal["senses", "topics", "speech", "entities", "words"]
TASKS: tuple[LabelTask, ...] = ("senses", "topics", "speech", "entities", "words")
_PARTS = {"people": "noun", "verbs": "verb", "acts": "verb", "beings": "verb", "sayings": "verb"}


class View(NamedTuple):
    """The number of words that a reader sees on either side of a word; None: all."""

    left: int | None
    right: int | None


# The views of readers by name; `separate` combines the views "left" and "right".
VIEWS: Mapping[str, View] = {
    "word": View(0, 0),
    "window 1": View(1, 1),
    "window 2": View(2, 2),
    "left": View(None, 0),
    "right": View(0, None),
    "all": View(None, None),
}
READERS = ("word", "window 1", "window 2", "left", "right", "separate", "all")


class Place(NamedTuple):
    """A word of a sentence, by its number, and its label."""

    sentence: Sentence
    number: int
    label: str


def name_part_of_speech(token: Token) -> str:
    """Return the part of speech of a place of the grammar; fixed words are `function` words.

    >>> from bert_elmo_jax.toyworld.shapes import Slot
    >>> name_part_of_speech("the"), name_part_of_speech(Slot("verb", "verbs0", "past"))
    ('function', 'verb')
    """
    if isinstance(token, str) or token.list == "prepositions":
        return "function"
    name = token.list.rstrip("01")
    if name == "heroes":
        return "pronoun" if token.form == "pronoun" else "name"
    if name.endswith("looks") or name == "comparisons":
        return "adjective"
    return "adverb" if name.endswith("adverbs") else _PARTS.get(name, "noun")


def name_entity(token: Token) -> str:
    """Return `person` or `place` for a place of the grammar that is one, otherwise `O`.

    >>> from bert_elmo_jax.toyworld.shapes import Slot
    >>> name_entity(Slot("hero", "heroes", "name")), name_entity(Slot("thing", "things0", "plain"))
    ('person', 'O')
    """
    entities = {"heroes": "person", "people": "person", "places": "place", "landmarks": "place"}
    return "O" if isinstance(token, str) else entities.get(token.list, "O")


_NODE_LABELS = {"speech": name_part_of_speech, "entities": name_entity}


def label_names(world: ToyWorld, task: LabelTask) -> tuple[str, ...]:
    """Return the labels of a task.

    >>> label_names(ToyWorld("en"), "entities")
    ('O', 'person', 'place')
    """
    network = world.network
    if task in _NODE_LABELS:
        return tuple(sorted({_NODE_LABELS[task](token) for token in network.tokens}))
    return {"senses": network.senses, "topics": world.topic_names, "words": network.words}[task]


def find_label_ids(
    world: ToyWorld, task: LabelTask, states: Int[np.ndarray, "N"], emissions: Int[np.ndarray, "N"]
) -> Int[np.ndarray, "N"]:
    """Return the labels of words, each given by its state and the number of its emission.

    >>> world = ToyWorld("en", topics=4, words=4)
    >>> [first, last] = find_label_ids(world, "topics", np.array([0, len(world.network.visits) - 1]), np.array([0, 0]))
    >>> world.topic_names[first], world.topic_names[last]
    ('river', 'sea')
    """
    network = world.network
    if task == "senses":
        return network.tags[emissions]
    if task == "words":
        return network.document.emission_words[emissions]
    if task == "topics":
        return states // (len(network.part) * len(HEROES))
    names = label_names(world, task)
    nodes = np.array([names.index(_NODE_LABELS[task](token)) for token in network.tokens])
    return nodes[states % len(network.part)]


def word_label_table(world: ToyWorld, task: LabelTask) -> Float[np.ndarray, "V L"]:
    """Return P(word, label) of a random word of a random sentence, by enumeration of the grammar.

    >>> round(float(word_label_table(ToyWorld("ko"), "speech").sum()), 6)
    1.0
    """
    network, chain = world.network, world.network.document
    sizes = np.diff(chain.emission_offsets)[chain.rows]
    states = np.repeat(np.arange(len(sizes)), sizes)
    begins = np.repeat(np.cumsum(sizes) - sizes, sizes)
    emissions = np.arange(len(states)) - begins + chain.emission_offsets[chain.rows[states]]
    table = np.zeros((chain.vocabulary, len(label_names(world, task))))
    weights = network.visits[states] * chain.emission_weights[emissions]
    np.add.at(table, (chain.emission_words[emissions], find_label_ids(world, task, states, emissions)), weights)
    return table / network.visits.sum()


def open_words(world: ToyWorld, task: LabelTask) -> Bool[np.ndarray, "V"]:
    """Return which words can have several labels; only these are scored, as no reader errs on the others.

    The task `words` hides the word, so it scores all.

    >>> world = ToyWorld("en", topics=4, words=4)
    >>> [word for word, is_open in zip(world.network.words, open_words(world, "senses")) if is_open][:4]
    ['bank', 'banks', 'crane', 'cranes']
    """
    table = word_label_table(world, task)
    return np.ones(len(table), bool) if task == "words" else (table > 0).sum(1) > 1


def list_places(world: ToyWorld, task: LabelTask, documents: Iterable[Document]) -> list[Place]:
    """Return the words of some documents that can have several labels, each with its sentence.

    >>> world = ToyWorld("en", topics=4, words=4)
    >>> places = list_places(world, "senses", [world.document(i) for i in range(40)])
    >>> sorted({place.label for place in places if place.sentence.words[place.number] == "bank"})
    ['bank.money', 'bank.riverside']
    """
    is_open = dict(zip(world.network.words, open_words(world, task).tolist()))
    places = []
    for document in documents:
        for sentence in document.sentences:
            labels = _true_labels(world, task, document, sentence)
            places += [Place(sentence, n, labels[n]) for n, word in enumerate(sentence.words) if is_open[word]]
    return places


def _true_labels(world: ToyWorld, task: LabelTask, document: Document, sentence: Sentence) -> Sequence[str]:
    if task in _NODE_LABELS:
        return [_NODE_LABELS[task](token) for token in LANGUAGES[world.language].render(sentence.shape)]
    if task == "topics":
        return [document.topic] * len(sentence.words)
    return sentence.tags if task == "senses" else sentence.words


def label_posteriors(world: ToyWorld, task: LabelTask, places: Sequence[Place], view: View) -> Float[np.ndarray, "N L"]:
    """Return P(label | the words of the view) of each place, over `label_names(world, task)`.

    >>> world = ToyWorld("en", topics=4, words=4)
    >>> places = list_places(world, "topics", [world.document(2)])
    >>> label_posteriors(world, "topics", places[3:4], View(0, 0)).round(2)
    array([[0.27, 0.26, 0.24, 0.23]])
    """
    numbers: dict[tuple[tuple[int, ...], int, bool, bool], int] = {}  # a view that several places share is read once
    rows = np.array([numbers.setdefault(_see(world, task, place, view), len(numbers)) for place in places], np.int64)
    seen = list(numbers)
    posteriors = np.zeros((len(seen), len(label_names(world, task))))
    for starts in (False, True):
        for ends in (False, True):
            chosen = [i for i, (*_, a, b) in enumerate(seen) if (a, b) == (starts, ends)]
            chain = chain_of_view(world, starts, ends)
            for batch in batches([seen[i][0] for i in chosen]):
                members = [chosen[i] for i in batch]
                words, centres = [seen[i][0] for i in members], np.array([seen[i][1] for i in members])
                posteriors[members] = _read_centres(world, task, chain, words, centres)
    return posteriors[rows]


def _see(world: ToyWorld, task: LabelTask, place: Place, view: View) -> tuple[tuple[int, ...], int, bool, bool]:
    """Return the words that are seen, where the labelled one is among them, and which borders are seen."""
    ids = encode(world, place.sentence.text).tolist()
    if task == "words":
        ids[place.number] = MASKED
    before = place.number + 1 if view.left is None else view.left
    after = len(ids) - place.number if view.right is None else view.right
    first, last = max(0, place.number - before), min(len(ids), place.number + after + 1)
    starts, ends = place.number < before, place.number + after >= len(ids)
    return tuple(ids[first:last]), place.number - first, starts, ends


def chain_of_view(world: ToyWorld, starts: bool, ends: bool) -> Automaton:
    """Return the automaton of a part of a sentence that begins or ends with it, or anywhere.

    >>> float(chain_of_view(ToyWorld("en"), starts=False, ends=False).end.min())
    1.0
    """
    chain, network = automaton(world, "sentence"), world.network
    start = chain.start if starts else network.visits / network.visits.sum()
    return replace(chain, start=start, end=chain.end if ends else np.ones_like(chain.end))


def _read_centres(
    world: ToyWorld, task: LabelTask, chain: Automaton, words: Sequence[Sequence[int]], centres: Int[np.ndarray, "B"]
) -> Float[np.ndarray, "B L"]:
    lattice = infer(chain, words)
    central = lattice.positions == centres[lattice.sequences]
    if task == "words":
        return mix_emissions(chain, lattice, np.where(central, lattice.sequences, -1), len(words))
    sequences, states = lattice.sequences[central], lattice.states[central]
    visible = np.array([row[centre] for row, centre in zip(words, centres)])
    emissions = np.searchsorted(chain.emission_keys, chain.rows[states] * chain.vocabulary + visible[sequences])
    posteriors = np.zeros((len(words), len(label_names(world, task))))
    labels = find_label_ids(world, task, states, emissions)
    np.add.at(posteriors, (sequences, labels), lattice.posteriors[central])
    return posteriors


def separate_posteriors(world: ToyWorld, task: LabelTask, places: Sequence[Place]) -> Float[np.ndarray, "N L"]:
    """Return the combined opinion of a reader of the left side and one of the right side, who both see the word.

    >>> world = ToyWorld("en", topics=4, words=4)
    >>> places = list_places(world, "topics", [world.document(2)])
    >>> bool(np.allclose(separate_posteriors(world, "topics", places).sum(1), 1))
    True
    """
    left, right, word = (label_posteriors(world, task, places, VIEWS[name]) for name in ("left", "right", "word"))
    product = np.divide(left * right, word, out=np.zeros_like(word), where=word > 0)
    total = product.sum(1, keepdims=True)
    # The two halves may exclude all labels between them only if their assumption of independence is wrong.
    return np.where(total > 0, product / np.where(total > 0, total, 1), left)


def separate_next(world: ToyWorld, pairs: Sequence[tuple[str, str]]) -> Float[np.ndarray, "N"]:
    """Return the opinion that b follows a, of a reader who knows of each text only the probabilities of its topics.

    Compare `next_sentence_probabilities`, which reads the two texts together.

    >>> a = "The bankers close the company ."
    >>> pairs = [(a, "The captain pulls the net ."), (a, "The bankers close the shop .")]
    >>> separate_next(ToyWorld("en", topics=4, words=4), pairs).round(2)
    array([0. , 0.8])
    """
    first, second = (topic_posteriors(world, [pair[side] for pair in pairs]) for side in (0, 1))
    odds = (first * second / np.array(topic_weights(world.topics))).sum(1)
    return odds / (1 + odds)


def best_reader(world: ToyWorld, task: LabelTask, places: Sequence[Place], reader: str | View) -> Best:
    """Return the score of the ideal reader with a view: a name of `READERS`, or a `View`.

    >>> world = ToyWorld("en", topics=4, words=4)
    >>> places = list_places(world, "senses", [world.document(i) for i in range(50)])
    >>> best_reader(world, "senses", places, "word").accuracy < best_reader(world, "senses", places, "all").accuracy
    True
    """
    if isinstance(reader, str) and reader not in READERS:
        raise ValueError(f"reader {reader!r}: expected a View or one of {', '.join(READERS)}")
    names = label_names(world, task)
    if reader == "separate":
        guesses = separate_posteriors(world, task, places).argmax(1)
        # Its own probabilities may be wrong; how often its guesses are right is what the whole sentence says.
        expected = label_posteriors(world, task, places, VIEWS["all"])[np.arange(len(places)), guesses]
    else:
        posteriors = label_posteriors(world, task, places, VIEWS[reader] if isinstance(reader, str) else reader)
        guesses, expected = posteriors.argmax(1), posteriors.max(1, initial=0)
    right = [names[guess] == place.label for guess, place in zip(guesses, places)]
    return score_guesses(right, expected.tolist())
