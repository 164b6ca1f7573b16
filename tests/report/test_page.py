"""SVG is well formed for any words; pages, tables; PNG files show Hangul."""

import csv
import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bert_elmo_jax.report import png
from bert_elmo_jax.report.figure_files import write_figures
from bert_elmo_jax.report.figures import COLOURS, Arcs, Bars, Curve, Dots, Grid, Lines, Panels, Scatter
from bert_elmo_jax.report.page import STYLE, draw_details, draw_figures, draw_json, draw_table, write_page
from bert_elmo_jax.report.results import Result, add_published, format_table, make_cells, write_results
from bert_elmo_jax.report.svg import POINTS, draw_svg, list_ticks, smooth, thin_out

ROOT = Path(__file__).parents[2]
NASTY = '<배> & "눈"'
FIGURES = [
    Lines(NASTY, "layer", "%", {NASTY: [(0.0, 1.0), (2.0, 3.0)], **{f"m{n}": [(1.0, 2.0)] for n in range(10)}}),
    Lines("one point", "share", "%", {"배": [(1.0, 50.0)]}, logarithmic=True),
    Bars(NASTY, ["layer 0", NASTY], {NASTY: [0.3, 0.7], "output": [0.5, 0.5]}),
    Dots("배", np.random.default_rng(0).normal(size=(30, 2)), ["배.ship", "배.pear", NASTY] * 10),
    Dots("all the same", np.zeros((4, 2)), ["a", "b"] * 2),
    Grid(NASTY, ["1", "2"], ["1", "2", "3"], np.array([[0.0, 0.5, 1.0], [0.1, 0.2, 0.3]])),
    Arcs(NASTY, ["배", NASTY], ["배", NASTY], np.array([[0.0, 0.0], [0.1, 0.03]])),
    Arcs("nothing", ["배"], ["배", "b"], np.zeros((1, 2))),
]
PANELS = Panels("side by side", {NASTY: [FIGURES[2], FIGURES[6]], "b": [FIGURES[3]]}, "One sentence.")
MORE = [Curve(NASTY, [(float(step), math.sin(step)) for step in range(100)]), Scatter(NASTY, [(1.0, 2.0), (3.0, -1.0)])]


@pytest.mark.parametrize("figure", [*FIGURES, *MORE, PANELS], ids=lambda figure: type(figure).__name__)
def test_figures_are_well_formed(figure):
    drawn = draw_svg(figure)
    root = ET.fromstring(drawn)
    numbers = [float(x) for part in root.iter() for name, x in part.items() if name in ("x", "y", "cx", "cy", "r")]
    assert np.isfinite(numbers).all()
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    assert max(float(p.get("cy", 0)) for p in root.iter()) <= height
    assert max(float(p.get("cx", 0)) for p in root.iter()) <= width


@pytest.mark.parametrize("figure", FIGURES + MORE, ids=lambda figure: type(figure).__name__)
def test_figures_have_a_title_and_a_sentence(figure):
    root = ET.fromstring(draw_figures([figure]))
    caption, drawing, note = root[0]
    assert (root.get("class"), caption.tag, drawing.tag, note.tag) == ("figures", "figcaption", "svg", "p")
    assert caption.text == figure.title
    assert note.text == figure.note
    assert note.text.endswith(".")
    # Text of 12 units is 9.6 to 14.4 pixels high; a figure that has no room for that scrolls.
    least, most = (
        float(size) / float(drawing.get("viewBox").split()[2]) for size in re.findall(r"[\d.]+", drawing.get("style"))
    )
    assert (least, most) == pytest.approx((0.8, 1.2), abs=0.01)


@pytest.mark.parametrize("figure", [figure for figure in FIGURES + MORE if hasattr(figure, "up")])
def test_both_axes_are_named(figure):
    named = replace(figure, up="nats", across="steps") if hasattr(figure, "across") else replace(figure, up="nats")
    words = [text.text for text in ET.fromstring(draw_svg(named)).iter("text")]
    assert "nats" in words
    assert {"steps", "step"} & set(words)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (1, 1500), (0.29, 0.54), (-1e30, 1e30), (1e-7, 3e-6), (99.5, 100.5)])
def test_ticks_are_round_and_inside(low, high):
    ticks = list_ticks(low, high)
    assert 2 <= len(ticks) <= 6
    assert low <= ticks[0] <= ticks[-1] <= high * (1 + 1e-9)
    assert all(len(f"{tick:.2g}") >= len(f"{tick:.4g}") for tick in ticks if abs(tick) < 90)


def contrast(one, other):
    """Return the contrast of two colours as WCAG 2 defines it."""

    def luminance(colour):
        digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
        parts = [int(digits[n : n + 2], 16) / 255 for n in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def test_text_is_readable_in_both_themes():
    assert contrast("#fff", "#000000") == pytest.approx(21)
    light, dark = (dict(re.findall(r"--(\w+):(#\w+)", part)) for part in STYLE.split("prefers-color-scheme:dark"))
    assert set(light) == set(dark) == {"paper", "ink", "soft", "box", "rule", "link"}
    for theme in (light, dark):
        for ground in ("paper", "box"):
            assert min(contrast(theme[text], theme[ground]) for text in ("ink", "soft", "link")) >= 4.5
        assert min(contrast(colour, theme["paper"]) for colour in COLOURS) >= 3  # lines and dots
    # Colours of text come from these pairs alone.
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "bert_elmo_jax").rglob("*.py"))
    assert set(re.findall(r"[;{]color:([^;}\n]+)", pages)) <= {"var(--ink)", "var(--soft)", "var(--link)", "#222"}


def test_panels_of_dots_have_one_height_and_dots_at_one_place_are_counted():
    apart, together = np.random.default_rng(0).normal(size=(40, 2)), np.repeat([[0.0, 0.0], [5.0, 1.0]], 20, axis=0)
    groups = ["배.pear", "배.ship"] * 20
    drawn = [ET.fromstring(draw_svg(Dots("", points, groups))) for points in (apart, together)]
    assert len({root.get("viewBox") for root in drawn}) == 1
    texts = [text.text for text in drawn[1].iter("text")]
    assert texts.count("10") == 4  # of two groups at two places
    tips = [title.text for title in drawn[1].iter("title")]
    assert tips == ["배.pear: 10", "배.ship: 10"] * 2
    assert "10" not in [text.text for text in drawn[0].iter("text")]


@pytest.mark.parametrize("largest", [0.13, 1.0])
def test_the_largest_weight_can_be_seen_however_small(largest):
    values = largest * np.array([[0.1, 1.0], [0.0, 0.0]])
    grid, arcs = (ET.fromstring(draw_svg(kind("", ["a", "b"], ["a", "b"], values))) for kind in (Grid, Arcs))
    assert max(float(cell.get("fill-opacity")) for cell in grid.iter("rect")) == 1
    assert f"{largest:.2g}" in [text.text for text in grid.iter("text")]  # the scale says what full colour is
    lines = [(float(line.get("stroke-width")), float(line.get("opacity"))) for line in arcs.iter("path")]
    assert lines[-1] == (8, 1)
    assert min(lines) > (1, 0.3)
    assert f"{largest:.2f}" in [text.text for text in arcs.iter("text")]


def test_figure_files_of_a_stage_are_larger(tmp_path):
    sizes = []
    for stage in (False, True):
        [path] = write_figures(tmp_path, {"a": PANELS}, stage=stage)
        sizes.append(float(ET.parse(path).getroot().get("width")))
    assert sizes[1] == pytest.approx(3 * sizes[0], abs=3)


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    "figure",
    [
        Lines("", "", "", {}),
        Lines("", "", "", {"배": [(1, NAN), (INF, 2.0)], "bank": []}),
        Lines("", "", "", {"배": [(0, 1.0), (-1, 2.0)]}, logarithmic=True),
        Bars("", [], {}),
        Bars("", ["a"], {"배": [NAN], "bank": [INF]}),
        Dots("", np.zeros((0, 2)), []),
        Dots("", np.array([[0.0, NAN], [INF, 1.0]]), ["a", "b"]),
        Scatter("", []),
        Scatter("", [(NAN, 1.0), (1.0, -INF)]),
    ],
    ids=repr,
)
def test_a_figure_without_points_is_a_paragraph(figure):
    assert draw_svg(figure) == "<p>no figure to draw</p>"


def test_points_that_are_not_finite_are_left_out():
    points, places = [(1.0, NAN), (1.0, 2.0), (INF, 1.0), (3.0, 4.0)], np.array([[0.0, NAN], [1, 2], [3, 4]])
    for figure, finite_figure in (
        (Lines("", "", "", {"a": points, "b": [(1, INF)]}), Lines("", "", "", {"a": points[1::2], "b": []})),
        (
            Lines("", "", "", {"a": [(0, 5.0), *points]}, logarithmic=True),
            Lines("", "", "", {"a": points[1::2]}, logarithmic=True),
        ),
        (Dots("", places, ["b", "a", "b"]), Dots("", places[1:], ["a", "b"])),
        (Scatter("", points), Scatter("", points[1::2])),
    ):
        assert draw_svg(figure) == draw_svg(finite_figure)
    bars = ET.fromstring(draw_svg(Bars("", ["a", "b", "c"], {"배": [NAN, INF, 0.5]})))
    assert [text.text for text in bars.iter("text")] == ["배", "a", "–", "b", "–", "c", "0.50"]
    assert [float(bar.get("width")) > 0 for bar in bars.iter("rect")] == [False, False, True]


def test_the_page_and_the_table(tmp_path):
    results = add_published([Result("pos", NASTY, "1", 0.9), Result("배 (ko), probe", "a", "0", 1 / 3, 12)])
    assert [r.task for r in results] == ["pos"] * 5 + ["배 (ko), probe"]
    names, *cells = make_cells(results)
    top = draw_table(names, cells) + draw_figures(FIGURES)
    sections = [("", top), (NASTY, draw_details(NASTY, "<p>배</p>")), ("Settings", draw_json({"words": [NASTY]}))]
    page = write_page(tmp_path / "report.html", NASTY, sections)
    text = page.read_text(encoding="utf-8")
    assert "&lt;배&gt; &amp; &quot;눈&quot;" in text
    assert NASTY not in text
    assert 'name="viewport"' in text
    assert text.count('<div class="scroll" tabindex="0"><table>') == text.count("<table>") == 1  # scrolls on a phone
    assert "http" not in text  # no requests
    assert text.count("<svg") == len(FIGURES)
    assert "97.3" in text
    with open(write_results(tmp_path / "table.csv", results), encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0]["encoder"] == NASTY
    assert float(rows[-1]["score"]) == 1 / 3
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report.html", "table.csv"]
    lines = format_table(make_cells(results)).splitlines()
    assert lines[0].split() == ["task", "encoder", "layer", "%", "of", "note"]


def test_png_without_matplotlib_names_the_extra(monkeypatch, tmp_path):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'bert_elmo_jax\[figures\]'"):
        png.write_png(FIGURES[0], tmp_path / "a.png")


@pytest.mark.parametrize("figure", [*FIGURES, PANELS], ids=lambda figure: type(figure).__name__)
def test_png(figure, tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra `figures`")
    if png.HANGUL.search(png.collect_words(figure)):
        try:
            png.find_font("배")
        except ValueError as error:
            assert "no installed font has Hangul" in str(error)
            pytest.skip("no installed font has Hangul")
    file = png.write_png(figure, tmp_path / "a.png")
    assert file.read_bytes().startswith(b"\x89PNG")


def test_names_of_a_grid_do_not_run_into_one_another():
    short, long = (
        ET.fromstring(draw_svg(Grid("", names, names, np.eye(2)))) for names in (["1", "2"], ["[CLS]", "할머니께서는"])
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


@pytest.mark.parametrize("values", [[1.0], [2.0, 2.0], [math.inf, 1.0], [-1e30, 1e30], list(range(5000))])
def test_any_curve_stays_inside_its_frame(values):
    drawn = draw_svg(Curve("", [(float(step), float(value)) for step, value in enumerate(values, 1)]))
    points = drawn.split('points="')[-1].split('"')[0].split()
    for point in points:
        x, y = map(float, point.split(","))
        assert 0 <= x <= 560
        assert 0 <= y <= 260


def test_no_finite_value():
    assert draw_svg(Curve("", [(1.0, math.nan)])) == "<p>no finite value</p>"


def test_many_points_are_thinned_and_smoothed_without_moving():
    points = [(float(step), float(step)) for step in range(1, 100_001)]
    few = thin_out(points)
    assert len(few) <= POINTS
    assert sum(value for _, value in few) / len(few) == pytest.approx(50_000, rel=0.01)
    assert smooth([(1.0, 5.0)] * 40) == [(1.0, 5.0)] * 40


def test_cells_are_escaped_and_texts_are_wide():
    table = '<div class="scroll" tabindex="0"><table><tr><th>a</th></tr><tr><td>&lt;b&gt;</td></tr></table></div>'
    assert draw_table(["a"], [["<b>"]]) == table
    assert draw_table(["text", "note"], []).count("min-width:14em") == 2
