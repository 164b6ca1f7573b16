"""The end of a pretraining: the mean of its last checkpoints, translations, and commands that use the model."""

import dataclasses
import html
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
from ml_collections import ConfigDict

from bert_elmo_jax import train
from bert_elmo_jax.families.family import Inputs
from bert_elmo_jax.runs.data_facts import draw_data
from bert_elmo_jax.runs.run_report import show_figures
from bert_elmo_jax.runs.start_run import say
from bert_elmo_jax.runs.trainable import Ending, Evaluate, Section


def finish_pretraining(
    config: ConfigDict,
    inputs: Inputs,
    corpora: Mapping[str, Mapping[str, Any]],
    workdir: Path,
    state: train.State,
    evaluate: Evaluate,
) -> Ending:
    """Write the mean of the last checkpoints and the translations that a config asks for; return the report's sections.

    All processes of a run call it, because they read and write checkpoints together. `corpora` are facts by folder.
    """
    sections = [suggest_next(workdir, inputs), draw_data(corpora)]
    if (config.get("average") or 1) > 1:
        average = train.write_average(
            workdir, config.average, lambda mean: evaluate(dataclasses.replace(state, params=mean))
        )
        sections.insert(0, describe_average(average))
        if jax.process_index() == 0:
            say(f"the mean of the last {len(average['steps'])} checkpoints: {show_figures(average['figures'])}")
    if config.get("translations"):
        sections = [*add_translations(workdir, config, next(iter(corpora))), *sections]
    return Ending(sections)


def add_translations(run: Path, config: ConfigDict, corpus: str) -> list[Section]:
    """Translate held-out texts, print and write their scores, and return their section of the report, if any."""
    from bert_elmo_jax.runs.translation_scores import describe_translations, score_held_out, translate_held_out

    texts = translate_held_out(run, config, corpus)
    if texts is None or jax.process_index() > 0:
        return []
    figures = score_held_out(run, config, texts)
    say(f"{len(texts.translations):,} held-out texts: {show_figures(figures)}")
    return [describe_translations(texts, figures)]


def describe_average(average: Mapping[str, Any]) -> Section:
    """Return a section of the report: the held-out figures of the mean of the last checkpoints.

    >>> describe_average({"steps": [90, 100], "figures": {"held_out/accuracy": 0.98765}})[1]
    '<p>held_out/accuracy 0.9877. The mean of the checkpoints of steps 90, 100, which load reads.</p>'
    """
    figures = show_figures(average["figures"])
    steps = ", ".join(map(str, average["steps"]))
    text = f"{figures}. The mean of the checkpoints of steps {steps}, which load reads."
    return "The mean of the last checkpoints", f"<p>{html.escape(text)}</p>"


def suggest_next(run: Path, inputs: Inputs) -> Section:
    """Return a section of the report: commands that use the pretrained model.

    >>> from bert_elmo_jax.families.pieces import Pieces
    >>> from bert_elmo_jax.families.words import Words
    >>> "--init=runs/bert " in suggest_next(Path("runs/bert"), Pieces())[1]
    True
    >>> "--config.encoder=runs/elmo " in suggest_next(Path("runs/elmo"), Words())[1]
    True
    """
    steps = inputs.next_steps(run)
    return "What next", "".join(f"<p>{title}:</p><pre>{html.escape(code)}</pre>" for title, code in steps)
