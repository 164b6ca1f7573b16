"""Figures as a notebook shows them: one document, readable on light and dark, with nothing cut off."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.report.figures import Bars, Dots, Grid, Lines
from bert_elmo_jax.report.show import SHEET, show

SVG = "{http://www.w3.org/2000/svg}"
CLOUD = Dots("배: layer 1", np.random.default_rng(0).normal(size=(30, 2)), ["ship", "pear"] * 15)
MAP = Grid("layer 1", ["[CLS]", "할머니께서는"], ["[CLS]", "할머니께서는"], np.eye(2))
LINES = Lines("loss", "step", "nats", {"train": [(0, 3.0), (10, 1.0)]})


def panels(shown):
    root = ET.fromstring(shown._repr_svg_())
    return root, [(panel, [float(panel.get(name)) for name in ("x", "y", "width", "height")]) for panel in root[1:]
                  if panel.tag == f"{SVG}svg"]  # fmt: skip


def test_it_is_a_document_of_its_own():
    root, (_,) = panels(show(CLOUD))
    assert root.tag == f"{SVG}svg"  # with its namespace, without which a browser shows nothing
    assert float(root.get("width")) <= SHEET
    assert float(root.get("height")) > 0
    background = root[0]
    assert background.tag == f"{SVG}rect"
    assert background.get("fill") != root.get("fill")  # readable on any notebook theme
    assert "KR" in root.get("font-family")
    assert "배: layer 1" in "".join(root.itertext())


@pytest.mark.parametrize("figures", [[CLOUD] * 3, [LINES, CLOUD, CLOUD, MAP], [CLOUD] * 7, [MAP]], ids=len)
def test_panels_lie_side_by_side_and_do_not_overlap(figures):
    root, drawn_panels = panels(show(*figures))
    assert len(drawn_panels) == len(figures)
    boxes = [box for _, box in drawn_panels]
    for n, (x, y, width, height) in enumerate(boxes):
        assert x >= 0
        assert y >= 0
        assert x + width <= float(root.get("width")) + 1
        assert y + height <= float(root.get("height")) + 1
        for other_x, other_y, other_width, other_height in boxes[:n]:
            side_by_side = x >= other_x + other_width or other_x >= x + width
            assert side_by_side or y >= other_y + other_height or other_y >= y + height
    if len(figures) == 3:
        assert len({y for _, y, _, _ in boxes}) == 1  # three fit into one line


def test_a_wide_figure_keeps_its_proportions():
    wide = Grid("w", ["a"], [str(n) for n in range(90)], np.zeros((1, 90)))
    root, ((panel, (_, _, width, height)),) = panels(show(wide))
    _, _, inner_width, inner_height = map(float, panel.get("viewBox").split())
    assert inner_width > SHEET >= float(root.get("width"))
    assert width / height == pytest.approx(inner_width / inner_height, rel=0.01)


def test_empty_figures_are_refused():
    with pytest.raises(ValueError, match="no figure was given: show"):
        show()
    with pytest.raises(ValueError, match="'empty' has no points to draw"):
        show(Lines("empty", "", "", {}))


@given(st.text(max_size=12))
def test_any_words_make_a_well_formed_document(word):
    drawn = show(Bars(word, [word], {word: [0.5]}), Grid(word, [word], [word], np.ones((1, 1))))._repr_svg_()
    ET.fromstring(drawn)
    drawn.encode("utf-8")  # lone surrogates have no UTF-8, and a notebook is stored in it
