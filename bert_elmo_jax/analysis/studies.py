"""The studies of `probe`: each reads files, computes, and returns results, figures and text."""

import html
from collections.abc import Callable, Mapping
from itertools import chain, islice
from typing import Any

from bert_elmo_jax.analysis import probes, senses, toy_senses
from bert_elmo_jax.analysis.heads_and_arcs import heads_and_arcs
from bert_elmo_jax.analysis.layer_weights import weight_results
from bert_elmo_jax.analysis.study_inputs import (
    Study,
    StudyOptions,
    load_models,
    load_sources,
    read_parts,
    shorten_names,
)
from bert_elmo_jax.analysis.word_neighbours import (
    COLUMNS,
    describe_neighbours,
    draw_neighbours,
    find_neighbours,
    find_static_neighbours,
    format_neighbours,
    list_neighbours,
)
from bert_elmo_jax.data.corpora.text_files import each_text
from bert_elmo_jax.data.tasks.annotated import read_semcor, read_treebank
from bert_elmo_jax.inference.toy_worlds import find_common_world
from bert_elmo_jax.inference.word_layers import StaticVectors
from bert_elmo_jax.report.figures import Figure
from bert_elmo_jax.report.page import draw_table
from bert_elmo_jax.report.results import Result, add_published
from bert_elmo_jax.text.vectors import read_vectors
from bert_elmo_jax.text.words import choose_word_rule, split_line

TOY_WORDS = ("bank", "배")
COMMON = 50_000  # the first words of a static file, among which neighbours are searched


def probe_layers(options: StudyOptions) -> Study:
    """Train linear probes on every layer."""
    parts = read_parts(options)
    sources = load_sources(options, chain(*parts.values()))
    results = probes.probe(sources, parts, options.folder, tasks=options.tasks, report=options.report)
    return Study(results, [probes.draw_layers(task, add_published(results)) for task in options.tasks])


def probe_efficiency(options: StudyOptions) -> Study:
    """Train linear probes on growing shares of the training data."""
    parts = read_parts(options)
    sources = load_sources(options, chain(*parts.values()))
    arguments: dict[str, Any] = {"fractions": options.fractions, "seeds": options.seeds, "report": options.report}
    each = [probes.sample_efficiency(sources, parts, options.folder, task=task, **arguments) for task in options.tasks]
    return Study([*chain(*each)], [probes.draw_efficiency(some) for some in each])


def study_senses(options: StudyOptions) -> Study:
    """Find word senses by the nearest mean vector."""
    train = read_semcor(str(options.train), options.encoding)[: options.limit]
    if options.test is None:
        train, test = senses.split_documents(train, seed=options.seeds[0])
    else:
        test = read_semcor(options.test, options.encoding)[: options.limit]
    sources = load_sources(options, [*train, *test])
    results = senses.find_senses(sources, train, test, options.folder, report=options.report)
    tasks = dict.fromkeys(result.task for result in results)
    return Study(results, [probes.draw_layers(task, add_published(results)) for task in tasks])


def study_neighbours(options: StudyOptions) -> Study:
    """Find the neighbours of words in context, and words with similar static vectors."""
    lines = each_text(str(options.train), encoding=options.encoding, skip_blank=True)
    texts = [text for _, text in islice(lines, options.limit)]
    encoders = load_models(options)
    rule = choose_word_rule(encoders)
    sentences = [split_line(text, rule) for text in texts]
    own = None if options.sentence is None else split_line(options.sentence, rule)
    sections, text, rows = [], [], []
    for word in options.words:
        if encoders:
            found = find_neighbours(encoders, sentences, word, options.folder, sentence=own)
            about = describe_neighbours(sentences, word, found)
            sections.append((f"Neighbours of {word}", f"<p>{html.escape(about)}</p>{draw_neighbours(found)}"))
            text += [about, format_neighbours(found)]
            rows += list_neighbours(found)
        for name, path in shorten_names(options.static).items():
            known = read_vectors(path, None, most=COMMON)
            near = find_static_neighbours(StaticVectors(dict(zip(known.words, known.vectors)), path), word)
            cells = [[other, f"{cosine:.3f}"] for other, cosine in near]
            sections.append((f"{name}: words near {word}", draw_table(["word", "cosine"], cells)))
            text.append(f"{name}, words near {word}: {', '.join(other for other, _ in near) or 'it has no vector'}")
            rows += [[word, "", name, "", cosine, other, ""] for other, cosine in near]
    return Study([], sections=sections, text="\n".join(text), rows=[COLUMNS, *rows])


def study_attention(options: StudyOptions) -> Study:
    """Find attention heads that follow the arcs of a treebank."""
    sentences = read_treebank(str(options.test), options.encoding)[: options.limit]
    results: list[Result] = []
    figures: list[Figure] = []
    for name, encoder in load_models(options).items():
        found, drawn = heads_and_arcs(encoder, sentences, name, batch_size=options.batch_size, report=options.report)
        results += [result for result in found if result not in results]  # encoders share the fixed offset
        figures += drawn
    tasks = list(dict.fromkeys(result.task for result in results))
    return Study(sorted(results, key=lambda result: tasks.index(result.task)), figures)


def study_weights(options: StudyOptions) -> Study:
    """Show the weights of layers that tasks learned."""
    results: list[Result] = []
    figures: list[Figure] = []
    for name, model in load_models(options).items():
        features = getattr(getattr(model, "head", None), "features", None)
        layers = None if features is None else [n % (model.config.num_layers + 1) for n in features.layers]
        found, drawn = weight_results(model.params, name, layers)
        results += found
        figures += drawn
    return Study(results, figures)


def study_toy_senses(options: StudyOptions) -> Study:
    """Tell senses of words of the toy world."""
    languages = {word: "en" if word.isascii() else "ko" for word in options.words or TOY_WORDS}
    words = {word: find_common_world(options.model, language) for word, language in languages.items()}
    return Study(*toy_senses.toy_senses(load_sources(options), options.folder, words=words, seed=options.seeds[0]))


# For each study: its function, the flags that it needs, and further flags that it reads.
STUDIES: Mapping[str, tuple[Callable[[StudyOptions], Study], tuple[str, ...], tuple[str, ...]]] = {
    "probe": (probe_layers, ("train", "dev", "test"), ("static", "limit", "tasks", "layers", "encoding")),
    "efficiency": (
        probe_efficiency,
        ("train", "dev", "test"),
        ("static", "limit", "tasks", "layers", "fractions", "seeds", "encoding"),
    ),
    "senses": (study_senses, ("train",), ("static", "test", "limit", "layers", "seeds", "encoding")),
    "neighbours": (study_neighbours, ("train", "words"), ("static", "limit", "layers", "encoding", "sentence")),
    "attention": (study_attention, ("test",), ("limit", "encoding")),
    "weights": (study_weights, (), ()),
    "toyworld": (study_toy_senses, (), ("words", "seeds")),
}
