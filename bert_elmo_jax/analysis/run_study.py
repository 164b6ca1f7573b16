"""One study from its settings to the page, table and figures in its folder."""

import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any
from unicodedata import normalize

from bert_elmo_jax.analysis.studies import STUDIES, StudyOptions, detect_language
from bert_elmo_jax.files import hash_file
from bert_elmo_jax.progress_bars import progress_bar
from bert_elmo_jax.report.figure_files import write_figures
from bert_elmo_jax.report.language import Phrase, choose_language, translate_phrases, translator
from bert_elmo_jax.report.page import STAGE, draw_figures, draw_json, draw_table, write_page
from bert_elmo_jax.report.png import check_matplotlib
from bert_elmo_jax.report.results import add_published, format_table, make_cells, write_results, write_rows
from bert_elmo_jax.train.devices import describe_devices

STYLE = "td:nth-child(4),th:nth-child(4){font-weight:600}q{quotes:none}b{background:#fe9;color:#222}"
TITLES = {
    "probe": Phrase("Probes of each layer"),
    "efficiency": Phrase("Probes by the size of their training data"),
    "register": Phrase("Registers of texts"),
    "senses": Phrase("Senses of words"),
    "neighbours": Phrase("Neighbours of words in context"),
    "sentence": Phrase("One sentence"),
    "attention": Phrase("Attention heads and grammatical relations"),
    "weights": Phrase("Layer weights of tasks"),
    "toyworld": Phrase("Senses of the toy world"),
}
# Settings that only some studies read.
OF_SOME = (
    "static", "train", "dev", "test", "encoding", "limit", "tasks", "layers", "fractions", "seeds", "words", "sentence",
)  # fmt: skip
OF_PAGE = ("png", "stage", "guard_formulas", "language")  # settings of the page and its figures


def run_study(
    study_name: str,
    output: str | Path,
    settings: Mapping[str, Any],
    *,
    flags_set: Collection[str] = (),
    png: bool = False,
    stage: bool = False,
    guard_formulas: bool = False,
    language: str | None = None,
) -> Path:
    """Run a study, write its results into a folder of `output`, print its table, and return the path of its page.

    `settings` are the fields of `StudyOptions` that users set; `flags_set` names the ones that were set explicitly, and
    a study refuses any of these that it does not read. Figures are files, too: SVG, and with `png` PNG; `stage` makes
    page and figures large enough for a projector. With `guard_formulas`, a cell of the table that a spreadsheet would
    compute gets a `'` in front. `language` is the page's and the figures'; by default it is the locale's, for a page of
    one sentence the sentence's.
    """
    check_settings(study_name, settings, flags_set)
    if png:
        check_matplotlib()
    counts = {"layers": int, "fractions": float, "seeds": int}
    numbers = {name: _read_numbers(name, settings[name], kind) for name, kind in counts.items()}
    settings = {**settings, **numbers, "words": [normalize("NFC", word) for word in settings["words"]]}
    if settings["sentence"]:
        settings["sentence"] = normalize("NFC", settings["sentence"])
    if language is None and study_name == "sentence":
        language = detect_language(settings["sentence"])
    page_language = choose_language(language)
    translate = translator(page_language)
    files = [file for file in (settings["train"], settings["dev"], settings["test"]) if file and Path(file).is_file()]
    fingerprints = {file: hash_file(file) for file in files}  # taken now: a file may change during the study
    folder, models = Path(output, study_name), [*settings["model"], *settings["static"]]
    print(f"{study_name} of {', '.join(models)} -> {folder}, on {describe_devices()}", file=sys.stderr)
    with progress_bar(None, study_name, "steps", delay=1) as bar:

        def report(text: str) -> None:
            bar.set_description(text)
            bar.update()

        places: dict[str, Any] = {"vectors": Path(output, "vectors"), "language": page_language}
        study = STUDIES[study_name][0](StudyOptions(**settings, **places, report=report))
    folder.mkdir(parents=True, exist_ok=True)
    results = add_published(study.results)
    print(study.text or format_table(make_cells(results)))
    table = folder / "table.csv"
    write_rows(table, study.rows, guard_formulas) if study.rows else write_results(table, results, guard_formulas)
    figures = {f"figure_{n:02}": translate_phrases(figure, translate) for n, figure in enumerate(study.figures)}
    write_figures(folder, figures, png=png, stage=stage)
    title = translate("{study}: {models}", study=TITLES[study_name], models=", ".join(models))
    shown = {"what": study_name, "output": str(output), **settings, "fingerprints": fingerprints}
    names, *rows = translate_phrases(make_cells(results), translate)
    style = STYLE + STAGE * stage
    drawn, last = draw_figures(figures.values()), (translate("Settings"), draw_json(shown))
    path = folder / "report.html"
    if study.write_page:
        page = study.write_page(path, [("", drawn), last], style)
    else:
        top = (draw_table(names, rows) if rows else "") + drawn
        page = write_page(path, title, [("", top), *study.sections, last], style, page_language)
    print(page, file=sys.stderr)
    return page


def check_settings(study_name: str, settings: Mapping[str, Any], flags_set: Collection[str]) -> None:
    """Raise ValueError for a setting that the study lacks, or does not read.

    >>> check_settings("weights", {"model": ["runs/tagger"]}, ["words"])
    Traceback (most recent call last):
    ValueError: --words means nothing for --what=weights: leave it out
    """
    _, needed, read = STUDIES[study_name]
    if missing := [f"--{name}=…" for name in needed if not settings[name]]:
        raise ValueError(f"--what={study_name} needs {', '.join(missing)}")
    if idle := [f"--{name}" for name in OF_SOME if name in flags_set and name not in (*needed, *read)]:
        raise ValueError(f"{', '.join(idle)} means nothing for --what={study_name}: leave it out")
    if not settings["model"] and not ("static" in read and settings["static"]):
        raise ValueError(f"no encoder: give --model=…{' or --static=…' if 'static' in read else ''}")
    for name in ("model", "static"):
        if len(set(given_paths := [str(Path(path)) for path in settings[name]])) < len(given_paths):
            raise ValueError(f"--{name}={','.join(settings[name])} has a path twice: name each once")
    for name in ("tasks", "fractions", "seeds"):
        if name in settings and not settings[name]:
            raise ValueError(f"--{name}= is empty: name one or more, or leave it out")


def _read_numbers(name: str, values: Sequence[Any] | None, kind: Any) -> list[Any] | None:
    shown, kind_of_number = ",".join(map(str, values or ())), "whole " * (kind is int)
    try:
        numbers = values and [kind(value) for value in values]
    except ValueError:
        raise ValueError(f"--{name}={shown}: use {kind_of_number}numbers with commas between") from None
    if numbers and len(set(numbers)) < len(numbers):
        raise ValueError(f"--{name}={shown} has a number twice: name each once")
    return numbers  # type: ignore[return-value]
