"""The report of a run: its sections, command and configuration, and the curves of its metrics, last."""

import html
from collections.abc import Mapping, Sequence
from pathlib import Path

from bert_elmo_jax.files import read_json
from bert_elmo_jax.report.figures import Curve
from bert_elmo_jax.report.language import Language, Translate, english, translator
from bert_elmo_jax.report.page import draw_code, draw_details, draw_figures, draw_json, write_page
from bert_elmo_jax.report.svg import format_number
from bert_elmo_jax.runs.remarks import find_remarks
from bert_elmo_jax.train.metrics import read_metrics

# The units of metrics, by the end of their names; any other is labelled with its name.
UNITS = {
    "accuracy": "share right, from 0 to 1 (higher is better)", "perplexity": "perplexity (lower is better)",
    "loss": "nats (lower is better)", "learning_rate": "factor of an update",
}  # fmt: skip


def draw_metric(name: str, curve: Sequence[tuple[float, float]], translate: Translate = english) -> Curve:
    """Return the curve of a metric with its unit, and a sentence about its first, last and extreme values."""
    unit = next((translate(unit) for end, unit in UNITS.items() if name.endswith(end)), name.rpartition("/")[2])
    values = [value for _, value in curve]
    first, last, low, high = map(format_number, (values[0], values[-1], min(values), max(values)))
    note = translate(
        "From {first} to {last}; never below {low}, never above {high}.", first=first, last=last, low=low, high=high
    )
    return Curve(f"{name}: {last}", curve, name != "learning_rate", unit, note, translate("step"))


def write_report(
    run: str | Path,
    sections: Sequence[tuple[str, str]] = (),
    remarks: Sequence[str] = (),
    *,
    title: str = "",
    language: Language = "en",
    command: str = "",
) -> Path:
    """Write sections (heading, HTML), the configuration in `run.json`, and the curves of `metrics.jsonl`.

    The first section is the result. `remarks`, and those on the metrics, follow it. `command` made the run.

    >>> import tempfile
    >>> from bert_elmo_jax.train.metrics import Metrics
    >>> run = tempfile.mkdtemp()
    >>> with Metrics(run, 0) as metrics:
    ...     metrics.write(1, {"loss": 2.0}); metrics.write(2, {"loss": 1.0})
    >>> write_report(run).read_text(encoding="utf-8").count("<svg")
    1
    """
    folder, translate = Path(run), translator(language)
    lines = read_metrics(folder)
    curves: dict[str, list[tuple[float, float]]] = {}
    for line in lines:
        for name, value in line.items():
            if name != "step" and value is not None:
                curves.setdefault(name, []).append((float(line["step"]), float(value)))
    # The best checkpoint is chosen by a score to maximise; where that is a loss with its sign changed, it is left out.
    negated = [[(step, -value) for step, value in curve] for curve in curves.values()]
    shown = [name for name in curves if curves[name][-1][1] >= 0 or curves[name] not in negated]
    names = sorted(shown, key=lambda name: ("/" not in name, name != "loss", name))  # held-out values first
    figures = [draw_metric(name, curves[name], translate) for name in names]
    note = translate("{count} steps. A thin line is every step, a thick line a running mean.", count=f"{len(lines):,}")
    about = translate("Run directory: {name}", name=folder.name)
    items = "".join(f"<li>{html.escape(translate(remark))}</li>" for remark in (*remarks, *find_remarks(lines)))
    fields = draw_details(translate("All settings"), draw_json(read_json(folder / "run.json", default={})))
    parts = [
        ("", f'<p class="about">{html.escape(about)}</p>'),
        *sections[:1],
        ("", f"<ul class=remarks>{items}</ul>" if items else ""),
        *sections[1:],
        (translate("Command"), draw_code(command, wrapped=True) + fields)
        if command
        else (translate("Settings"), fields),
        (translate("Curves"), f"<p>{html.escape(note)}</p>{draw_figures(figures)}"),
    ]
    return write_page(folder / "report.html", title or folder.name, parts, language=language)


def show_figures(figures: Mapping[str, float]) -> str:
    """Return figures as text.

    >>> show_figures({"held_out/accuracy": 0.98765})
    'held_out/accuracy 0.9877'
    """
    return ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
