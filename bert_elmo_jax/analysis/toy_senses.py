"""Words of the toy world with several senses, such as *bank* and *배*: how far apart each layer puts their senses."""

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from bert_elmo_jax.analysis.probe_plane import probe_plane
from bert_elmo_jax.evals.nearest import separation
from bert_elmo_jax.inference.kept_vectors import keep_apart
from bert_elmo_jax.inference.word_layers import Source
from bert_elmo_jax.report.figures import Dots
from bert_elmo_jax.report.results import Result
from bert_elmo_jax.toyworld import Sentence, ToyWorld, sense_examples, sense_posteriors

READ = 20_000  # sentences that are looked through, at most
Place = tuple[Sentence, int]


def sense_places(world: ToyWorld, word: str, per_sense: int) -> list[Place]:
    """Sentences of the test split in which the word stands, and where: as many of each of its senses.

    >>> places = sense_places(ToyWorld("ko"), "배", 2)
    >>> sorted(sentence.tags[place] for sentence, place in places)
    ['배.belly', '배.belly', '배.pear', '배.pear', '배.ship', '배.ship']
    """
    senses = [sense for sense in world.network.senses if sense.partition(".")[0] == word]
    if len(senses) < 2:
        known = sorted({sense.partition(".")[0] for sense in world.network.senses if "." in sense})
        raise ValueError(f"{word!r} has no several senses in the toy world ({world.language}); {', '.join(known)} have")
    found: dict[str, list[Place]] = {sense: [] for sense in senses}
    for sentence in islice(sense_examples(world, "test"), READ):
        for place, tag in enumerate(sentence.tags):
            if tag in found and len(found[tag]) < per_sense:
                found[tag].append((sentence, place))
        if all(len(places) == per_sense for places in found.values()):
            break
    least = min(map(len, found.values()))  # a rare sense: fewer of all, so that none can be guessed
    return [place for places in found.values() for place in places[:least]]


def toy_senses(
    sources: Mapping[str, Source],
    folder: str | Path,
    *,
    words: Mapping[str, ToyWorld],
    per_sense: int = 200,
    seed: int = 0,
    batch_size: int = 32,
) -> tuple[list[Result], list[Dots]]:
    """How well a word's senses are told apart by its vector, layer by layer, and pictures of the layers.

    Two ways: by the nearest of their centroids, which needs them to be what differs most, and by a linear probe, which
    finds them wherever they are; a picture shows the places that the probe was scored on, in the plane that it goes by
    (`probe_plane`), and in its title the probe's accuracy. `words` are those to look at, each with its world. Chance,
    and what the ideal reader of a sentence gets right (who knows all probabilities of the toy world), come first.

    >>> import tempfile
    >>> from bert_elmo_jax.inference.word_layers import StaticVectors
    >>> vectors = {"my vectors": StaticVectors({"bank": np.ones(2), "banks": np.zeros(2)})}
    >>> results, _ = toy_senses(vectors, tempfile.mkdtemp(), words={"bank": ToyWorld("en")}, per_sense=4)
    >>> [(result.task, result.encoder) for result in results][1:4]
    [('bank (en), centroid', 'ideal reader'), ('bank (en), centroid', 'my vectors'), ('bank (en), probe', 'chance')]
    """
    results: list[Result] = []
    figures: list[Dots] = []
    for word, world in words.items():
        places = sense_places(world, word, per_sense)
        sentences = [sentence for sentence, _ in places]
        tags = [sentence.tags[place] for sentence, place in places]
        ways: dict[str, list[Result]] = {}
        for way in ("centroid", "probe"):
            task = f"{word} ({world.language}), {way}"
            ways[way] = [
                Result(task, "chance", "", 1 / len(set(tags)), None, f"{len(set(tags))} senses"),
                Result(task, "ideal reader", "", _ideal(world, places), len(tags), "reads the sentence alone"),
            ]
        for name, source in sources.items():
            spans = [[(place, place + 1)] for _, place in places]
            kept = keep_apart(source, [s.words for s in sentences], folder, spans=spans, batch_size=batch_size)
            for layer in kept.layers:
                vectors = np.array(kept.layer(layer))
                found = separation(vectors, tags, seed=seed)
                probed = probe_plane(vectors, tags, seed=seed)
                title = f"{word}: {name}, layer {layer}, {probed.accuracy:.0%} right"
                figures.append(Dots(title, probed.plane, probed.groups))
                scores = {
                    "centroid": (found.accuracy, len(tags) // 2),
                    "probe": (probed.accuracy, len(probed.groups)),
                }
                for way, (score, count) in scores.items():
                    ways[way].append(Result(f"{word} ({world.language}), {way}", name, str(layer), score, count))
        results += [result for way in ways.values() for result in way]
    return results, figures


def _ideal(world: ToyWorld, places: Sequence[Place]) -> float:
    chances = sense_posteriors(world, [sentence.text for sentence, _ in places])
    senses = world.network.senses
    return float(
        np.mean([senses[int(np.argmax(c[at]))] == sentence.tags[at] for c, (sentence, at) in zip(chances, places)])
    )
