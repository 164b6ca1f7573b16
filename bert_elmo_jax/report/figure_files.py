"""Figures as files for slides and pages: SVG always, PNG on request."""

from collections.abc import Mapping
from pathlib import Path

from bert_elmo_jax.files import write_text
from bert_elmo_jax.report.figures import Figure
from bert_elmo_jax.report.png import write_png
from bert_elmo_jax.report.show import show


def write_figures(
    folder: str | Path, figures: Mapping[str, Figure], *, png: bool = False, stage: bool = False
) -> list[Path]:
    """Write each figure below its name and return the paths; `stage` is for a projector: larger, with larger type.

    >>> from tempfile import mkdtemp
    >>> from bert_elmo_jax.report.figures import Bars
    >>> [path.name for path in write_figures(mkdtemp(), {"guesses": Bars("a gap", ["ship"], {"BERT": [0.5]})})]
    ['guesses.svg']
    """
    paths = []
    for name, figure in figures.items():
        paths.append(write_text(Path(folder, f"{name}.svg"), show(figure, scale=3.0 if stage else 1.0).document + "\n"))
        if png:
            paths.append(write_png(figure, Path(folder, f"{name}.png"), stage=stage))
    return paths
