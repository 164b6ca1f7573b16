"""Figures as plain data: what `svg.py` draws for pages and notebooks, and `png.py` with matplotlib.

`across` and `up` name the axes with their units; pages show the `note`, one sentence, below the figure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from bert_elmo_jax.report.language import Phrase

INK, PALE = "#28a", "#9ab"  # both can be seen on light and dark backgrounds
COLOURS = (INK, "#c52", "#283", "#a3a", "#b80", "#888", "#07a", "#d27")

Number = int | float


class Titled:
    """A figure prints as its kind and title, without its numbers.

    >>> Lines("loss", "step", "", {"train": [(1, 2.0)]})
    Lines('loss')
    """

    title: str
    note: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.title!r})"


@dataclass(frozen=True, repr=False)
class Lines(Titled):
    """One line per name, through points (x, y); `logarithmic` puts the x axis on a logarithmic scale."""

    title: str
    across: str
    up: str
    series: Mapping[str, Sequence[tuple[Number, Number]]]
    logarithmic: bool = False
    note: str = Phrase("Each dot is one measurement; a line connects the dots of one name.")


@dataclass(frozen=True, repr=False)
class Curve(Titled):
    """One value over many steps; a noisy one is drawn thin, with its running mean on top."""

    title: str
    points: Sequence[tuple[float, float]]
    noisy: bool = True
    up: str = ""
    note: str = Phrase("The thin line is every step, the thick line a running mean.")
    across: str = Phrase("step")


@dataclass(frozen=True, repr=False)
class Bars(Titled):
    """One group of bars per name: a share between 0 and 1 for each label."""

    title: str
    labels: Sequence[str]
    series: Mapping[str, Sequence[Number]]
    note: str = Phrase("The shares of a group add up to 1.")


@dataclass(frozen=True, eq=False, repr=False)
class Dots(Titled):
    """Points coloured by their group; points at one place become a larger dot with their number."""

    title: str
    points: Float[np.ndarray, "N 2"]
    groups: Sequence[str]
    across: str = ""
    up: str = ""
    note: str = Phrase(
        "Each dot is one example, in the colour of its group; larger ones are several, with their number."
    )


@dataclass(frozen=True, repr=False)
class Scatter(Titled):
    """Predicted values (up) against true values (across), with the diagonal."""

    title: str
    points: Sequence[tuple[float, float]]
    note: str = Phrase("Each dot is one example; on the diagonal, the prediction is exact.")
    across: str = Phrase("expected")
    up: str = Phrase("predicted")


@dataclass(frozen=True, eq=False, repr=False)
class Grid(Titled):
    """A matrix with named rows and columns; full colour is its largest value, which the scale below it names."""

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Float[np.ndarray, "R C"]
    note: str = Phrase("The stronger the colour, the larger the value; the scale ends at the largest one.")


@dataclass(frozen=True, eq=False, repr=False)
class Arcs(Titled):
    """Lines from words (left) to words (right), the wider the larger the value; rows of zeros have no lines.

    The widest line is the largest value. If one word alone has lines, their values stand on the right.
    """

    title: str
    words: Sequence[str]
    targets: Sequence[str]
    values: Float[np.ndarray, "W V"]
    note: str = Phrase("The wider a line, the more the word on the left attends to the word on the right.")


@dataclass(frozen=True, repr=False)
class Panels(Titled):
    """Figures in columns, each column below its name."""

    title: str
    columns: Mapping[str, Sequence["Figure"]]
    note: str = ""


Figure = Lines | Bars | Dots | Grid | Arcs | Panels  # as PNG, too
Drawable = Figure | Curve | Scatter
