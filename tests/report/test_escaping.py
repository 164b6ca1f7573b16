"""Reports of every kind show what comes from data as text: labels, texts, names of files and runs, tags, commands."""

import html.parser

import numpy as np
import pytest

from bert_elmo_jax.analysis import run_study as studies
from bert_elmo_jax.analysis import source_attention
from bert_elmo_jax.analysis.studies import Study
from bert_elmo_jax.analysis.word_neighbours import Neighbour, Neighbourhood, draw_neighbours
from bert_elmo_jax.data.tasks.examples import TaggedSentence, TextExample
from bert_elmo_jax.data.tasks.task import Task, task_named
from bert_elmo_jax.families.pairs import Pairs
from bert_elmo_jax.families.pieces import Pieces
from bert_elmo_jax.families.words import Words
from bert_elmo_jax.files import write_json
from bert_elmo_jax.inference.predictions import Label, Number, Tags
from bert_elmo_jax.quickstart.run_quickstart import list_lessons
from bert_elmo_jax.report.figures import Arcs, Bars, Curve, Dots, Grid, Lines, Panels, Scatter
from bert_elmo_jax.report.page import draw_code, draw_details, draw_figures, draw_json, draw_table, write_page
from bert_elmo_jax.report.results import Result
from bert_elmo_jax.runs import pretraining_end, task_report, task_result
from bert_elmo_jax.runs.model_facts import describe_model
from bert_elmo_jax.runs.run_report import write_report
from bert_elmo_jax.runs.task_scores import score_name
from bert_elmo_jax.runs.translation_scores import Translated, describe_translations
from bert_elmo_jax.train.metrics import Metrics

BAD = '<script>alert("1")</script><img src=x onerror=alert(2)>'
NAME = "<script>alert(1)&"  # a file's name cannot hold a slash


class Page(html.parser.HTMLParser):
    """A parser that collects the elements and the text of a page."""

    def __init__(self, page):
        super().__init__()
        self.names, self.text, self.handlers = [], "", []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data):
        self.text += data


def check(page, shown=BAD):
    """Check that the page shows the data as text, and has no elements from it."""
    parsed_page = Page(page)
    assert not {"script", "img"} & set(parsed_page.names) and not parsed_page.handlers
    assert shown in parsed_page.text


def write_metrics(run):
    with Metrics(run, 0) as metrics:
        metrics.write(1, {f"dev/{BAD}": 2.0})


def test_the_check_itself():
    with pytest.raises(AssertionError):
        check(f"<p>{BAD}</p>")


def test_parts_of_a_page(tmp_path):
    for figure in (
        Lines(BAD, BAD, BAD, {BAD: [(0.0, 1.0), (2.0, 3.0)]}, note=BAD),
        Curve(BAD, [(0.0, 1.0), (1.0, 2.0)]),
        Bars(BAD, [BAD], {BAD: [0.5]}),
        Dots(BAD, np.eye(2), [BAD, BAD]),
        Grid(BAD, [BAD], [BAD], np.ones((1, 1)), BAD),
        Arcs(BAD, [BAD], [BAD], np.ones((1, 1)), BAD),
        Panels(BAD, {BAD: [Bars(BAD, [BAD], {BAD: [0.5]})]}, BAD),
        Scatter(BAD, [(1.0, 2.0), (3.0, 4.0)]),
    ):
        check(draw_figures([figure]))
    for drawn in (draw_table([BAD], [[BAD]]), draw_code(BAD), draw_details(BAD, ""), draw_json(BAD.replace('"', ""))):
        check(drawn, BAD if "alert(&quot;" in drawn else BAD.replace('"', ""))
    check(write_page(tmp_path / "a.html", BAD, [(BAD, "")]).read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", ["classification", "regression", "tags", "entities"])
def test_a_fine_tuning(kind, tmp_path):
    run = tmp_path / NAME
    write_json(run / "run.json", {"text": BAD, "task": BAD, "tags": [BAD]})
    write_metrics(run)
    texts = [TextExample(f"{BAD} {n}", None, label, None, f"{NAME}.csv", 2) for n, label in enumerate((BAD, "b"))]
    tagged = [TaggedSentence((BAD, "b"), (f"B-{BAD}", "O"), f"{NAME}.conll", (1, 2), 0)]
    if kind in ("tags", "entities"):
        task = Task(kind, "tags", task_named(kind, file="a.conll").layout, labels=(f"B-{BAD}", "O"))
        dev, predictions = tagged, [Tags((BAD, "b"), ("O", f"B-{BAD}"), (0.9, 0.9))]
    elif kind == "regression":
        dev = [TextExample(BAD, None, float(n), None, f"{NAME}.csv", 2) for n in range(2)]
        task, predictions = task_named("regression"), [Number(0.5), Number(3.0)]
    else:
        task, dev = Task(kind, "classification", task_named("classification").layout, labels=(BAD, "b")), texts
        predictions = [Label("b", 0.9, {}), Label(BAD, 0.9, {})]

    class Model(task_report.TaskNetwork):
        def __init__(self):
            self.task, self._params = task, {}

    compared = task_result.compare_with_baselines(task, dev, {BAD: (dev, predictions)})
    files = {"train": {"file": BAD, "fingerprint": BAD}}
    sections = [
        task_result.draw_result(score_name(task), compared, 1, 2),
        describe_model(BAD, {}, {"init": BAD}),
        task_result.draw_task_data({"train": dev, BAD: dev}, task, files),
        *task_report.task_sections(Model(), dev, predictions),
    ]
    page = write_report(run, sections, title=BAD, command=BAD).read_text(encoding="utf-8")
    check(page)
    check(page, NAME)


@pytest.mark.parametrize("inputs", [Pieces(), Words(), Pairs()], ids=lambda inputs: inputs.name)
def test_a_pretraining(inputs, tmp_path):
    run = tmp_path / NAME
    write_json(run / "run.json", {"data": BAD})
    write_metrics(run)
    translations = describe_translations(Translated([BAD], [BAD], [BAD]), {BAD: 1.0})
    reached = pretraining_end.draw_figures_reached([{"step": 1, f"held_out/{BAD}": 1.0}], {}, f"held_out/{BAD}")
    average = pretraining_end.describe_average({"steps": [1, 2], "figures": {BAD: 1.0}})
    page = write_report(run, [reached, pretraining_end.suggest_next(run, inputs), translations, average])
    check(page.read_text(encoding="utf-8"))
    check(page.read_text(encoding="utf-8"), NAME)


def test_a_study(tmp_path, monkeypatch, capsys):
    near = (Neighbour((0, 0), (BAD, "b"), 1.0), Neighbour((1, 1), ("a", BAD), 0.5))
    study = Study([Result(BAD, BAD, "1", 0.5, 4)], [Bars(BAD, [BAD], {BAD: [0.5]})],
                  [(BAD, draw_neighbours([Neighbourhood(BAD, 1, near)]))], BAD)  # fmt: skip
    monkeypatch.setitem(studies.STUDIES, "neighbours", (lambda options: study, (), studies.OF_SOME))
    settings = {**dict.fromkeys(studies.OF_SOME), "static": [BAD], "model": [BAD], "words": [BAD], "tasks": [BAD],
                "fractions": [1], "seeds": [0], "batch_size": 1, "encoding": "utf-8"}  # fmt: skip
    page = studies.run_study("neighbours", tmp_path / NAME, settings)
    check(page.read_text(encoding="utf-8"))
    check(page.read_text(encoding="utf-8"), NAME)
    assert BAD in capsys.readouterr().out


def test_attention_to_a_source(tmp_path, monkeypatch):
    maps = source_attention.SourceAttention((BAD, "b"), (BAD,), np.full((1, 1, 1, 2), 0.5))
    monkeypatch.setattr(source_attention, "attention_to_source", lambda *arguments: maps)
    page = source_attention.write_source_attention(tmp_path / "a.html", None, [(BAD, BAD)])
    check(page.read_text(encoding="utf-8"))


def test_lessons_of_the_quickstart():
    check(list_lessons([(BAD, BAD)]))
