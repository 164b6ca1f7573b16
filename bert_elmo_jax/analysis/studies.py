"""The studies of `probe`: each reads files, computes, and returns results, figures and text."""

import html
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from bert_elmo_jax import load
from bert_elmo_jax.analysis import one_sentence, probes, registers, senses, toy_senses, word_neighbours
from bert_elmo_jax.analysis.heads_and_arcs import heads_and_arcs
from bert_elmo_jax.analysis.layer_weights import weight_results
from bert_elmo_jax.analysis.texts import read_texts
from bert_elmo_jax.data.tasks.annotated import ParsedSentence, read_semcor, read_treebank
from bert_elmo_jax.inference.kept_vectors import VectorFolder
from bert_elmo_jax.inference.toy_worlds import find_common_world
from bert_elmo_jax.inference.word_layers import Source, StaticVectors
from bert_elmo_jax.report.figures import Figure
from bert_elmo_jax.report.language import Language, translator
from bert_elmo_jax.report.page import draw_table
from bert_elmo_jax.report.results import Result, add_published
from bert_elmo_jax.report.word_page import write_word_page
from bert_elmo_jax.text.vectors import read_vectors
from bert_elmo_jax.text.words import choose_word_rule, split_line

TOY_DOCUMENTS = 40  # whose sentences have the neighbours of a word, without other texts
TOY_WORDS = ("bank", "배")
COMMON = 50_000  # the first words of a static file, among which neighbours are searched


@dataclass(frozen=True)
class StudyOptions:
    """The options of the command line."""

    model: Sequence[str]
    static: Sequence[str]
    vectors: Path
    train: str | None
    dev: str | None
    test: str | None
    encoding: str
    limit: int | None
    tasks: Sequence[str]
    layers: Sequence[int] | None
    fractions: Sequence[float]
    seeds: Sequence[int]
    words: Sequence[str]
    sentence: str | None
    batch_size: int
    language: Language
    report: Callable[[str], object]

    @property
    def folder(self) -> VectorFolder:
        """The folder of vectors, with the layers to compute."""
        return VectorFolder(self.vectors, self.layers, self.batch_size)


@dataclass(frozen=True)
class Study:
    """The results of a study: scores, figures, sections of the page (heading, HTML), and text for a terminal.

    `rows`, the column names first, are the table of a study without scores.
    """

    results: Sequence[Result]
    figures: Sequence[Figure] = ()
    sections: Sequence[tuple[str, str]] = ()
    text: str = ""
    rows: Sequence[Sequence[object]] = ()
    # A page of its own: (path, further sections, further CSS) -> path.
    write_page: Callable[[Path, Sequence[tuple[str, str]], str], Path] | None = None


def load_treebank(options: StudyOptions) -> tuple[dict[str, Source], dict[str, list[ParsedSentence]]]:
    """Return the encoders, and the parts of a treebank, after checking that it annotates all tasks."""
    parts = {part: read_treebank(getattr(options, part), options.encoding)[: options.limit] for part in probes.PARTS}
    for task in options.tasks:
        probes.select_parts(parts, task)
    return load_sources(options, chain(*parts.values())), parts


def shorten_names(paths: Sequence[str]) -> dict[str, str]:
    """Return the paths by name: the last part of each path if these differ, otherwise the whole path.

    >>> shorten_names(["runs/elmo", "runs/bert"])
    {'elmo': 'runs/elmo', 'bert': 'runs/bert'}
    """
    short = [Path(path).name for path in paths]
    return dict(zip(short if len(set(short)) == len(paths) else paths, paths))


def load_sources(options: StudyOptions, sentences: Iterable[Any] = ()) -> dict[str, Source]:
    """Return the encoders, and the static vectors of the sentences' words."""
    words = {unicodedata.normalize("NFC", word) for sentence in sentences for word in sentence.words}
    forms = words | {word.lower() for word in words}
    paths = shorten_names([*options.static, *options.model])
    return {name: read_static(path, forms) if path in options.static else load(path) for name, path in paths.items()}


def read_static(path: str, forms: set[str] | None, most: int | None = None) -> StaticVectors:
    """Return the static vectors of some words, or of the first ones in the file."""
    if Path(path).suffix.lower() == ".bin":
        raise ValueError(f"--static={path} is for text files: give a binary one as --model={path}")
    stored = read_vectors(path, forms, most=most)
    return StaticVectors(dict(zip(stored.words, stored.vectors)), path)


def load_models(options: StudyOptions) -> dict[str, Any]:
    """Return what `load` returns of each model, by name."""
    return {name: load(path) for name, path in shorten_names(options.model).items()}


def probe_layers(options: StudyOptions) -> Study:
    """Train linear probes on every layer."""
    sources, parts = load_treebank(options)
    results = probes.probe(sources, parts, options.folder, tasks=options.tasks, report=options.report)
    return Study(results, [probes.draw_layers(task, add_published(results)) for task in options.tasks])


def probe_registers(options: StudyOptions) -> Study:
    """Train linear probes of the register of a word's text, and of a control task, on every layer."""
    parts = registers.read_registers(str(options.train).split(","), options.encoding, options.limit, options.seeds[0])
    tasks = (registers.TASK, probes.CONTROL + registers.TASK)
    sources = load_sources(options, chain(*parts.values()))
    results = probes.probe(sources, parts, options.folder, tasks=tasks, report=options.report)
    return Study(results, [probes.draw_layers(task, results) for task in tasks])


def probe_efficiency(options: StudyOptions) -> Study:
    """Train linear probes on growing shares of the training data."""
    sources, parts = load_treebank(options)
    arguments: dict[str, Any] = {"fractions": options.fractions, "seeds": options.seeds, "report": options.report}
    each = [probes.sample_efficiency(sources, parts, options.folder, task=task, **arguments) for task in options.tasks]
    return Study([*chain(*each)], [probes.draw_efficiency(of_task) for of_task in each])


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
    texts = list(islice(read_texts(str(options.train), options.encoding), options.limit))
    encoders = load_models(options)
    rule = choose_word_rule(encoders)
    sentences = [split_line(text, rule) for text in texts]
    sentence = None if options.sentence is None else split_line(options.sentence, rule)
    translate = translator(options.language)
    sections, text, rows = [], [], []
    for word in options.words:
        if encoders:
            neighbourhoods = word_neighbours.find_neighbours(
                encoders, sentences, word, options.folder, sentence=sentence
            )
            about = word_neighbours.describe_neighbours(sentences, word, neighbourhoods)
            drawn = word_neighbours.draw_neighbours(neighbourhoods, translate)
            heading = translate("Neighbours of {word}", word=word)
            sections.append((heading, f"<p>{html.escape(translate(about))}</p>{drawn}"))
            text += [about, word_neighbours.format_neighbours(neighbourhoods)]
            rows += word_neighbours.list_neighbours(neighbourhoods)
        for name, path in shorten_names(options.static).items():
            near = word_neighbours.find_static_neighbours(read_static(path, None, COMMON), word)
            cells = [[other, f"{cosine:.3f}"] for other, cosine in near]
            heading = translate("{name}: words near {word}", name=name, word=word)
            sections.append((heading, draw_table([translate("word"), translate("cosine")], cells)))
            text.append(f"{name}, words near {word}: {', '.join(other for other, _ in near) or 'it has no vector'}")
            rows += [[word, "", name, "", cosine, other, ""] for other, cosine in near]
    return Study([], sections=sections, text="\n".join(text), rows=[word_neighbours.COLUMNS, *rows])


def study_sentence(options: StudyOptions) -> Study:
    """Read one sentence with every model: a picture side by side, and a page to point at its words."""
    encoders = {name: getattr(model, "encoder", None) or model for name, model in load_models(options).items()}
    for encoder in encoders.values():
        getattr(
            encoder, "tokenizer", None
        )  # raises, before the first model is computed, if a folder lacks its tokenizer
    rule = choose_word_rule(encoders)
    words = split_line(str(options.sentence), rule)
    sentence_language = detect_language(str(options.sentence))
    if options.train:
        texts = read_texts(str(options.train), options.encoding)
        sentences = [split_line(text, rule) for text in islice(texts, options.limit)]
    else:
        world = find_common_world(options.model, sentence_language)
        texts = (sentence.text for n in range(TOY_DOCUMENTS) for sentence in world.document(n).sentences)
        sentences = [split_line(text, rule) for text in islice(dict.fromkeys(texts), options.limit)]
    word = one_sentence.choose_word(words, options.words)
    readings = {}
    for name, encoder in encoders.items():
        options.report(f"sentence, {name}")
        readings[name] = one_sentence.read_sentence(encoder, words, sentences, options.folder)
    picture = one_sentence.draw_readings(readings, sentences, word, options.language)
    models = {name: one_sentence.describe_reading(reading) for name, reading in readings.items()}

    def write(path: Path, further_sections: Sequence[tuple[str, str]], style: str) -> Path:
        title = str(options.sentence)
        return write_word_page(
            path, title, models, sentences, word=word, language=options.language,
            sentence_language=sentence_language, further_sections=further_sections, style=style,
        )  # fmt: skip

    rows = one_sentence.list_readings(readings, sentences)
    return Study(
        [], [picture], text=one_sentence.format_readings(readings, sentences, word), rows=rows, write_page=write
    )


def detect_language(sentence: str) -> Language:
    """Return the language of a sentence: Korean if it has a syllable of Hangul, else English.

    >>> detect_language("큰 배"), detect_language("a ship")
    ('ko', 'en')
    """
    return "ko" if any("가" <= letter <= "힣" for letter in sentence) else "en"


def study_attention(options: StudyOptions) -> Study:
    """Find attention heads that follow the arcs of a treebank."""
    sentences = read_treebank(str(options.test), options.encoding)[: options.limit]
    results: list[Result] = []
    figures: list[Figure] = []
    for name, encoder in load_models(options).items():
        scores, drawn = heads_and_arcs(encoder, sentences, name, batch_size=options.batch_size, report=options.report)
        results += [result for result in scores if result not in results]  # encoders share the fixed offset
        figures += drawn
    tasks = list(dict.fromkeys(result.task for result in results))
    return Study(sorted(results, key=lambda result: tasks.index(result.task)), figures)


def study_weights(options: StudyOptions) -> Study:
    """Show the weights of layers that tasks learned."""
    results: list[Result] = []
    figures: list[Figure] = []
    for name, model in load_models(options).items():
        features = getattr(getattr(model, "head", None), "features", None)
        layers = getattr(model.config, "mixed_layers", None)  # of a task network
        if features is not None:
            layers = [n % (model.config.num_layers + 1) for n in features.layers]
        weights, drawn = weight_results(model.params, name, layers)
        results += weights
        figures += drawn
    return Study(results, figures)


def study_toy_senses(options: StudyOptions) -> Study:
    """Tell senses of words of the toy world."""
    languages = {word: "en" if word.isascii() else "ko" for word in options.words or TOY_WORDS}
    words = {word: find_common_world(options.model, language) for word, language in languages.items()}
    return Study(*toy_senses.toy_senses(load_sources(options), options.folder, words=words, seed=options.seeds[0]))


OF_WORDS = ("static", "limit", "layers", "encoding")
# For each study: its function, the flags that it needs, and further flags that it reads.
STUDIES: Mapping[str, tuple[Callable[[StudyOptions], Study], tuple[str, ...], tuple[str, ...]]] = {
    "probe": (probe_layers, probes.PARTS, (*OF_WORDS, "tasks")),
    "efficiency": (probe_efficiency, probes.PARTS, (*OF_WORDS, "tasks", "fractions", "seeds")),
    "register": (probe_registers, ("train",), (*OF_WORDS, "seeds")),
    "senses": (study_senses, ("train",), (*OF_WORDS, "test", "seeds")),
    "neighbours": (study_neighbours, ("train", "words"), (*OF_WORDS, "sentence")),
    "sentence": (study_sentence, ("sentence",), ("train", "encoding", "limit", "words", "layers")),
    "attention": (study_attention, ("test",), ("limit", "encoding")),
    "weights": (study_weights, (), ()),
    "toyworld": (study_toy_senses, (), ("words", "seeds")),
}
