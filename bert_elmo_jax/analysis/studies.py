"""The studies of `probe`: what each needs, read from files, computed, and given back as results, figures and text."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bert_elmo_jax import load
from bert_elmo_jax.analysis import probes, senses, toy_senses
from bert_elmo_jax.analysis.heads_and_arcs import heads_and_arcs
from bert_elmo_jax.analysis.layer_weights import weight_results
from bert_elmo_jax.analysis.neighbour_study import find_neighbours
from bert_elmo_jax.analysis.study_inputs import Asked, Study, names_of, parts_of, sources_of, words_of
from bert_elmo_jax.data.tasks.semcor import read_semcor
from bert_elmo_jax.data.tasks.treebank import read_treebank
from bert_elmo_jax.inference.toy_worlds import known_to_all
from bert_elmo_jax.report.figures import Figure
from bert_elmo_jax.report.results import Result, add_published

TOY_WORDS = ("bank", "배")


def probe_layers(asked: Asked) -> Study:
    """Linear probes of every layer."""
    parts = parts_of(asked)
    options: dict[str, Any] = {"layers": asked.layers, "batch_size": asked.batch_size, "report": asked.report}
    results = probes.probe(sources_of(asked, words_of(parts)), parts, asked.vectors, tasks=asked.tasks, **options)
    return Study(results, [probes.layer_figure(task, add_published(results)) for task in asked.tasks])


def probe_efficiency(asked: Asked) -> Study:
    """Linear probes of growing shares of the training data."""
    parts = parts_of(asked)
    sources = sources_of(asked, words_of(parts))
    options: dict[str, Any] = {"layers": asked.layers, "batch_size": asked.batch_size, "report": asked.report}
    options |= {"fractions": asked.fractions, "seeds": asked.seeds}
    each = [probes.sample_efficiency(sources, parts, asked.vectors, task=task, **options) for task in asked.tasks]
    return Study([result for some in each for result in some], [probes.efficiency_figure(some) for some in each])


def find_senses(asked: Asked) -> Study:
    """Word senses by the nearest mean vector."""
    train = read_semcor(str(asked.train), asked.encoding)[: asked.limit]
    if asked.test is None:
        train, test = senses.split_documents(train, seed=asked.seeds[0])
    else:
        test = read_semcor(asked.test, asked.encoding)[: asked.limit]
    sources = sources_of(asked, (word for sentence in (*train, *test) for word in sentence.words))
    options: dict[str, Any] = {"layers": asked.layers, "batch_size": asked.batch_size, "report": asked.report}
    results = senses.word_senses(sources, train, test, asked.vectors, **options)
    tasks = dict.fromkeys(result.task for result in results)
    return Study(results, [probes.layer_figure(task, add_published(results)) for task in tasks])


def follow_arcs(asked: Asked) -> Study:
    """Attention heads that follow the arcs of a treebank."""
    sentences = read_treebank(str(asked.test), asked.encoding)[: asked.limit]
    results: list[Result] = []
    figures: list[Figure] = []
    for name, path in names_of(asked.model).items():
        encoder: Any = load(path)
        found, drawn = heads_and_arcs(encoder, sentences, name, batch_size=asked.batch_size, report=asked.report)
        results += [result for result in found if result not in results]  # the fixed offset is every encoder's
        figures += drawn
    return Study(sorted(results, key=_first_of(results)), figures)


def show_weights(asked: Asked) -> Study:
    """The layer weights that tasks learned."""
    results: list[Result] = []
    figures: list[Figure] = []
    for name, path in names_of(asked.model).items():
        model: Any = load(path)
        features = getattr(getattr(model, "head", None), "features", None)
        layers = None if features is None else [n % (model.config.num_layers + 1) for n in features.layers]
        found, drawn = weight_results(model.params, name, layers)
        results += found
        figures += drawn
    return Study(results, figures)


def tell_toy_senses(asked: Asked) -> Study:
    """Senses of words of the toy world."""
    words = {word: known_to_all(asked.model, "en" if word.isascii() else "ko") for word in asked.words or TOY_WORDS}
    options: dict[str, Any] = {"words": words, "seed": asked.seeds[0], "batch_size": asked.batch_size}
    return Study(*toy_senses.toy_senses(sources_of(asked), asked.vectors, **options))


# Of each study: what it does, the flags that it needs, and those that it reads beside them.
STUDIES: Mapping[str, tuple[Callable[[Asked], Study], tuple[str, ...], tuple[str, ...]]] = {
    "probe": (probe_layers, ("train", "dev", "test"), ("static", "limit", "tasks", "layers", "encoding")),
    "efficiency": (
        probe_efficiency,
        ("train", "dev", "test"),
        ("static", "limit", "tasks", "layers", "fractions", "seeds", "encoding"),
    ),
    "senses": (find_senses, ("train",), ("static", "test", "limit", "layers", "seeds", "encoding")),
    "neighbours": (find_neighbours, ("train", "words"), ("static", "limit", "layers", "encoding", "sentence")),
    "attention": (follow_arcs, ("test",), ("limit", "encoding")),
    "weights": (show_weights, (), ()),
    "toyworld": (tell_toy_senses, (), ("words", "seeds")),
}


def _first_of(results: Sequence[Result]) -> Callable[[Result], int]:
    tasks = list(dict.fromkeys(result.task for result in results))
    return lambda result: tasks.index(result.task)
