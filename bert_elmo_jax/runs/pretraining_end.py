"""The end of a pretraining: the mean of its last checkpoints, translations, and commands that use the model."""

import dataclasses
import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
from ml_collections import ConfigDict

from bert_elmo_jax import train
from bert_elmo_jax.families.family import Family, Inputs
from bert_elmo_jax.files import read_json
from bert_elmo_jax.inference.run_directory import best_step
from bert_elmo_jax.report.language import Translate, english
from bert_elmo_jax.report.page import draw_code, draw_table
from bert_elmo_jax.report.svg import format_number
from bert_elmo_jax.runs.data_facts import draw_data
from bert_elmo_jax.runs.model_facts import describe_model
from bert_elmo_jax.runs.run_report import show_figures
from bert_elmo_jax.runs.start_run import say
from bert_elmo_jax.runs.trainable import BEFORE, Ending, Evaluate, Section
from bert_elmo_jax.train.metrics import read_metrics


def finish_pretraining(
    config: ConfigDict,
    family: Family,
    score: str,
    corpora: Mapping[str, Mapping[str, Any]],
    workdir: Path,
    state: train.State,
    evaluate: Evaluate,
    translate: Translate = english,
) -> Ending:
    """Write the mean of the last checkpoints and the translations that a config asks for; return the report's sections.

    All processes of a run call it, because they read and write checkpoints together. `score` chose the best checkpoint.
    `corpora` are facts by folder.
    """
    more: list[Section] = []
    if (config.get("average") or 1) > 1:
        average = train.write_average(
            workdir, config.average, lambda mean: evaluate(dataclasses.replace(state, params=mean))
        )
        more.append(describe_average(average, translate))
        if jax.process_index() == 0:
            say(f"the mean of the last {len(average['steps'])} checkpoints: {show_figures(average['figures'])}")
    if config.get("translations"):
        more = [*add_translations(workdir, config, next(iter(corpora)), translate), *more]
    if jax.process_index() > 0:
        return Ending()
    name = family.called.partition(" ")[2]
    run = read_json(workdir / "run.json", default={})
    sections = [
        draw_figures_reached(
            read_metrics(workdir), read_json(workdir / BEFORE, default={}), score, translate, best_step(workdir)
        ),
        *more,
        describe_model(name, state.params, run, translate),
        draw_data(corpora, translate),
        suggest_next(workdir, family.inputs, translate),
    ]
    kind = (
        "Pretraining of {model}" if run.get("program", "pretrain") == "pretrain" else "Further pretraining of {model}"
    )
    names = ", ".join(Path(folder).name for folder in corpora)
    return Ending(sections, title=f"{translate(kind, model=name)}: {names}")


def draw_figures_reached(
    lines: Sequence[Mapping[str, Any]],
    before: Mapping[str, Any],
    score: str,
    translate: Translate = english,
    kept: int | None = None,
) -> Section:
    """Return the section of the held-out figures: of the best checkpoint, before the first step, and of the last one.

    `kept` is the step of the best checkpoint that was kept: an evaluation between checkpoints may have been better.

    >>> lines = [{"step": 5, "held_out/perplexity": 9.0, "held_out/score": -2.2}]
    >>> "perplexity 9" in draw_figures_reached(lines, {}, "held_out/score")[1]
    True
    """
    measured = [line for line in lines if line.get(score) is not None]
    if not measured:
        return translate("Result"), f"<p>{html.escape(translate('There was no evaluation on held-out text.'))}</p>"
    candidates = [line for line in measured if line["step"] == kept] or measured
    best, last = max(candidates, key=lambda line: (line[score], line["step"])), measured[-1]
    # A score that is a loss with its sign changed says less than the loss or its perplexity.
    names = [
        name for name, value in best.items()
        if "/" in name and value is not None and (name != score or value >= 0)
    ]  # fmt: skip
    main = next((name for name in (score, "held_out/perplexity", *names) if name in names), score)
    headline = html.escape(f"{main} {format_number(best[main])}").replace("/", "/<wbr>")
    text = translate("At step {best} of {last}, the best checkpoint by {score} on held-out text.",
                     best=f"{best['step']:,}", last=f"{lines[-1]['step']:,}", score=score)  # fmt: skip
    titles = [
        translate("before the first step"), translate("best, step {step}", step=f"{best['step']:,}"),
        translate("last, step {step}", step=f"{last['step']:,}"),
    ]  # fmt: skip
    shown = [
        (title, column) for title, column in zip(titles, (before, best, last if last is not best else {})) if column
    ]
    cells = [
        [name, *("–" if column.get(name) is None else format_number(column[name]) for _, column in shown)]
        for name in names
    ]
    table = draw_table(["", *(title for title, _ in shown)], cells)
    return translate("Result"), f'<p class="score">{headline}</p><p>{html.escape(text)}</p>{table}'


def add_translations(run: Path, config: ConfigDict, corpus: str, translate: Translate = english) -> list[Section]:
    """Translate held-out texts, print and write their scores, and return their section of the report, if any."""
    from bert_elmo_jax.runs.translation_scores import describe_translations, score_held_out, translate_held_out

    texts = translate_held_out(run, config, corpus)
    if texts is None or jax.process_index() > 0:
        return []
    figures = score_held_out(run, config, texts)
    say(f"{len(texts.translations):,} held-out texts: {show_figures(figures)}")
    return [describe_translations(texts, figures, translate)]


def describe_average(average: Mapping[str, Any], translate: Translate = english) -> Section:
    """Return a section of the report: the held-out figures of the mean of the last checkpoints.

    >>> describe_average({"steps": [90, 100], "figures": {"held_out/accuracy": 0.98765}})[1]
    '<p>held_out/accuracy 0.9877. The mean of the checkpoints of steps 90, 100, which load reads.</p>'
    """
    figures = show_figures(average["figures"])
    steps = ", ".join(map(str, average["steps"]))
    text = f"{figures}. " + translate("The mean of the checkpoints of steps {steps}, which load reads.", steps=steps)
    return translate("The mean of the last checkpoints"), f"<p>{html.escape(text)}</p>"


def suggest_next(run: Path, inputs: Inputs, translate: Translate = english) -> Section:
    """Return a section of the report: commands that use the pretrained model.

    >>> from bert_elmo_jax.families.pieces import Pieces
    >>> from bert_elmo_jax.families.words import Words
    >>> "--init=runs/bert " in suggest_next(Path("runs/bert"), Pieces())[1]
    True
    >>> "--config.encoder=runs/elmo " in suggest_next(Path("runs/elmo"), Words())[1]
    True
    """
    steps = inputs.next_steps(run)
    parts = (f"<p>{html.escape(translate(title))}:</p>{draw_code(code)}" for title, code in steps)
    return translate("Next steps"), "".join(parts)
