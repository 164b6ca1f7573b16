"""What the quickstart's page shows of its models: scores beside the best, senses, layer weights, attention."""

import html
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from bert_elmo_jax import load
from bert_elmo_jax.analysis.layer_weights import weight_results
from bert_elmo_jax.analysis.toy_senses import toy_senses
from bert_elmo_jax.inference import TaskModel
from bert_elmo_jax.quickstart.parts import COLUMNS, Part, read_words
from bert_elmo_jax.report.figures import Figure, Lines
from bert_elmo_jax.report.page import draw_figures, draw_table
from bert_elmo_jax.report.show import show
from bert_elmo_jax.runs.ideal.best_masked import bert_scores
from bert_elmo_jax.runs.ideal.best_stream import elmo_scores
from bert_elmo_jax.runs.task_data import read_data
from bert_elmo_jax.runs.task_report import draw_attention
from bert_elmo_jax.toyworld import ToyWorld
from bert_elmo_jax.train.metrics import read_metrics

WORDS = {"bank": "en", "배": "ko"}


def learned(workdir: Path) -> str:
    """Held-out scores beside the best possible, and how they came about."""
    bert, elmo = (
        ConfigDict(json.loads((workdir / name / "run.json").read_text(encoding="utf-8"))) for name in ("bert", "elmo")
    )
    masked = bert_scores(workdir / "bert", bert, workdir / "bert" / "toyworld").lines
    stream = elmo_scores(workdir / "elmo", elmo, workdir / "elmo" / "toyworld").lines
    rows = [
        [f"BERT: {_right(line.name)}", f"{line.model:.3f}", f"{line.best:.3f}", f"{line.model / line.best:.0%} of it"]
        for line in masked
    ]
    rows += [
        [
            f"ELMo: perplexity, {line.name}",
            f"{line.mean:.2f}",
            f"{line.true:.2f}",
            f"{line.mean / line.true - 1:.0%} above",
        ]
        for line in stream
    ]
    words = next(line for line in masked if line.name == "masked words")
    figures = [
        beside_the_best(workdir / "bert", "held_out/mlm_accuracy", "BERT: masked words right", words.best),
        beside_the_best(workdir / "elmo", "held_out/perplexity", "ELMo: perplexity of a word", stream[-1].true),
        curve_of(workdir / "bert", "loss", "BERT: loss"),
        curve_of(workdir / "elmo", "loss", "ELMo: loss"),
    ]
    return draw_table(["on held-out text", "reached", "best possible", ""], rows) + draw_figures(figures)


def _right(name: str) -> str:
    """`masked words, en` → `masked words right, en`."""
    what, comma, language = name.partition(", ")
    return f"{what} right{comma}{language}"


def beside_the_best(run: Path, figure: str, title: str, best: float) -> Lines:
    """A held-out figure over the steps, and the best that anyone could reach."""
    points = [(line["step"], line[figure]) for line in read_metrics(run) if figure in line]
    ends = [(points[0][0], best), (points[-1][0], best)]
    return Lines(title, "steps", "", {"held-out text": points, "best possible": ends})


def curve_of(run: Path, figure: str, title: str, points: int = 12) -> Lines:
    """A figure of the steps, as means of a dozen stretches."""
    lines = read_metrics(run)
    size = max(1, len(lines) // points)
    means = [
        (part[-1]["step"], statistics.mean(line[figure] for line in part))
        for part in (lines[at : at + size] for at in range(0, len(lines), size))
    ]
    return Lines(title, "steps", "", {"training text": means})


def senses(workdir: Path, worlds: Sequence[ToyWorld]) -> str:
    """Clouds of a word's places, coloured by its sense, for each layer of both encoders; some also in `senses.svg`."""
    sources: dict[str, Any] = {"BERT": load(workdir / "bert"), "ELMo": load(workdir / "elmo")}
    own = {world.language: world for world in worlds}
    words = {word: own[language] for word, language in WORDS.items() if language in own}
    results, figures = toy_senses(sources, workdir / "vectors", words=words)
    about = (
        "How often a linear probe tells the sense of a word from its vector, per cent; the ideal reader knows every "
        "probability of this language, and reads the sentence alone. Each dot is a place of the word that the probe "
        "was not fitted on: across is what it goes by, up what differs most besides."
    )
    layers = sorted({result.layer for result in results if result.layer})
    rows = []
    for word, world in words.items():
        found = {(r.encoder, r.layer): r.percent for r in results if r.task == f"{word} ({world.language}), probe"}
        ends = [found["chance", ""], found["ideal reader", ""]]
        rows += [[word, name, *(found.get((name, layer), "") for layer in layers), *ends] for name in sources]
    write_picture(workdir, figures, [*words])
    names = ["word", "encoder", *(f"layer {layer}" for layer in layers), "chance", "ideal reader"]
    return f"<p>{about}</p>" + draw_table(names, rows) + draw_figures(figures)


def write_picture(workdir: Path, figures: Sequence[Figure], words: Sequence[str]) -> None:
    """`senses.svg`, to be shown elsewhere: the last word in the ELMo's first and last layer, the first in BERT's."""
    elmo = [figure for figure in figures if figure.title.startswith(f"{words[-1]}: ELMo")]
    bert = [figure for figure in figures if figure.title.startswith(f"{words[0]}: BERT")]
    picture = show(elmo[0], elmo[-1], bert[-1])
    (workdir / "senses.svg").write_text(picture.document, encoding="utf-8")


def weights(workdir: Path, parts: Sequence[Part]) -> str:
    """The layer weights that each network with ELMo has learned."""
    figures: list[Figure] = []
    for part in (part for part in parts if part.column == COLUMNS[-1]):
        figures += weight_results(load(workdir / part.name).params, part.task)[1]
    return draw_figures(figures)


def looks(workdir: Path, parts: Sequence[Part]) -> str:
    """Attention over a question and its answer, in each language."""
    part = next(part for part in parts if part.task == "questions" and part.column == COLUMNS[1])
    model = load(workdir / part.name)
    assert isinstance(model, TaskModel)
    questions = read_data(read_words(part.words).config).dev
    shown = []
    for example in (questions[0], questions[-1]):
        answer = model.predict([(example.text, example.context)])[0]
        said = f"{example.text} — {answer}"
        shown.append(f"<h3>{html.escape(said)}</h3>{draw_attention(model, example)}")
    return "".join(shown)
