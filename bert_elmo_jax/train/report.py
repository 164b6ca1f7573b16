"""`report.html` of a run: a curve for every value in `metrics.jsonl`."""

from collections.abc import Sequence
from pathlib import Path

from bert_elmo_jax.files import read_json
from bert_elmo_jax.report.figures import Curve
from bert_elmo_jax.report.page import draw_figures, draw_json, write_page
from bert_elmo_jax.report.svg import format_number
from bert_elmo_jax.train.metrics import read_metrics


def write_report(run: str | Path, sections: Sequence[tuple[str, str]] = ()) -> Path:
    """Write the curves of `metrics.jsonl`, further sections (heading, HTML), and the configuration in `run.json`.

    >>> import tempfile
    >>> from bert_elmo_jax.train.metrics import Metrics
    >>> run = tempfile.mkdtemp()
    >>> with Metrics(run, 0) as metrics:
    ...     metrics.write(1, {"loss": 2.0}); metrics.write(2, {"loss": 1.0})
    >>> write_report(run).read_text(encoding="utf-8").count("<svg")
    1
    """
    folder = Path(run)
    lines = read_metrics(folder)
    curves: dict[str, list[tuple[float, float]]] = {}
    for line in lines:
        for name, value in line.items():
            if name != "step" and value is not None:
                curves.setdefault(name, []).append((float(line["step"]), float(value)))
    # The best checkpoint is chosen by a score to maximise; where that is a loss with its sign changed, it is left out.
    known = list(curves.values())
    shown = [name for name in curves if curves[name][-1][1] >= 0 or _negate(curves[name]) not in known]
    names = sorted(shown, key=lambda name: ("/" not in name, name != "loss", name))  # held-out values first
    figures = [
        Curve(f"{name}: {format_number(curves[name][-1][1])}", curves[name], name != "learning_rate") for name in names
    ]
    about = (
        f"<p>{len(lines):,} steps. The thin curve of a figure is every step, the thick one a running mean.</p>"
        f"{draw_figures(figures)}"
    )
    settings = draw_json(read_json(folder / "run.json", default={}))
    return write_page(folder / "report.html", folder.name, [("", about), *sections, ("Configuration", settings)])


def _negate(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    return [(step, -value) for step, value in points]
