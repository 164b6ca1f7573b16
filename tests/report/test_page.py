"""What is written: SVG that is well formed whatever the words, a table, a page, PNG files that can show Hangul."""

import csv
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from bert_elmo_jax.report import png
from bert_elmo_jax.report.figures import Bars, Dots, Grid, Lines, svg
from bert_elmo_jax.report.page import write_page
from bert_elmo_jax.report.results import Result, cells_of, plain_table, with_published, write_csv

NASTY = '<배> & "눈"'
FIGURES = [
    Lines(NASTY, "layer", "%", {NASTY: [(0.0, 1.0), (2.0, 3.0)], **{f"m{n}": [(1.0, 2.0)] for n in range(10)}}),
    Lines("one point", "share", "%", {"배": [(1.0, 50.0)]}, logarithmic=True),
    Bars(NASTY, ["layer 0", NASTY], {NASTY: [0.3, 0.7], "output": [0.5, 0.5]}),
    Dots("배", np.random.default_rng(0).normal(size=(30, 2)), ["배.ship", "배.pear", NASTY] * 10),
    Dots("all the same", np.zeros((4, 2)), ["a", "b"] * 2),
    Grid(NASTY, ["1", "2"], ["1", "2", "3"], np.array([[0.0, 0.5, 1.0], [0.1, 0.2, 0.3]])),
]


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: type(figure).__name__)
def test_figures_are_well_formed(figure):
    drawn = svg(figure)
    root = ET.fromstring(drawn)
    numbers = [float(x) for part in root.iter() for name, x in part.items() if name in ("x", "y", "cx", "cy", "r")]
    assert np.isfinite(numbers).all()
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    assert max(float(p.get("cy", 0)) for p in root.iter()) <= height
    assert max(float(p.get("cx", 0)) for p in root.iter()) <= width


def test_lines_without_points():
    assert "no figure" in svg(Lines("", "", "", {}))


def test_the_page_and_the_table(tmp_path):
    results = with_published([Result("pos", NASTY, "1", 0.9), Result("배 (ko), probe", "a", "0", 1 / 3, 12)])
    assert [r.task for r in results] == ["pos"] * 5 + ["배 (ko), probe"]
    page = write_page(tmp_path, NASTY, results, FIGURES, [("Neighbours", "<p>배</p>")], {"words": ["배"]})
    text = page.read_text(encoding="utf-8")
    assert "&lt;배&gt; &amp; &quot;눈&quot;" in text
    assert NASTY not in text
    assert 'name="viewport"' in text
    assert "overflow-x:auto" in text  # the table scrolls by itself on a telephone
    assert "http" not in text  # nothing is fetched
    assert text.count("<svg") == len(FIGURES)
    assert "97.3" in text
    with open(write_csv(tmp_path / "table.csv", results), encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0]["encoder"] == NASTY
    assert float(rows[-1]["score"]) == 1 / 3
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report.html", "table.csv"]
    lines = plain_table(cells_of(results)).splitlines()
    assert lines[0].split() == ["task", "encoder", "layer", "%", "of", "note"]


def test_png_without_matplotlib_names_the_extra(monkeypatch, tmp_path):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'bert_elmo_jax\[figures\]'"):
        png.write_png(FIGURES[0], tmp_path / "a.png")


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: type(figure).__name__)
def test_png(figure, tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra `figures`")
    if png.HANGUL.search(png.words_of(figure)):
        try:
            png.font_for("배")
        except ValueError as error:
            assert "no installed font has Hangul" in str(error)
            pytest.skip("no installed font has Hangul")
    file = png.write_png(figure, tmp_path / "a.png")
    assert file.read_bytes().startswith(b"\x89PNG")


def test_names_of_a_grid_do_not_run_into_one_another():
    short, long = (
        ET.fromstring(svg(Grid("", names, names, np.eye(2)))) for names in (["1", "2"], ["[CLS]", "할머니께서는"])
    )
    upright = [text for text in long.iter("text") if "rotate(-90)" in text.get("transform", "")]
    assert [text.text for text in upright] == ["[CLS]", "할머니께서는"]
    assert not [text for text in short.iter("text") if text.get("transform")]
    for root in (short, long):
        width, height = map(float, root.attrib["viewBox"].split()[2:])
        for cell in root.iter("rect"):
            assert float(cell.get("x")) + float(cell.get("width")) <= width
            assert float(cell.get("y")) + float(cell.get("height")) <= height
    first = min(float(cell.get("x")) for cell in long.iter("rect"))
    assert first > 7 * 12  # six syllables, each as wide as two letters, stand left of it
