"""The table against figures computed by hand: means, deviations, the paired test, the order of rows."""

import csv
import dataclasses
import io
import json
import math
import re

import pytest

from bert_elmo_jax.report.figures import Lines


@pytest.fixture
def tabulate(sweeps, write_small, tmp_path):
    """Return the small sweep's table of given results."""
    sweep = sweeps.definition.read_sweep(write_small(), "toy")
    folders = sweeps.folders.Folders(tmp_path / "w")

    def make(scores, lost=None):
        for cell in sweep.cells:
            for point, score in zip(cell.points, scores.get((cell.row, cell.column), ())):
                run = folders.run(point)
                run.mkdir(parents=True, exist_ok=True)
                result = {"step": 1, "score": "f1", "dev": {"f1": score, "accuracy": 0.1}}
                (run / "result.json").write_text(json.dumps(result))
        return sweeps.table.read_table(sweep, folders, lost)

    make.sweep, make.folders = sweep, folders
    return make


SCORES = {
    ("a", "NER"): (0.80, 0.82, 0.84),
    ("b", "NER"): (0.79, 0.80, 0.81),
    ("c", "NER"): (0.90, 0.92, 0.94),
    ("a", "MNLI"): (0.70, 0.70, 0.70),
    ("b", "MNLI"): (0.75, 0.71, 0.73),
    ("c", "MNLI"): (0.60,),
}


def test_means_and_deviations(tabulate):
    table = tabulate(SCORES)
    score = table.scores["a", "NER"]
    assert score.mean == pytest.approx(82) and score.deviation == pytest.approx(2) and score.count == 3
    assert table.scores["c", "MNLI"].values == (pytest.approx(60), None, None)
    assert table.scores["c", "MNLI"].deviation is None


def test_a_path_has_the_gain_of_each_row_over_the_one_above(tabulate, sweeps):
    table = tabulate(SCORES)
    assert "gain" not in sweeps.report.list_cells(table)[0]
    table = dataclasses.replace(table, sweep=dataclasses.replace(table.sweep, path=True))
    gain = table.gain("b", "NER")
    assert gain.mean == pytest.approx(-2) and gain.half == pytest.approx(2.484138)
    assert table.gain("a", "NER") is None and table.gain("c", "MNLI").half is None
    head, _, second, _ = sweeps.report.list_cells(table)
    assert second[head.index("NER") + 1] == "-2.00 (-4.48 to +0.48)"
    assert "A gain is the difference to the row above" in sweeps.report.write_markdown(table)


def test_the_paired_test(tabulate):
    table = tabulate(SCORES)
    # Differences 1, 2, 3: mean 2, deviation 1, t = 2 · √3 with two degrees of freedom; p = 1 − t / √(t² + 2).
    t = 2 * math.sqrt(3)
    assert table.p("b", "NER") == pytest.approx(1 - t / math.sqrt(t * t + 2))
    assert table.p("c", "NER") is None, "differences that do not vary at all"
    assert table.p("a", "NER") is None, "the reference row"
    assert table.p("c", "MNLI") is None, "one pair"


def test_order(tabulate):
    order = tabulate(SCORES).order("MNLI")
    # Paper a > b > c, here b > a > c: two of three pairs agree, τ = (2 − 1) / 3.
    assert order.tau == pytest.approx(1 / 3) and order.pairs == 3
    [pair] = order.against
    assert (pair.better, pair.worse, pair.paper) == ("a", "b", 1.0)
    assert pair.ours == pytest.approx(-3.0) and 0 < pair.p < 1
    assert tabulate(SCORES).order("NER").pairs == 1, "the paper has no figure for c"


def test_tables_and_reports_are_written(sweeps, tabulate, tmp_path):
    lost = {tabulate.sweep.cells[5].points[1].identity: "failed: killed by signal 9"}
    table = tabulate({**SCORES, ("c", "MNLI"): ()}, lost)
    text = sweeps.report.write_markdown(table)
    assert "| a (reference) | 82.00 ± 2.00 | 90 | 70.00 ± 0.00 | 80 |" in text
    assert "| c | 92.00 ± 2.00 |  | failed: killed by signal 9 | 70 |" in text
    assert "2.48 times the standard deviation" in text
    assert "a > b (paper by 1.0, here -3.00, p = 0.12: within chance)" in text
    assert str(tmp_path) not in text and "second" not in text
    marked = tabulate({("a", "NER"): (0.1, 0.2, 0.3), ("b", "NER"): (0.11, 0.2101, 0.31)})
    assert "21.00 ± 10.00 *" in sweeps.report.write_markdown(marked)
    sweeps.report.write_tables(table, tabulate.folders, tmp_path / "out")
    sweeps.report.write_sweep_report(table, tabulate.folders, tmp_path / "out", "python -m experiments.sweep --sweep=…")
    lines = list(csv.DictReader(io.StringIO((tmp_path / "out" / "table.csv").read_text(encoding="utf-8-sig"))))
    assert len(lines) == 6 and lines[0]["scores"].split()[0] == repr(100 * 0.80)
    assert float(lines[2]["p against the reference"]) == pytest.approx(table.p("b", "NER"))
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<title>A small sweep</title>" in page and "82.00 ± 2.00" in page
    assert "python -m experiments.finetune" in page and "http" not in page.replace("https://arxiv", "")
    costs = (tmp_path / "out" / "costs.csv").read_text()
    assert costs.count("python -m experiments.") == len(tabulate.sweep.points)


def test_a_report_in_korean_has_the_same_figures(sweeps, tabulate, tmp_path):
    """Only names and descriptions from the sweep's own file are not translated."""
    table = tabulate({**SCORES, ("b", "NER"): (0.11, 0.2101, None)}, {})
    pages = []
    for language in ("en", "ko"):
        sweeps.report.write_sweep_report(table, tabulate.folders, tmp_path, "…", language)
        pages.append((tmp_path / "report.html").read_text(encoding="utf-8"))
    numbers = [sorted(re.findall(r"\d+\.\d+", re.sub(r"<style>.*?</style>", "", page))) for page in pages]
    assert numbers[0] == numbers[1]
    assert '<html lang="ko">' in pages[1]
    for english, korean in (
        ("a (reference)", "a(기준)"), (">paper<", ">논문<"), ("(2 of 3 seeds)", "(시드 3개 중 2개)"),
        ("differs from the reference row", "기준 행(a)과 다릅니다"), ("not so", "일치하지 않는 쌍"),
        ("within chance", "우연의 범위 안"), ("would be marked by chance", "우연히"), ("What it cost", "비용"),
        ("runs done", "끝났습니다"), ("seed 0", "시드 0"),
    ):  # fmt: skip
        assert english in pages[0] and english not in pages[1], english
        assert korean in pages[1], korean


def test_seeds_are_paired_by_their_numbers(sweeps):
    Score, paired = sweeps.table.Score, sweeps.table.compare_paired
    ours = {0: 81.0, 1: 84.0, 2: 90.0, 3: 70.0}
    theirs = {0: 80.0, 1: 82.0, 2: 87.0}  # differences 1, 2, 3, as above
    t = 2 * math.sqrt(3)
    p = pytest.approx(1 - t / math.sqrt(t * t + 2))
    for order in ((0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)):
        score = Score(tuple(ours[seed] for seed in order), seeds=order)
        assert paired(score.by_seed, theirs) == p
        assert paired(theirs, score.by_seed) == p
    assert paired({5: 1.0, 6: 2.0, 7: 4.0}, theirs) is None, "no seed in common"
    assert paired({0: 1.0, 6: 2.0, 7: 4.0}, theirs) is None, "one seed in common"
    assert Score((1.0, None, 3.0), seeds=(7, 8, 9)).by_seed == {7: 1.0, 9: 3.0}


def test_rows_may_have_seeds_in_another_order(sweeps, tabulate, write_small):
    table = tabulate({**SCORES, ("b", "NER"): (0.81, 0.80, 0.79)})
    cells = [
        cell if (cell.row, cell.column) != ("b", "NER") else dataclasses.replace(cell, seeds=(2, 1, 0))
        for cell in tabulate.sweep.cells
    ]
    turned = sweeps.table.read_table(dataclasses.replace(tabulate.sweep, cells=tuple(cells)), tabulate.folders)
    assert turned.p("b", "NER") == pytest.approx(tabulate(SCORES).p("b", "NER")) and table.p("b", "NER") != turned.p(
        "b", "NER"
    )


def test_a_difference_that_does_not_vary_is_told(sweeps, tabulate):
    text = sweeps.report.write_markdown(tabulate(SCORES))
    assert (
        "where all seeds differ by the same from the reference row: c, NER.\n" in text
        and "Compared 2 times: 0.1" in text
    )
    one = {place: scores for place, scores in SCORES.items() if place in {("a", "MNLI"), ("b", "MNLI")}}
    for file in tabulate.folders.workdir.glob("points/*/result.json"):
        file.unlink()
    assert "Compared once: 0.05 would be marked" in sweeps.report.write_markdown(tabulate(one))


def test_ties(tabulate):
    equal = tabulate({(row, "MNLI"): (0.5, 0.6) for row in "abc"}).order("MNLI")
    assert equal.tau is None and len(equal.against) == equal.pairs == 3
    half = tabulate({("a", "MNLI"): (0.5,), ("b", "MNLI"): (0.5,), ("c", "MNLI"): (0.4,)}).order("MNLI")
    assert half.tau == pytest.approx(2 / 3) and len(half.against) == 1, "two pairs agree, one is no pair of ours"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None, "0.5"])
def test_scores_that_are_no_numbers_are_left_out_of_means(sweeps, tabulate, tmp_path, value):
    table = tabulate({**SCORES, ("b", "NER"): (0.79, value, 0.81), ("c", "MNLI"): (value,) * 3})
    assert table.scores["b", "NER"].by_seed == {0: pytest.approx(79), 2: pytest.approx(81)}
    text = sweeps.report.write_markdown(table)
    assert "80.00 ± 1.41 (2 of 3 seeds)" in text and f"| c | 92.00 ± 2.00 |  | f1 is {value}, no number | 70 |" in text
    sweeps.report.write_tables(table, tabulate.folders, tmp_path / "out")
    sweeps.report.write_sweep_report(table, tabulate.folders, tmp_path / "out", "…")
    text = (tmp_path / "out" / "table.csv").read_text(encoding="utf-8-sig")
    [line] = [row for row in csv.DictReader(text.splitlines()) if row["row"] + row["column"] == "bNER"]
    assert line["scores"].split()[1] == "–" and line["missing"] == f"f1 is {value}, no number"


def test_figures_that_are_not_there(sweeps, tabulate):
    """The cell says so; other cells, and runs still to come, do not depend on it."""
    tabulate(SCORES)
    cell = dataclasses.replace(tabulate.sweep.cells[0], score="accurcy")
    message = sweeps.table.read_value(cell, cell.points[0], tabulate.folders)
    assert message == "there is no figure 'accurcy'; there are accuracy, f1; did you mean accuracy?"
    for text in ("", "[]", "{}", '{"dev": 3, "score": "f1"}'):
        (tabulate.folders.run(cell.points[1]) / "result.json").write_text(text)
        message = sweeps.table.read_value(cell, cell.points[1], tabulate.folders)
        assert message.startswith(f"{tabulate.folders.run(cell.points[1])} cannot be read") and "delete it" in message
    table = sweeps.table.read_table(dataclasses.replace(tabulate.sweep, cells=(cell,)), tabulate.folders)
    assert "there is no figure 'accurcy'" in sweeps.report.write_markdown(table)


def test_a_plot_that_fails_is_said(sweeps, tabulate, tmp_path):
    def plot(means):
        return means["a", "nowhere"]

    table = tabulate(SCORES)
    table = dataclasses.replace(table, sweep=dataclasses.replace(tabulate.sweep, plot=plot))
    sweeps.report.write_sweep_report(table, tabulate.folders, tmp_path, "…")
    assert "The plot of the sweep's file fails: KeyError" in (tmp_path / "report.html").read_text("utf-8")


def test_a_plot_without_points_so_far_is_no_failure(sweeps, tabulate, tmp_path):
    table = tabulate({("a", "NER"): SCORES["a", "NER"]})
    empty = dataclasses.replace(tabulate.sweep, plot=lambda means: Lines("scores", "", "", {"b": []}))
    sweeps.report.write_sweep_report(dataclasses.replace(table, sweep=empty), tabulate.folders, tmp_path, "…")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "no figure to draw" in page and "fails" not in page and not (tmp_path / "figure.svg").exists()


def test_a_gain_that_no_seed_varies_has_no_interval(tabulate):
    table = tabulate(SCORES)
    gain = dataclasses.replace(table, sweep=dataclasses.replace(table.sweep, path=True)).gain("c", "NER")
    assert gain.mean == pytest.approx(12) and gain.half is not None
    constant = tabulate({("a", "NER"): (0.8, 0.82, 0.84), ("b", "NER"): (0.9, 0.92, 0.94)})
    assert constant.p("b", "NER") is None and constant.gain("b", "NER").half is None


def test_tables_open_in_a_spreadsheet(sweeps, tmp_path):
    sweeps.report.write_lines(tmp_path / "a.csv", [{"row": "+ CoVe", "mean": -0.5}, {"row": "드롭아웃", "mean": None}])
    assert (tmp_path / "a.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    assert (tmp_path / "a.csv").read_text(encoding="utf-8-sig") == "row,mean\n'+ CoVe,-0.5\n드롭아웃,\n"


def test_a_reference_row_without_cells(sweeps, tabulate):
    cells = tuple(cell for cell in tabulate.sweep.cells if cell.row != "a")
    tabulate(SCORES)
    text = sweeps.report.write_markdown(
        sweeps.table.read_table(dataclasses.replace(tabulate.sweep, cells=cells), tabulate.folders)
    )
    assert "the reference row, a, has no cells at this scale" in text and "\\*" not in text


def test_one_seed_says_nothing_of_chance(sweeps, write_small, tmp_path):
    sweep = sweeps.definition.read_sweep(write_small(seeds=(0,)), "toy")
    table = sweeps.table.read_table(sweep, sweeps.folders.Folders(tmp_path))
    assert "no test for chance" in sweeps.report.write_markdown(table)
    assert "±" not in sweeps.report.write_markdown(table).split("paper |")[1]


def test_a_report_escapes_what_it_shows(sweeps, tabulate, tmp_path):
    bad = "<script>alert(1)</script>"
    table = tabulate(SCORES)
    sweep = dataclasses.replace(table.sweep, scale=bad, notes=bad, about=f"{bad}\n\n{bad}")
    sweeps.report.write_sweep_report(dataclasses.replace(table, sweep=sweep), tabulate.folders, tmp_path, bad)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 6, "the title twice, the scale, the notes, the command, the description"


def test_costs_of_a_pretraining_are_cells(sweeps, tmp_path):
    point = sweeps.points.Point("BERT", "pretrain", "bert:toy", {"steps": 100, "batch_size": 8, "length": 32})
    run = sweeps.folders.Folders(tmp_path).run(point)
    run.mkdir(parents=True)
    for name, content in (
        ("run.json", {"program": "pretrain", **point.resolved.to_dict()}),
        ("model.json", {"config": {"vocab_size": 300}}),
        ("costs.jsonl", {"seconds": 9.0, "processor": 5.0, "device": "1 × cpu"}),
    ):
        (run / name).write_text(json.dumps(content) + "\n", encoding="utf-8")
    (run / "metrics.jsonl").write_text('{"step": 100, "loss": 1.5}\n', encoding="utf-8")
    (run / "report.html").write_text("<html>", encoding="utf-8")

    def read(score):
        cell = sweeps.definition.Cell("BERT", score, (point,), (0,), "", score, percent=False)
        return sweeps.table.read_value(cell, point, sweeps.folders.Folders(tmp_path))

    assert (read("seconds"), read("positions"), read("loss")) == (5.0, 100 * 8 * 32 / 1e6, 1.5)
    with (run / "costs.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"seconds": 2.0, "processor": 1.0, "device": "1 × cpu"}\n')
    assert read("seconds") == 6.0, "costs may be written after the run's last file"
    assert 0.4 < read("parameters") < read("all parameters") < 0.7
    assert read("operations") == pytest.approx(6e-6 * 100 * 8 * 32 * read("parameters"), rel=0.5)


@pytest.mark.parametrize(("scale", "varies"), [("toy", False), ("laptop", True)])
def test_seeds_of_the_task_or_of_the_pretraining(sweeps, scale, varies):
    sweep = sweeps.definition.read_sweep("elmo_to_bert", scale)
    assert sweeps.report.varies_pretraining(sweep) is varies


@pytest.mark.parametrize("seeds", [(0, 1), (0,)])
def test_cells_of_pretrainings_vary_by_their_seeds(sweeps, seeds):
    add = sweeps.definition.Add("", None)
    for row in "ab":
        runs = [add.pretrain(f"{row} {seed}", "bert:toy", seed=seed, steps=ord(row)) for seed in seeds]
        add.figure(row, "perplexity", runs, of="", score="loss")
    paper = sweeps.definition.Paper.without_figures(["perplexity"], ["a", "b"], "a")
    sweep = sweeps.definition.Sweep("x", "", "X.", paper, tuple(add.cells.values()))
    assert sweeps.report.varies_pretraining(sweep) is (len(seeds) > 1)


def test_seeds_that_share_a_pretraining_through_other_runs_do_not_vary_it(sweeps):
    add = sweeps.definition.Add("", None)
    shared = add.pretrain("shared", "bert:toy")
    task = {"task": "sst2", "train": "t.tsv", "dev": "d.tsv"}
    for seed, (first,) in enumerate(
        [add.runs(f"first {n}", "finetune", seeds=(n,), init=shared, **task) for n in (0, 1)]
    ):
        add.runs(f"second {seed}", "finetune", seeds=(seed,), init=first, **task)
    second = [point for name, point in add._names.items() if name.startswith("second")]
    add.figure("a", "accuracy", second, of="", score="accuracy")
    paper = sweeps.definition.Paper.without_figures(["accuracy"], ["a"], "a")
    assert not sweeps.report.varies_pretraining(
        sweeps.definition.Sweep("x", "", "X.", paper, tuple(add.cells.values()))
    )
