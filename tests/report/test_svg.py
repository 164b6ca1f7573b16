"""Examples of `bert_elmo_jax.report.svg`."""

import numpy as np

from bert_elmo_jax.report.figures import Bars, Curve, Dots, Grid, Lines, Scatter
from bert_elmo_jax.report.svg import draw_svg


def test_example_of_draw_svg():
    assert draw_svg(Lines("pos", "layer", "%", {"눈": [(0.0, 90.0), (1.0, 97.3)]})).count("<circle") == 2
    assert draw_svg(Curve("loss", [(1.0, 2.0), (2.0, 1.0)])).count("<polyline") == 1
    assert draw_svg(Bars("input", ["0", "1"], {"tagger": [0.25, 0.75]})).count("<rect") == 2
    assert draw_svg(Dots("bank", np.eye(2), ["money", "riverside"])).count("<circle") == 4
    assert draw_svg(Scatter("score", [(1.0, 1.5), (2.0, 2.0)])).count("<circle") == 2
    assert draw_svg(Grid("attention", ["1"], ["1", "2"], np.array([[0.3, 0.7]]))).count("<rect") == 2 + 5  # the scale
