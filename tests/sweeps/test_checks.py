"""A sweep raises before it runs on everything that a program would refuse after days of pretraining."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus

ROOT = Path(__file__).parents[2]
SWEEP = '''
"""A sweep of real data.

Of two rows.
"""

from bert_elmo_jax.sweeps.definition import Paper
from bert_elmo_jax.sweeps.points import Adapted, File, Step

SCALES = ("toy",)
PAPER = Paper("Author 2020", ("x", "y"), {"a": (1.0, None), "b": (2.0, None)}, "a")
TSV = {"task": "classification", "train": File("t/train.tsv"), "dev": File("t/dev.tsv"), "text": "text",
       "label": "label"}


def sweep(add):
    """Add the points of a test."""
    def bert(name="bert", **how):
        return add.pretrain(name, "bert:toy", **{"data": File("pieces"), "steps": 8,
                            "checkpoint_every": 4, **how})

    def elmo(**how):
        return add.pretrain("elmo", "elmo:toy", **{"data": File("words"), "steps": 8, **how})

    def cell(row="a", column="x", config="finetune", **how):
        return add.transfer(row, column, config, of="x", seeds=(0,), **{**TSV, **how})

'''
WRONG = [
    ("cell(init=bert(data=File('words')))", "bert: ", "was made with words, and this model reads pieces"),
    ("cell(config='bcn', encoder=elmo(data=File('pieces')))", "elmo: ", "and this model reads words"),
    ("cell(init=bert(data=File('t')))", "bert: ", "t"),
    ("cell(init=bert(batch_size=-4))", "bert: ", "batch_size=-4"),
    ("cell(init=bert(steps=0))", "bert: ", "steps=0"),
    ("cell(init=bert(keep=0))", "bert: ", "keep=0"),
    ("cell(init=bert(**{'masking.kind': 'wohle'}))", "bert: ", "masking 'wohle' is not known"),
    ("cell(init=bert(**{'masking.split': (0.8, 0.8, 0.1)}))", "bert: ", "expected three shares that add up to 1"),
    ("cell(init=bert(objective='nps'))", "bert: ", "config.objective='nps' is not known; use one of"),
    ("cell(init=bert(**{'optimizer.name': 'adma'}))", "bert: ", "config.optimizer.name='adma' is not known"),
    ("cell(init=bert(**{'optimizer.schedule': 'cosin'}))", "bert: ", "did you mean cosine?"),
    ("cell(init=bert(**{'model.num_heads': 3}))", "bert: ", "3"),
    ("cell(init=elmo())", "a, x, seed 0: ", "init='elmo' is a run of elmo; expected bert"),
    (
        "cell(init=Adapted(cell('b', 'y', 'bcn', encoder=elmo(), **{'adapt.epochs': 1.0})[0]))",
        "a, x, seed 0: ",
        "is a run of elmo; expected bert",
    ),
    ("cell(init=bert(), tokenizer='x')", "a, x, seed 0: ", "expected either init=…"),
    ("cell()", "a, x, seed 0: ", "expected either init=…"),
    ("cell(init=bert(), train=bert('b', seed=1))", "a, x, seed 0: ", "is a run of bert; expected no run"),
    ("cell(config='bcn', init=bert())", "a, x, seed 0: ", "init has no use for a network"),
    ("cell(config='bcn', encoder=bert(), **{'adapt.epochs': 1.0})", "a, x, seed 0: ", "encoder='bert' is a run of"),
    ("cell(config='bcn', vectors=bert())", "a, x, seed 0: ", "vectors='bert' is a run of bert; expected static"),
    ("cell(config='esim', encoder=elmo())", "a, x, seed 0: ", "esim is for classification of pairs of texts"),
    ("cell(init=bert(), task='clasification')", "a, x, seed 0: ", "did you mean classification?"),
    ("cell(init=bert(), text='txt')", "a, x, seed 0: ", "txt"),
    ("cell(init=bert(), dev=File('t/other.tsv'))", "a, x, seed 0: ", "other.tsv"),
    ("cell(init=bert(), dev=File('t/empty.tsv'))", "a, x, seed 0: ", "empty.tsv"),
    ("cell(init=bert(), train=File('t'))", "a, x, seed 0: ", "t"),
    ("cell(init=bert(), share=7.0)", "a, x, seed 0: ", "config.share=7.0: expected a number above 0 and at most 1"),
    ("cell(init=bert(), batch_size=0)", "a, x, seed 0: ", "config.batch_size=0: expected a whole number from 1"),
    ("cell(init=bert(), epochs=0.0)", "a, x, seed 0: ", "config.epochs=0.0"),
    ("cell(init=bert(), transfer='frozn')", "a, x, seed 0: ", "did you mean frozen?"),
    ("cell(init=bert(), class_weights='balancd')", "a, x, seed 0: ", "config.class_weights='balancd'"),
    ("cell(init=bert(), **{'features.layers': '-9'})", "a, x, seed 0: ", "9"),
    ("cell(init=bert(), train=None)", "a, x, seed 0: ", "--train"),
]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Write minimal real data: two corpora and a task."""
    folder = tmp_path_factory.mktemp("data")
    toy_corpus(folder / "pieces", documents=60, tokenizer="wordpiece", vocab_size=200, heldout=0.2)
    toy_corpus(folder / "words", documents=60, tokenizer="words", heldout=0.2)
    (folder / "t").mkdir()
    rows = "text\tlabel\n" + "강가에 배가 있다\t1\nthe ship is at sea\t0\n" * 4
    for name, text in (("train", rows), ("dev", rows), ("other", rows.replace("\t1", "\tneu")), ("empty", "")):
        (folder / "t" / f"{name}.tsv").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def read(sweeps, data, tmp_path):
    """Reads the sweep with points of one's own, and makes it all the checks."""
    folders = sweeps.folders.Folders(tmp_path / "w", data)

    def check(*body):
        file = tmp_path / "mine.py"
        file.write_text(SWEEP.strip() + "\n\n" + "".join(f"    {line}\n" for line in body), encoding="utf-8")
        sweep = sweeps.definition.read_sweep(str(file), "toy")
        sweeps.run_sweep.check_data(sweep, folders)
        sweeps.run_sweep.check_same_data(sweep, folders)
        sweeps.run_sweep.check_points(sweep, folders)
        return sweep

    check.folders = folders
    return check


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize(("body", "point", "message"), WRONG, ids=[body for body, _, _ in WRONG])
def test_refused(read, body, point, message):
    with pytest.raises(ValueError, match=rf"^{re.escape(point)}.*{re.escape(message)}"):
        read(body)


@pytest.mark.usefixtures("as_users_run")
def test_points_that_fit_each_other_pass(read, data):
    sweep = read(
        "b, e = bert(), elmo()",
        "(tuned,) = cell(init=b, **{'features.layers': '-1'})",
        "cell('a', 'y', init=tuned)",
        "cell('b', 'x', 'bcn', encoder=e, **{'adapt.epochs': 1.0})",
        "cell('b', 'y', tokenizer=b, preset=b, share=0.5)",
    )
    assert sweep.about.startswith("A sweep of real data") and len(sweep.points) == 6
    read("cell(init='google-bert/bert-base-cased', dev='0.25')")  # what lies elsewhere is for the program to find


def test_data_that_have_changed_are_refused_where_runs_have_read_them(read, data, tmp_path):
    file, original_bytes = data / "t" / "dev.tsv", (data / "t" / "dev.tsv").read_bytes()
    sweep = read("cell(init=bert())")
    run = read.folders.claim(sweep.points[1])
    try:
        os.utime(file, (1, 1))
        read("cell(init=bert())")  # the same again, copied
        file.write_bytes(original_bytes.replace(b"\t1", b"\t2").replace(b"\t0", b"\t1").replace(b"\t2", b"\t0"))
        for _ in range(2):
            with pytest.raises(ValueError, match="has changed since 1 runs have read it: restore the old") as error:
                read("cell(init=bert())")
        assert str(file) in str(error.value) and f"\n  {run}" in str(error.value)
        read.folders.claim(sweep.points[0])  # which does not read it
        run.rmdir()
        read("cell(init=bert())")  # and then it is what the runs to come read
        read.folders.run(sweep.points[1]).mkdir()
        file.write_bytes(original_bytes)
        read("cell(init=bert(seed=9))")  # of other runs, which have read nothing yet
        with pytest.raises(ValueError, match="has changed since"):
            read("cell(init=bert())")
    finally:
        file.write_bytes(original_bytes)


def test_a_corpus_is_read_by_all_that_begins_with_its_model(read, data):
    file, original_bytes = data / "pieces" / "manifest.json", (data / "pieces" / "manifest.json").read_bytes()
    sweep = read("(tuned,) = cell(init=Step(bert(keep=2), 4))", "cell('b', init=tuned)")
    runs = [read.folders.claim(point) for point in sweep.points]
    assert len(runs) == 3
    try:
        file.write_bytes(original_bytes + b"\n")
        for left in (3, 2, 1):
            with pytest.raises(ValueError, match=f"has changed since {left} runs have read it"):
                read("(tuned,) = cell(init=Step(bert(keep=2), 4))", "cell('b', init=tuned)")
            runs[3 - left].rmdir()
        read("(tuned,) = cell(init=Step(bert(keep=2), 4))", "cell('b', init=tuned)")
    finally:
        file.write_bytes(original_bytes)


def test_data_of_another_folder_are_other_data(read, sweeps, data, tmp_path):
    sweep = read("cell(init=bert())")
    read.folders.claim(sweep.points[1])
    other = tmp_path / "other"
    shutil.copytree(data, other)  # with the times of the old
    folders = sweeps.folders.Folders(tmp_path / "w", other)
    sweeps.run_sweep.check_same_data(sweep, folders)
    before = (other / "t" / "dev.tsv").stat()
    (other / "t" / "dev.tsv").write_bytes((data / "t" / "dev.tsv").read_bytes().replace(b"\t1", b"\t0"))
    os.utime(other / "t" / "dev.tsv", ns=(before.st_atime_ns, before.st_mtime_ns))
    fresh = sweeps.folders.Folders(tmp_path / "w", other)
    read("cell(init=bert())")
    with pytest.raises(ValueError, match="has changed since 1 runs have read it"):
        sweeps.run_sweep.check_same_data(sweep, fresh)
    (tmp_path / "w" / "data.json").write_text("{")
    with pytest.raises(ValueError, match=r"data\.json cannot be read"):
        read("cell(init=bert())")


def sweep_of(sweeps, *points):
    """Return a sweep of some points, each a cell of its own."""
    names = [point.name for point in points]
    paper = sweeps.definition.Paper.without_figures(("dev",), names, names[0])
    cells = [sweeps.definition.Cell(point.name, "dev", (point,), (0,), "F1") for point in points]
    return sweeps.definition.Sweep("made", "toy", "A sweep.", paper, tuple(cells))


def test_a_saved_data_set_that_has_changed_is_refused(sweeps, tmp_path):
    saved = tmp_path / "data" / "reviews" / "train"
    saved.mkdir(parents=True)
    (saved.parent / "dataset_dict.json").write_text("{}")
    (saved / "rows.arrow").write_bytes(b"rows")
    point = sweeps.points.Point("p", "finetune", "finetune", {"train": sweeps.points.File("reviews")})
    sweep = sweep_of(sweeps, point)
    folders = sweeps.folders.Folders(tmp_path / "w", tmp_path / "data")
    sweeps.run_sweep.check_same_data(sweep, folders)
    folders.claim(point)
    sweeps.run_sweep.check_same_data(sweep, folders)
    (saved / "rows.arrow").write_bytes(b"other rows")
    with pytest.raises(ValueError, match="reviews has changed since 1 runs have read it"):
        sweeps.run_sweep.check_same_data(sweep, folders)


def test_models_and_files_named_by_texts_are_refused_once_they_have_changed(sweeps, data, tmp_path):
    (tmp_path / "model" / "checkpoints" / "8" / "params").mkdir(parents=True)
    weights = tmp_path / "model" / "checkpoints" / "8" / "params" / "0"
    weights.write_bytes(b"weights")
    shutil.copy(data / "t" / "train.tsv", tmp_path / "train.tsv")
    named = {"init": str(tmp_path / "model"), "train": f"{tmp_path}/tr*.tsv", "dev": "0.1", "test": tmp_path / "no.tsv"}
    point = sweeps.points.Point("p", "finetune", "finetune", named)
    sweep, folders = sweep_of(sweeps, point), sweeps.folders.Folders(tmp_path / "w")
    sweeps.run_sweep.check_same_data(sweep, folders)
    folders.claim(point)
    (tmp_path / "model" / "report.html").write_text("shown again")
    sweeps.run_sweep.check_same_data(sweep, folders)
    for file in (weights, tmp_path / "train.tsv"):
        original_bytes = file.read_bytes()
        file.write_bytes(original_bytes + b"more")
        source = tmp_path / "model" if file == weights else file
        with pytest.raises(ValueError, match=rf"^{re.escape(str(source))} has changed since 1 runs"):
            sweeps.run_sweep.check_same_data(sweep, folders)
        file.write_bytes(original_bytes)
    sweeps.run_sweep.check_same_data(sweep, folders)


def test_vectors_of_earlier_data_are_not_those_of_new_ones(sweeps, data, tmp_path):
    """Runs that were deleted after their file changed find an empty folder for their vectors."""
    shutil.copytree(data / "t", tmp_path / "data")
    settings = {"encoder": sweeps.points.Point("e", "pretrain", "elmo:toy"), "train": sweeps.points.File("train.tsv")}
    point = sweeps.points.Point("p", "finetune", "bcn", settings)
    other = sweeps.points.Point("q", "finetune", "bcn", {**settings, "vectors": sweeps.points.File("dev.tsv")})
    sweep = sweep_of(sweeps, point, other)
    folders = sweeps.folders.Folders(tmp_path / "w", tmp_path / "data")
    sweeps.run_sweep.check_same_data(sweep, folders)
    before = folders.cache(point)
    assert before == folders.cache(other), "runs of the same texts share their vectors"
    shutil.copy(data / "t" / "other.tsv", tmp_path / "data" / "train.tsv")
    sweeps.run_sweep.check_same_data(sweep, folders)
    assert folders.cache(point) == folders.cache(other) != before


def test_several_files_are_found_hashed_and_joined(sweeps, data):
    files = [sweeps.points.File("t/train.tsv"), sweeps.points.File("t/other.tsv")]
    point = sweeps.points.Point("p", "finetune", "finetune", {"train": files, "dev": "0.1"})
    assert point.files == files
    folders = sweeps.folders.Folders(data / "w", data)
    assert folders.job(point).fields["train"] == f"{data / 't' / 'train.tsv'},{data / 't' / 'other.tsv'}"
    one = sweeps.points.Point("p", "finetune", "finetune", {"train": files[:1], "dev": "0.1"})
    assert one.identity != point.identity
    with pytest.raises(ValueError, match=r"encoder=.*, expected one point, such as encoder=runs\[0\]"):
        sweeps.points.Point("q", "finetune", "bcn", {"encoder": [point, one]})


def test_made_data_that_somebody_cut_are_refused(sweeps, tmp_path):
    folders, toy_data = sweeps.folders.Folders(tmp_path), sweeps.toy_tasks.ToyData(2, 2, 30, 30)
    file = toy_data.file("topics", "train")
    sweeps.toy_tasks.make_files(tmp_path / "tasks", [file])
    point = sweeps.points.Point("t", "finetune", "finetune", {"train": file})
    paper = sweeps.definition.Paper("none", ("x",), {"a": (None,)}, "a")
    cell = sweeps.definition.Cell("a", "x", (point,), (0,), "F1")
    sweep = sweeps.definition.Sweep("made", "toy", "A sweep.", paper, (cell,))
    sweeps.run_sweep.check_same_data(sweep, folders)
    folders.claim(point)
    lines = folders.file(file).read_text(encoding="utf-8").splitlines(keepends=True)
    folders.file(file).write_text("".join(lines[:9]), encoding="utf-8")
    with pytest.raises(ValueError, match="delete it and it is made again"):
        sweeps.run_sweep.check_same_data(sweep, folders)
    folders.file(file).unlink()
    sweeps.toy_tasks.make_files(tmp_path / "tasks", [file])
    sweeps.run_sweep.check_same_data(sweep, folders)
    assert folders.file(file).read_text(encoding="utf-8") == "".join(lines)


def test_checkpoints_that_another_sweep_did_not_keep(read):
    two = ("cell(init=bert(keep=1))", "cell('b', init=Step(bert('again', keep=2), 4))")
    with pytest.raises(ValueError, match="bert keeps no checkpoint of step 4: it keeps 1"):
        read(*two)
    sweep = read("cell(init=Step(bert(keep=2), 4))")
    run = read.folders.claim(sweep.points[0])
    (run / "checkpoints" / "8").mkdir(parents=True)
    (run / "report.html").write_text("done, by a sweep that kept one")
    with pytest.raises(ValueError, match=r"init='bert' after 4 steps: .*/checkpoints has only 8"):
        read("cell(init=Step(bert(keep=2), 4))")
    (run / "checkpoints" / "4").mkdir()
    read("cell(init=Step(bert(keep=2), 4))")


DEVICES = """
import sys
from pathlib import Path
from bert_elmo_jax.sweeps import definition, folders, run_sweep
sweep = definition.read_sweep(sys.argv[1], "toy")
places = folders.Folders(Path(sys.argv[2]), Path(sys.argv[3]))
run_sweep.check_same_data(sweep, places)
run_sweep.check_points(sweep, places)
assert not sys.modules["jax._src.xla_bridge"]._backends
"""


@pytest.mark.long
@pytest.mark.usefixtures("as_users_run")
def test_no_device_is_taken(read, data, tmp_path):
    """A GPU's memory and a TPU are the runs' own."""
    read(
        "b, e = bert(objective='nsp'), elmo(negatives=64)",
        "cell(init=b, **{'features.layers': '-1'})",
        "cell('a', 'y', 'bcn', encoder=e, **{'adapt.epochs': 1.0})",
        "cell('b', transfer='top_down', **{'init': b, 'optimizer.name': 'lamb', 'optimizer.schedule': 'cosine'})",
    )
    words = [sys.executable, "-c", DEVICES, str(tmp_path / "mine.py"), str(tmp_path / "w"), str(data)]
    subprocess.run(words, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
