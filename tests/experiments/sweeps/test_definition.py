"""A sweep's file is read, its points are what they are, and whatever cannot be meant is said before anything runs."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SWEEPS = sorted((ROOT / "experiments" / "configs" / "sweeps").glob("[!_]*.py"))
TRANSFER = 'add.transfer("a", "NER", "finetune", of="F1", seeds=(0,), task="uner"'
MISTAKES = [
    (f"{TRANSFER}, epoch=3.0)", "a, NER, seed 0: the config finetune has no field 'epoch'; did you mean epochs?"),
    (f'{TRANSFER}, **{{"optimizer.lr": 1}})', "the config finetune has no field 'optimizer.lr'"),
    (f'{TRANSFER}, epochs="three")', "a, NER, seed 0: epochs='three', expected a value like 3.0"),
    (f"{TRANSFER}, batch_size=16.5)", "batch_size=16.5, expected a value like 32"),
    (f"{TRANSFER}, context=1)", "context=1, expected a value like False"),
    (f"{TRANSFER})\n    {TRANSFER})", "two points are called 'a, NER, seed 0'"),
    ('add.figure("a", "NER", *2 * (add.pretrain("x", "pretrain_bert", "bert_toy"),), of="", score="")', "TypeError"),
    (TRANSFER.replace('"a"', '"A "') + ")", "there is no row 'A ' in the table: its rows are a, b, c"),
    (TRANSFER.replace("NER", "NRE") + ")", "there is no column 'NRE' in the table: its columns are NER, MNLI; did you"),
    (TRANSFER.replace("(0,)", "()") + ")", "a, NER: seeds=[], expected one or more"),
    (TRANSFER.replace("(0,)", "(1, 1)") + ")", "a, NER: seeds=[1, 1], expected one or more, none of them twice"),
    (TRANSFER.replace("finetune", "finetun") + ")", "did you mean experiments/configs/finetune.py?"),
    (TRANSFER.replace("finetune", "bert_toy") + ")", "bert_toy is for pretrain_bert, and this is finetune"),
    (
        'add.pretrain("b", "pretrain_brt", "bert_toy")',
        "b: there is no program 'pretrain_brt'; there are pretrain_bert,",
    ),
    ('add.pretrain("b", "pretrain_bert", "bert_toy", **{"masking.split": "0.8"})', "masking.split='0.8', expected"),
    ("pass", "it adds nothing; use add.transfer(row, column, …)"),
    ('add.transfer("a", column="NER")', "missing"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Where toy data are made once."""
    return tmp_path_factory.mktemp("made")


@pytest.mark.parametrize("file", SWEEPS, ids=lambda file: file.stem)
def test_the_sweeps_that_come_along(sweeps, file, tmp_path, made):
    text = file.read_text(encoding="utf-8")
    for part in ("xpected score:", "Cost:", "Command:", f"experiments/configs/sweeps/{file.name}", "Scales:"):
        assert part in text, part
    assert len(text.splitlines()) <= 75
    told = " ".join(sweeps.scales.__doc__.split())
    scales = re.search(r"SCALES = \((.*)\)", text)[1].replace('"', "").split(", ")
    assert {"toy", "one_gpu", "paper"} <= set(scales) <= set(sweeps.definition.SCALES)
    for scale in scales:
        sweep = sweeps.definition.read_sweep(str(file), scale)
        rows, columns = {cell.row for cell in sweep.cells}, {cell.column for cell in sweep.cells}
        assert rows == set(sweep.paper.rows)
        assert len(sweep.cells) == len(rows) * len(columns), "no hole in the table"
        assert all(len(cell.seeds) >= (5 if scale == "paper" else 3) for cell in sweep.cells)
        for data in {data for point in sweep.points for data in point.files}:
            if data.made:
                assert scale == "toy"
                sweeps.toy_tasks.write_made(made, [data])
                assert (made / data.name).stat().st_size > 1000
            else:
                folder, _, name = data.name.partition("/")
                assert f"{folder}/" in told and (folder == "corpora" or Path(name).suffix in told), data.name
        for point in sweep.points:
            words = sweeps.points.Places(tmp_path).words(point)
            assert all("Point(" not in word and "File(" not in word for word in words)


def test_laptop_scale_where_real_text_is_at_hand(sweeps):
    for name in ("bert_table8", "elmo_table2", "elmo_table3"):
        sweeps.definition.read_sweep(str(SWEEPS[0].with_name(f"{name}.py")), "laptop")


@pytest.mark.parametrize(("body", "message"), MISTAKES, ids=[message[:40] for _, message in MISTAKES])
def test_mistakes(sweeps, tmp_path, body, message):
    file = tmp_path / "mine.py"
    file.write_text(
        f'"""Mine."""\nfrom experiments.sweeps.definition import Paper\nSCALES = ("toy",)\n'
        f'PAPER = Paper("", ("NER", "MNLI"), {{"a": (1.0, None), "b": (2.0, None), "c": (3.0, None)}}, "a")\n'
        f"def sweep(add):\n    {body}\n",
        encoding="utf-8",
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        sweeps.definition.read_sweep(str(file), "toy")


def test_files_that_are_no_sweeps(sweeps, tmp_path):
    read = sweeps.definition.read_sweep
    with pytest.raises(FileNotFoundError, match=r"did you mean experiments/configs/sweeps/bert_table8\.py\?"):
        read("bert_table9.py", "toy")
    (tmp_path / "x.py").write_text('"""X."""\nSCALES = ()\n')
    with pytest.raises(ValueError, match="it has no PAPER, sweep; see those of"):
        read(str(tmp_path / "x.py"), "toy")
    with pytest.raises(ValueError, match="elmo_figure1 has no such scale; it has toy, one_gpu, paper"):
        read(str(SWEEPS[0].with_name("elmo_figure1.py")), "laptop")
    with pytest.raises(ValueError, match="row 'a' has 1 figures for 2 columns"):
        sweeps.definition.Paper("", ("x", "y"), {"a": (1.0,)}, "a")
    with pytest.raises(ValueError, match="reference row 'b' is none of a"):
        sweeps.definition.Paper("", ("x",), {"a": (1.0,)}, "b")


def test_missing_data_are_all_named(sweeps, tmp_path):
    places = sweeps.points.Places
    sweep = sweeps.definition.read_sweep(str(SWEEPS[0].with_name("bert_table8.py")), "laptop")
    with pytest.raises(
        ValueError, match=r"needs --data=FOLDER, in which there are\n  corpora/novels\n  sst2/train\.tsv"
    ):
        sweeps.definition.check_data(sweep, places(tmp_path))
    (tmp_path / "sst2").mkdir()
    (tmp_path / "sst2" / "train.tsv").touch()
    with pytest.raises(FileNotFoundError, match=r"lacks\n  corpora/novels\n  sst2/dev\.tsv\n  uner/") as error:
        sweeps.definition.check_data(sweep, places(tmp_path, tmp_path))
    assert "sst2/train.tsv" not in str(error.value)


def test_what_a_point_is(sweeps):
    Point, File = sweeps.points.Point, sweeps.points.File
    bert = Point("bert", "pretrain_bert", "bert_toy", {"steps": 100})

    def tagger(name="tagger", init=bert, config="finetune", **settings):
        return Point(name, "finetune", config, {"init": init, "task": "uner", "train": File("x.iob2"), **settings})

    first = tagger().identity
    assert re.fullmatch("[0-9a-f]{8}", first)
    same = [
        tagger("another name"),
        tagger(epochs=3.0),  # as the config has it
        tagger(log_every=3, checkpoint_every=5, **{"mesh.data": 2}),  # comfort
        tagger(init=Point("other", "pretrain_bert", "bert_toy", {"steps": 100, "keep": 9})),
        tagger(config=str(ROOT / "experiments" / "configs" / "finetune.py")),
    ]
    assert {point.identity for point in same} == {first}
    others = [
        tagger(seed=1),
        tagger(epochs=4.0),
        tagger(train=File("y.iob2")),
        tagger(init=Point("bert", "pretrain_bert", "bert_toy", {"steps": 101})),
        tagger(init="some/where"),
        tagger(config="finetune_entities"),
        bert,
    ]
    assert len({first, *(point.identity for point in others)}) == len(others) + 1


def test_where_a_point_lies(sweeps, tmp_path):
    Point, places = sweeps.points.Point, sweeps.points.Places(tmp_path / "w", tmp_path / "data")
    bert = Point("BERT 80/10/10, 배", "pretrain_bert", "bert_toy", {"masking.split": (0.8, 0.1, 0.1)})
    assert places.run(bert).name == f"BERT-80-10-10-배-{bert.identity}"
    assert "'--config.masking.split=(0.8, 0.1, 0.1)'" in places.command(bert)
    again = Point("base", "pretrain_bert", "bert_toy", {"masking.split": (0.8, 0.1, 0.1)})
    places.run(bert).mkdir(parents=True)
    assert sweeps.points.Places(tmp_path / "w").run(again) == places.run(bert), "one run, whatever it is called"
    elmo = Point("elmo", "pretrain_elmo", "elmo_toy")
    settings = {"encoder": elmo, "task": "uner", "train": sweeps.points.File("x.iob2")}
    taggers = [Point("t", "finetune", "tagger", {**settings, **more}) for more in ({}, {"seed": 1}, {"share": 0.5})]
    caches = [next(w for w in places.words(tagger) if w.startswith("--config.cache=")) for tagger in taggers]
    assert caches[0] == caches[1] != caches[2], "vectors are shared by runs that read the same texts"
    assert f"--train={tmp_path / 'data' / 'x.iob2'}" in places.words(taggers[0])


@pytest.mark.parametrize(
    "name",
    ["points", "definition", "schedule", "forks", "table", "markdown", "dashboard", "toy_tasks", "ray_runner"],
)
def test_examples_of_docstrings(sweeps, name, monkeypatch):
    monkeypatch.chdir(ROOT)
    failed, tried = doctest.testmod(getattr(sweeps, name))
    assert tried > failed == 0
