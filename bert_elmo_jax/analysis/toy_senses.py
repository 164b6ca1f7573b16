"""Words of the toy world with several senses, such as *bank* and *배*: how well each layer separates the senses."""

from collections.abc import Mapping, Sequence
from itertools import islice

import numpy as np
from jaxtyping import Float

from bert_elmo_jax.analysis.probe_plane import probe_plane
from bert_elmo_jax.evals.nearest import centroid_accuracy
from bert_elmo_jax.inference.kept_vectors import VectorFolder
from bert_elmo_jax.inference.word_layers import Source
from bert_elmo_jax.report.figures import Dots
from bert_elmo_jax.report.language import Phrase
from bert_elmo_jax.report.results import Result
from bert_elmo_jax.toyworld import Sentence, ToyWorld, sense_examples, sense_posteriors

READ = 20_000  # the most sentences to search
# The axes of a cloud; directions have no unit.
AXES = (Phrase("along the probe's direction"), Phrase("along the largest other difference"))
Place = tuple[Sentence, int]


def find_occurrences(world: ToyWorld, word: str, per_sense: int) -> list[Place]:
    """Return sentences of the test split with the word, and its place in each: the same number for each sense.

    >>> places = find_occurrences(ToyWorld("ko"), "배", 2)
    >>> sorted(sentence.tags[place] for sentence, place in places)
    ['배.belly', '배.belly', '배.pear', '배.pear', '배.ship', '배.ship']
    """
    senses = [sense for sense in world.network.senses if sense.partition(".")[0] == word]
    if len(senses) < 2:
        ambiguous = sorted({sense.partition(".")[0] for sense in world.network.senses if "." in sense})
        where = f"the toy world ({world.language})"
        raise ValueError(f"{word!r} has a single sense in {where}; use one of {', '.join(ambiguous)}")
    places: dict[str, list[Place]] = {sense: [] for sense in senses}
    for sentence in islice(sense_examples(world, "test"), READ):
        for place, tag in enumerate(sentence.tags):
            if tag in places and len(places[tag]) < per_sense:
                places[tag].append((sentence, place))
        if all(len(occurrences) == per_sense for occurrences in places.values()):
            break
    least = min(map(len, places.values()))  # a rare sense shortens all, so that guessing the sense has no advantage
    return [place for occurrences in places.values() for place in occurrences[:least]]


def toy_senses(
    sources: Mapping[str, Source],
    folder: VectorFolder,
    *,
    words: Mapping[str, ToyWorld],
    per_sense: int = 200,
    seed: int = 0,
) -> tuple[list[Result], list[Dots]]:
    """Return how well a word's vector tells its sense, layer by layer, and pictures of the layers.

    There are two scores: by the nearest centroid, which needs the sense to be the largest difference between vectors,
    and by a linear probe, which finds it anywhere. A picture shows the words that the probe was scored on, in the
    probe's plane (see `probe_plane`). Chance, and the score of the ideal reader of a sentence (who knows all
    probabilities of the toy world), come first. `words` gives the world of each word.
    """
    results: list[Result] = []
    figures: list[Dots] = []
    for word, world in words.items():
        places = find_occurrences(world, word, per_sense)
        tags = [sentence.tags[place] for sentence, place in places]
        kinds, ideal = len(set(tags)), _score_ideal(world, places)
        tasks = [
            Phrase("{word} ({language}), centroid", word=word, language=world.language),
            Phrase("{word} ({language}), probe", word=word, language=world.language),
        ]
        scores = {
            task: [
                Result(task, Phrase("chance"), "", 1 / kinds, None, Phrase("{count} senses", count=kinds)),
                Result(task, Phrase("ideal reader"), "", ideal, len(tags), Phrase("reads the sentence alone")),
            ]
            for task in tasks
        }
        for name, source in sources.items():
            spans = [[(place, place + 1)] for _, place in places]
            computed = folder.compute(source, [sentence.words for sentence, _ in places], spans)
            for layer in computed.layers:
                vectors = np.array(computed.layer(layer))
                by_centroid = centroid_accuracy(vectors, tags, seed=seed)
                probed = probe_plane(vectors, tags, seed=seed)
                title = Phrase(
                    "{word}: {name}, layer {layer}, {share} right",
                    word=word, name=name, layer=layer, share=f"{probed.accuracy:.0%}",
                )  # fmt: skip
                figures.append(Dots(title, probed.plane, probed.groups, *AXES, note=describe_places(probed.plane)))
                counts = ((by_centroid, len(tags) // 2), (probed.accuracy, len(probed.groups)))
                for task, (score, count) in zip(tasks, counts):
                    scores[task].append(Result(task, name, str(layer), score, count))
        results += [result for of_layer in scores.values() for result in of_layer]
    return results, figures


def describe_places(points: Float[np.ndarray, "N 2"]) -> str:
    """Return the note of a cloud, which says why it looks empty if there are only a few different vectors.

    >>> describe_places(np.repeat([[0.0, 1.0], [2.0, 1.0]], 20, axis=0))
    'The 40 examples have only 2 different vectors, because this layer sees no context; the numbers count them.'
    """
    different = len(np.unique(np.round(points, 3), axis=0))
    if different > len(points) / 4:
        return Dots.note
    vectors = Phrase("{count} different vectors", count=different) if different > 1 else Phrase("one vector")
    return Phrase(
        "The {count} examples have only {vectors}, because this layer sees no context; the numbers count them.",
        count=len(points), vectors=vectors,
    )  # fmt: skip


def _score_ideal(world: ToyWorld, places: Sequence[Place]) -> float:
    chances = sense_posteriors(world, [sentence.text for sentence, _ in places])
    senses = world.network.senses
    guesses = [senses[int(np.argmax(probabilities[at]))] for probabilities, (_, at) in zip(chances, places)]
    return float(np.mean([guess == sentence.tags[at] for guess, (sentence, at) in zip(guesses, places)]))
