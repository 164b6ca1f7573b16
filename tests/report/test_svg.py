"""Examples of `bert_elmo_jax.report.svg`."""

import numpy as np

from bert_elmo_jax.report.figures import Bars, Curve, Dots, Grid, Lines, Scatter
from bert_elmo_jax.report.svg import POINTS, draw_svg, format_number, smooth, thin_out


def test_example_of_draw_svg():
    assert draw_svg(Lines("pos", "layer", "%", {"눈": [(0.0, 90.0), (1.0, 97.3)]})).count("<circle") == 2
    assert draw_svg(Curve("loss", [(1.0, 2.0), (2.0, 1.0)])).count("<polyline") == 1
    assert draw_svg(Bars("input", ["0", "1"], {"tagger": [0.25, 0.75]})).count("<rect") == 2
    assert draw_svg(Dots("bank", np.eye(2), ["money", "riverside"])).count("<circle") == 4
    assert draw_svg(Scatter("score", [(1.0, 1.5), (2.0, 2.0)])).count("<circle") == 2
    assert draw_svg(Grid("attention", ["1"], ["1", "2"], np.array([[0.3, 0.7]]))).count("<rect") == 2


def test_example_of_thin_out():
    assert len(thin_out([(float(n), 1.0) for n in range(2 * POINTS)])) == 600


def test_example_of_format_number():
    assert (format_number(0.00012345), format_number(1234567.0), format_number(39.66)) == (
        "0.0001234",
        "1.235e+06",
        "39.66",
    )


def test_example_of_smooth():
    assert smooth([(1.0, 5.0), (2.0, 7.0)]) == [(1.0, 6.0), (2.0, 6.0)]
