"""Sweep files, points and commands: every definition of the repository is read, and mistakes raise before a run."""

import ast
import functools
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from absl import flags

from bert_elmo_jax.data.corpora.store import open_store
from bert_elmo_jax.data.tasks.task import task_named
from bert_elmo_jax.families import get_family
from bert_elmo_jax.inference.task_networks import check_task
from bert_elmo_jax.runs import adaptation, initial_state, transfer, with_head
from bert_elmo_jax.runs.config_files import NAMED, list_fields
from bert_elmo_jax.runs.language_model import check_stages
from bert_elmo_jax.runs.pretraining import build_objective
from bert_elmo_jax.runs.with_documents import check_documents
from bert_elmo_jax.sweeps.definition import read_sweep
from experiments.command_line.start import read_given, split_fields
from experiments.sweeps import _scales

ROOT = Path(__file__).parents[2]
SWEEPS = sorted((ROOT / "experiments" / "sweeps").glob("[!_]*.py"))
BERT = 'from bert_elmo_jax.sweeps.points import Step\n    b = add.pretrain("b", "bert:toy", steps=8)'
TRANSFER = 'add.transfer("a", "NER", "finetune", of="F1", seeds=(0,), task="uner"'
MISTAKES = [
    (f"{TRANSFER}, epoch=3.0)", "a, NER, seed 0: the config finetune has no field 'epoch'; did you mean epochs?"),
    (f'{TRANSFER}, **{{"optimizer.lr": 1}})', "the config finetune has no field 'optimizer.lr'"),
    (f'{TRANSFER}, epochs="three")', "a, NER, seed 0: epochs='three': expected a value like 3.0"),
    (f"{TRANSFER}, batch_size=16.5)", "batch_size='16.5': expected a value like 32"),
    (f"{TRANSFER}, context=2)", "context='2': expected a value like false"),
    (f"{TRANSFER})\n    {TRANSFER})", "two points are called 'a, NER, seed 0'"),
    ('add.figure("a", "NER", *2 * (add.pretrain("x", "bert:toy"),), of="", score="")', "TypeError"),
    (TRANSFER.replace('"a"', '"A "') + ")", "there is no row 'A ' in the table: its rows are a, b, c"),
    (TRANSFER.replace("NER", "NRE") + ")", "there is no column 'NRE' in the table: its columns are NER, MNLI; did you"),
    (TRANSFER.replace("(0,)", "()") + ")", "a, NER: seeds=[], expected one or more"),
    (TRANSFER.replace("(0,)", "(1, 1)") + ")", "a, NER: seeds=[1, 1], expected one or more, none of them twice"),
    (TRANSFER.replace("finetune", "finetun") + ")", "did you mean finetune?"),
    (TRANSFER.replace('"finetune"', '"finetune:squda"') + ")", "there is no recipe 'squda'"),
    (TRANSFER.replace("finetune", "bert:toy") + ")", "bert:toy is for pretrain, not for finetune"),
    ('add.pretrain("b", "finetune")', "finetune is for finetune, not for pretrain"),
    ('add.pretrain("b", "bert:toy", **{"masking.split": "a"})', "masking.split='a': expected"),
    ("pass", "it adds nothing; use add.transfer(row, column, …)"),
    ('add.transfer("a", column="NER")', "mine.py, line 6: TypeError"),
    (TRANSFER + ", seed=7)", "a, NER: seed=7 and seeds=[0]: leave one of them out"),
    (
        'add.figure("a", "NER", add.pretrain("x", "bert:toy"), of="", score="")',
        "the cell a, NER has score='', expected",
    ),
    ('add.figure("a", "NER", (), of="", score="f1")', "the cell a, NER has no runs to show a figure of"),
    (
        'add.figure("a", "NER", [add.pretrain(x, "bert:toy") for x in "xy"], of="", score="loss")',
        "the cell a, NER has runs of seeds=[0, 0], expected none of them twice",
    ),
    (f"{TRANSFER}, init=({TRANSFER.replace('NER', 'MNLI')})))", "of several runs name one: runs[0]"),
    ("1 / 0", "mine.py, line 6: ZeroDivisionError: division by zero"),
    ("unknown", "mine.py, line 6: NameError"),
    (f"{BERT}\n    Step(b, 0.5 * 8)", "4.0): expected a pretraining and a whole number of steps"),
    (f"{BERT}\n    Step('b', 4)", "Step('b', 4): expected a pretraining"),
    (f"{BERT.replace('steps=8', 'steps=8, checkpoint_every=0')}\n    Step(b, 4)", "b: checkpoint_every=0, expected 1"),
]


SAMPLE = ("bert_table5", "elmo_table2", "story", "ulmfit_real", "unknown_words")  # whose commands every change tries


def mark_long(files, sample):
    """Return the files, with those that are not in the sample for the proofs alone."""
    return [file if file.stem in sample else pytest.param(file, marks=pytest.mark.long) for file in files]


@functools.cache
def read_once(name, scale):
    """Return a sweep of the repository; it is cached, because reading one takes up to a second."""
    return read_sweep(str(SWEEPS[0].with_name(f"{name}.py")), scale)


@pytest.mark.parametrize("file", SWEEPS, ids=lambda file: file.stem)
def test_the_sweeps_of_the_repository(sweeps, file):
    text = file.read_text(encoding="utf-8")
    for part in ("xpected score:", "Cost:", "Command:", f"--sweep={file.stem}", "Scales:"):
        assert part in text, part
    assert len(text.splitlines()) <= 75
    docstring = " ".join(_scales.__doc__.split())
    scales = re.search(r"SCALES = \((.*)\)", text)[1].replace('"', "").split(", ")
    # Real text at hand replaces the larger scales where the paper has no such table.
    real = (
        "ulmfit_real",
        "story",
        "elmo_inputs",
        "elmo_to_bert",
        "collobert_tagger",
        "unknown_words",
        "compute_curves",
    )
    larger = {"laptop"} if file.stem in real else {"one_gpu", "paper"}
    assert {"toy", *larger} <= set(scales) <= set(sweeps.definition.SCALES)
    for scale in scales:
        sweep = read_once(file.stem, scale)
        rows, columns = {cell.row for cell in sweep.cells}, {cell.column for cell in sweep.cells}
        assert rows == set(sweep.paper.rows) or (scale == "toy" and len(rows) > 3)
        assert sweep.paper.reference in rows
        full = rows - {"window of words"}  # in the story, this tagger has no pretraining, and reads no pairs
        assert sum(cell.row in full for cell in sweep.cells) == len(full) * len(columns), "no hole in the table"
        least = {"paper": 5, "toy": 1 if file.stem == "story" else 2, "laptop": 1}.get(scale, 3)
        tasks = [cell for cell in sweep.cells if cell.points[0].program == "finetune"]
        assert all(len(cell.seeds) >= least for cell in tasks)
        for data in {data for point in sweep.points for data in point.files if not data.made}:
            folder, _, name = data.name.partition("/")
            assert f"{folder}/" in docstring and (folder == "corpora" or Path(name).suffix in docstring), data.name
            assert scale != "toy"


@pytest.mark.parametrize("file", mark_long(SWEEPS, SAMPLE), ids=lambda file: file.stem)
def test_every_command_is_one_that_its_program_takes(sweeps, file, tmp_path):
    """Flags, fields, and the program's own checks; one seed of each cell is enough."""
    for scale in re.search(r"SCALES = \((.*)\)", file.read_text(encoding="utf-8"))[1].replace('"', "").split(", "):
        folders = sweeps.folders.Folders(tmp_path, tmp_path / "data")
        sweep = read_once(file.stem, scale)
        cell_names = set()
        for point in sweep.points:
            cell = point.name.rpartition(", seed ")[0] or point.name
            if cell not in cell_names:
                cell_names.add(cell)
                config = parse(point, folders.command(point))
                assert dict(list_fields(config)) == dict(list_fields(folders.config(point))), point.name
                {"pretrain": check_pretraining, "finetune": check_finetuning}[point.program](point, config)


def parse(point, command):
    """Return the config of a point's command, read by the flags of its program."""
    python, _, program, *words = shlex.split(command)
    assert (python, program) == ("python", f"experiments.{point.program}")
    text = (ROOT / "experiments" / f"{point.program}.py").read_text(encoding="utf-8")
    values = flags.FlagValues()
    for name in re.findall(r'DEFINE_(?:string|list|enum)\("(\w+)"', text):
        flags.DEFINE_string(name, None, "", flag_values=values)
    plain, fields = split_fields(words)
    values([point.program, *plain])
    assert all("Point(" not in word and "File(" not in word and "Step(" not in word for word in words)
    config = read_given(point.program, values.config, fields)
    config.update({name: values[name].value for name in NAMED if name in values and values[name].value is not None})
    for name, value in point.settings.items():
        if isinstance(value, bool | int | float | tuple) and name in dict(list_fields(config)):
            assert dict(list_fields(config))[name] == value, name
    return config


def check_pretraining(point, config):
    """Examples, masking, model and schedule fit each other."""
    _, objective = build_objective(config, 1_000)
    assert sum(phase.steps for phase in objective.phases) == config.steps > 0
    initial_state.build_optimizer(config.optimizer, lambda step: 0.0)
    initial_state.build_schedule(config.optimizer, config.steps, width=objective.width)
    assert config.keep >= 1 and config.data


def check_finetuning(point, config):
    """The task, its network or head, and the schedule exist."""
    assert config.train and config.dev and 0 < config.share <= 1
    names = {name: config[name] or None for name in ("text", "pair", "label")}
    task = task_named(config.task, **names, file=config.train)
    initial_state.build_optimizer(config.optimizer, lambda step: 0.0)
    initial_state.build_schedule(config.optimizer, 100)
    if "network" in config:
        check_task(config.network, task)
        adaptation.check_adaptation(config, [])
        assert set(config.places.split(",")) <= {"input", "between", "output"}
        return
    if "documents" in config:
        check_stages(config, [])
        check_documents(config, task)
        assert {"init", "tokenizer"} & set(point.settings) and config.transfer in transfer.WAYS
        return
    needs = {name for name, value in point.settings.items() if name in ("init", "tokenizer")}
    assert needs in ({"init"}, {"tokenizer"})
    pretrained = point.needs[0].resolved
    layers = pretrained.model.num_layers
    features = with_head.read_features(config, get_family(pretrained.family), layers, task.kind)
    assert (features is None) == (not config.features.layers)
    assert config.transfer in transfer.WAYS


@pytest.mark.long
def test_toy_data_are_made(sweeps, tmp_path):
    """The toy data of all sweeps are made together, each file once."""
    toys = [read_once(file.stem, "toy") for file in SWEEPS]
    files = {data for sweep in toys for point in sweep.points for data in point.files}
    assert all(data.made for data in files)
    small = [data for data in files if "corpus" not in data.name and "vocabulary" not in data.name]
    sweeps.toy_tasks.make_files(tmp_path, small)
    assert all((tmp_path / data.name).stat().st_size > 1000 for data in small)
    corpora = sorted(data.name for data in files if data not in small)
    patterns = (sweeps.toy_tasks.CORPUS, sweeps.toy_tasks.TEXTS)
    assert all(any(re.fullmatch(pattern, name) for pattern in patterns) for name in corpora)
    world = sweeps.toy_tasks.ToyData(2, 2, 40, 300)
    tiny = world.corpus("wordpiece", 79, 30)
    texts = [world.texts(task, tiny) for task in ("topics", "senses")]
    for _ in range(2):
        sweeps.toy_tasks.make_files(tmp_path, [*texts, tiny])
    manifest = open_store(tmp_path / tiny.name).manifest
    assert manifest["tokenizer"]["vocab_size"] == 79
    for task, store in zip(("topics", "senses"), (open_store(tmp_path / file.name) for file in texts)):
        assert store.manifest["tokenizer"]["fingerprint"] == manifest["tokenizer"]["fingerprint"]
        held_out = open_store(store.folder, "heldout")
        assert store.counts["documents"] + held_out.counts["documents"] == 40 and held_out.counts["documents"] > 0
        sweeps.toy_tasks.make_files(tmp_path, [world.file(task, "train")])
        first = (tmp_path / world.name / task / "train-texts.txt").read_text(encoding="utf-8").split("\n\n")[0]
        example = (tmp_path / world.file(task, "train").name).read_text(encoding="utf-8")
        words = example.splitlines()[1].split("\t")[0] if task == "topics" else example.split("\t")[0]
        assert first.startswith(words)
    with pytest.raises(ValueError, match="x is not a name of toy data, such as toy-en-topics4"):
        sweeps.toy_tasks.make_files(tmp_path, [sweeps.points.File("x", made=True)])


def test_points_that_sweeps_share_are_one(sweeps):
    """Common points of two sweeps have one identity, so that one working directory runs them once."""

    def of(name, scale):
        sweep = read_once(name, scale)
        return {point.identity: point for point in sweep.points}

    for scale in ("toy", "one_gpu", "paper"):
        table8 = of("bert_table8", scale)
        for name in ("bert_table5", "bert_table6", "bert_mask_rate", "bert_steps", "bert_sample_efficiency", "own_sop"):
            if (name, scale) == ("bert_table6", "one_gpu"):
                continue  # whose sizes are its own
            both = table8.keys() & of(name, scale).keys()
            assert "pretrain" in {table8[identity].program for identity in both}, (name, scale)
        table3 = of("elmo_table3", scale)
        assert of("elmo_figure2", scale).keys() <= table3.keys()
        for name in ("elmo_table2", "elmo_figure1", "elmo_domain", "own_sampled_softmax"):
            shared = {point.program for identity, point in of(name, scale).items() if identity in table3}
            assert "pretrain" in shared, (name, scale)
    steps = of("bert_steps", "one_gpu").values()
    assert {point.identity for point in steps if point.program != "finetune"} <= of("bert_table5", "one_gpu").keys()


def test_checkpoints_of_a_pretraining(sweeps, tmp_path):
    Point, Step, folders = sweeps.points.Point, sweeps.points.Step, sweeps.folders.Folders(tmp_path)
    bert = Point("bert", "pretrain", "bert:toy", {"steps": 250, "checkpoint_every": 100, "keep": 2})
    with pytest.raises(ValueError, match="bert keeps no checkpoint of step 100: it keeps 2, one every 100 of 250"):
        Step(bert, 100)

    def tagger(init):
        return Point("tagger", "finetune", "finetune", {"init": init, "task": "uner"})

    early = tagger(Step(bert, 200))
    assert early.needs == [bert] and len({early.identity, tagger(bert).identity, tagger(Step(bert, 250)).identity}) == 3
    assert early.identity == tagger(Step(bert, 200)).identity
    assert f" --init={folders.run(bert)}/checkpoints/200 " in folders.command(early)


@pytest.mark.usefixtures("as_users_run")
def test_a_language_model_that_another_run_adapted(sweeps, tmp_path):
    Point, Adapted, folders = sweeps.points.Point, sweeps.points.Adapted, sweeps.folders.Folders(tmp_path)
    lm = Point("lm", "pretrain", "awd_lstm:toy")
    task = {"task": "trec", "train": sweeps.points.File("train.txt")}
    tuned, plain = (Point("tuned", "finetune", "ulmfit", {"init": lm, "lm.epochs": n, **task}) for n in (2.0, 0.0))
    after = Point("after", "finetune", "ulmfit", {"init": Adapted(tuned), "lm.epochs": 0.0, **task})
    whole_model = Point("b", "finetune", "ulmfit", {**after.settings, "init": tuned})
    assert after.needs == whole_model.needs == [tuned] and after.identity != whole_model.identity
    assert after.identity == Point("b", "finetune", "ulmfit", {**after.settings, "init": Adapted(tuned)}).identity
    assert f" --init={folders.run(tuned)}/adapted " in folders.command(after)
    with pytest.raises(ValueError, match=r"tuned adapts no language model: set its lm\.epochs"):
        Adapted(plain)
    with pytest.raises(ValueError, match="lm adapts no language model"):
        Adapted(lm)
    with pytest.raises(ValueError, match="expected a point, such as one of add"):
        Adapted((tuned,))
    elmo = Point("elmo", "pretrain", "elmo:toy")
    network = Point("network", "finetune", "bcn", {"encoder": elmo, "adapt.epochs": 1.0})
    kinds = [sweeps.run_sweep._kind_of(value) for value in (lm, tuned, Adapted(tuned), Adapted(network))]
    assert kinds == ["awd_lstm", "finetune", "awd_lstm", "elmo"]


def test_laptop_scale_where_real_text_is_at_hand(sweeps):
    for name in ("bert_table8", "elmo_table2", "elmo_table3", "own_three_encoders"):
        sweep = read_once(name, "laptop")
        for cell in sweep.cells:  # a reader takes a quarter of an hour
            assert len(cell.seeds) == (1 if cell.column == "SQuAD" else 3)


@pytest.mark.parametrize(
    ("config", "score", "percent"),
    [
        ("finetune:squad", "", False),
        ("bidaf", "", False),
        ("finetune:entities", "", True),
        ("tagger", "adapted/held_out/perplexity", False),
        ("bidaf", "adapted/held_out/mlm_accuracy", True),
    ],
)
def test_fractions_are_shown_in_percent(sweeps, config, score, percent):
    add = sweeps.definition.Add("", None)
    add.transfer("a", "b", config, of="", seeds=(0,), score=score)
    assert add.cells["a", "b"].percent is percent


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize(("body", "message"), MISTAKES, ids=[message[:40] for _, message in MISTAKES])
def test_mistakes(sweeps, tmp_path, body, message):
    file = tmp_path / "mine.py"
    file.write_text(
        f'"""Mine."""\nfrom bert_elmo_jax.sweeps.definition import Paper\nSCALES = ("toy",)\n'
        f'PAPER = Paper("", ("NER", "MNLI"), {{"a": (1.0, None), "b": (2.0, None), "c": (3.0, None)}}, "a")\n'
        f"def sweep(add):\n    {body}\n",
        encoding="utf-8",
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        sweeps.definition.read_sweep(str(file), "toy")


def test_a_sweep_without_a_paper_or_scales(sweeps, tmp_path):
    """Rows and columns come from the cells; the first row is the reference."""
    body = "".join(f"    {TRANSFER.replace(chr(34) + 'a' + chr(34), repr(row))})\n" for row in ("x", "y"))
    (tmp_path / "mine.py").write_text(f'"""Mine."""\n\n\ndef sweep(add):\n{body}', encoding="utf-8")
    sweep = sweeps.definition.read_sweep(str(tmp_path / "mine.py"))
    assert (list(sweep.paper.rows), sweep.paper.columns, sweep.paper.reference) == (["x", "y"], ("NER",), "x")
    assert (sweep.scale, sweep.folder, sweep.paper.has_figures) == ("", "mine", False)
    table = sweeps.table.read_table(sweep, sweeps.folders.Folders(tmp_path))
    assert "paper" not in sweeps.report.write_markdown(table) and "Scale" not in sweeps.report.write_markdown(table)
    assert not any("paper" in line for line in sweeps.table.list_lines(table))
    with pytest.raises(ValueError, match="--scale=toy: mine has no such scale; it has none: leave --scale out"):
        sweeps.definition.read_sweep(str(tmp_path / "mine.py"), "toy")


@pytest.mark.parametrize(
    ("scales", "scale"), [('("toy", "paper")', "toy"), ('("one_gpu",)', "one_gpu"), ('("laptop", "paper")', None)]
)
def test_the_scale_by_default(sweeps, tmp_path, scales, scale):
    body = f'"""Mine."""\nSCALES = {scales}\n\n\ndef sweep(add):\n    {TRANSFER})\n'
    (tmp_path / "mine.py").write_text(body, encoding="utf-8")
    if scale:
        assert sweeps.definition.read_sweep(str(tmp_path / "mine.py")).scale == scale
        return
    with pytest.raises(ValueError, match="mine has several scales: give --scale=laptop or --scale=paper"):
        sweeps.definition.read_sweep(str(tmp_path / "mine.py"))


def test_a_file_named_without_its_ending_is_suggested(sweeps, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("my sweep.py").write_text('"""Mine."""\n', encoding="utf-8")
    with pytest.raises(FileNotFoundError, match=r"--sweep=my sweep: .*; did you mean my sweep\.py\?"):
        sweeps.definition.read_sweep("my sweep")


def test_the_example_is_a_sweep(sweeps, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hint = sweeps.new_sweep.write_example("mine.py")
    assert hint.endswith("python -m experiments.sweep --sweep=mine.py --data=. --workdir=runs/sweeps")
    sweep = sweeps.definition.read_sweep("mine.py")
    assert len(sweep.cells) == 6 and len(sweep.points) == 18 and "my_sweep" not in (tmp_path / "mine.py").read_text()
    assert sweep.plot({("rate 5e-5", "2 epochs"): 80.0}).series == {"2 epochs": [(5e-5, 80.0)], "4 epochs": []}
    for name, message in (("mine.py", "there is such a file already"), ("mine", "expected a name that ends in .py")):
        with pytest.raises((ValueError, FileExistsError), match=message):
            sweeps.new_sweep.write_example(name)


@pytest.mark.parametrize("name", ["my folder/my sweep.py", 'a"""b.py', "it's.py", "a\\nb.py"])
def test_the_example_in_a_path_of_any_characters(name, sweeps, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = sweeps.new_sweep.write_example(name).splitlines()[-1].strip()
    assert f"--sweep={name}" in shlex.split(command)
    docstring = ast.get_docstring(ast.parse(Path(name).read_text(encoding="utf-8")))
    assert f"Command: {command}" in docstring.splitlines()


@pytest.mark.usefixtures("as_users_run")
def test_files_that_are_no_sweeps(sweeps, tmp_path):
    read = sweeps.definition.read_sweep
    with pytest.raises(FileNotFoundError, match=r"did you mean bert_table8\?"):
        read("bert_table9.py", "toy")
    (tmp_path / "x.py").write_text('"""X."""\nSCALES = ()\n')
    with pytest.raises(ValueError, match=r"it has no function sweep\(add\); --new=my_sweep.py writes"):
        read(str(tmp_path / "x.py"), "toy")
    with pytest.raises(ValueError, match="elmo_figure1 has no such scale; it has toy, one_gpu, paper"):
        read(str(SWEEPS[0].with_name("elmo_figure1.py")), "laptop")
    with pytest.raises(
        ValueError, match=r"row 'a' has the figures \(1\.0,\), expected a number or None for each of the 2 columns"
    ):
        sweeps.definition.Paper("", ("x", "y"), {"a": (1.0,)}, "a")
    with pytest.raises(ValueError, match="two columns of one name: x, x"):
        sweeps.definition.Paper("", ("x", "x"), {"a": (1.0, 2.0)}, "a")
    with pytest.raises(ValueError, match=r"row 'a' has the figures 1\.0"):
        sweeps.definition.Paper("", ("x",), {"a": 1.0}, "a")
    with pytest.raises(ValueError, match="reference row 'b' is none of a"):
        sweeps.definition.Paper("", ("x",), {"a": (1.0,)}, "b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def sweep(add)\n", "x.py, line 1: SyntaxError"),
        ("'강가에'".encode("cp949"), "x.py, line 1: SyntaxError: (unicode error)"),
        ("\nimport no_such_thing\n", "x.py, line 2: ModuleNotFoundError: No module named 'no_such_thing'"),
        ("\nraise SystemExit(0)\n", "x.py, line 2: SystemExit: 0"),
        ("NOTES = {'tyo': '…'}", "NOTES={'tyo': '…'}, expected a text for some of its scales, toy"),
        ("plot = 'x'", "plot='x', expected a function of the table's means"),
    ],
)
def test_files_with_mistakes(sweeps, tmp_path, text, message):
    header = '"""X."""\nfrom bert_elmo_jax.sweeps.definition import Paper\nSCALES, sweep = ("toy",), print\n'
    header += 'PAPER = Paper("", ("x",), {"a": (1.0,)}, "a")\n'
    contents = header + text if isinstance(text, str) and " = " in text else text
    (tmp_path / "x.py").write_bytes(contents if isinstance(contents, bytes) else contents.encode())
    with pytest.raises(ValueError, match=re.escape(message)):
        sweeps.definition.read_sweep(str(tmp_path / "x.py"), "toy")


def test_values_are_written_as_they_are_meant(sweeps, tmp_path):
    Point, folders = sweeps.points.Point, sweeps.folders.Folders(tmp_path)
    usual = Point("b", "pretrain", "bert:toy", {"masking.split": (0.8, 0.1, 0.1)})
    for split in ([0.8, 0.1, 0.1], tuple(np.array([0.8, 0.1, 0.1]))):
        other = Point("b", "pretrain", "bert:toy", {"masking.split": split})
        assert other.identity == usual.identity and folders.command(other) == folders.command(usual)
    long = Point("밝" * 300, "pretrain", "bert:toy")
    folders.claim(long)
    assert folders.run(long).is_dir() and len(folders.run(long).name.encode()) < 200


def test_missing_data_are_all_named(sweeps, tmp_path):
    folders = sweeps.folders.Folders
    sweep = read_once("bert_table8", "laptop")
    with pytest.raises(ValueError, match=r"needs --data=FOLDER with these files:\n  corpora/novels\n  sst2/train\.tsv"):
        sweeps.run_sweep.check_data(sweep, folders(tmp_path))
    (tmp_path / "sst2").mkdir()
    (tmp_path / "sst2" / "train.tsv").touch()
    with pytest.raises(FileNotFoundError, match=r"lacks\n  corpora/novels\n  sst2/dev\.tsv\n  uner/") as error:
        sweeps.run_sweep.check_data(sweep, folders(tmp_path, tmp_path))
    assert "sst2/train.tsv" not in str(error.value)


def test_the_identity_of_a_point(sweeps):
    Point, File = sweeps.points.Point, sweeps.points.File
    bert = Point("bert", "pretrain", "bert:toy", {"steps": 100})

    def tagger(name="tagger", init=bert, config="finetune", **settings):
        return Point(name, "finetune", config, {"init": init, "task": "uner", "train": File("x.iob2"), **settings})

    first = tagger().identity
    assert re.fullmatch("[0-9a-f]{8}", first)
    same = [
        tagger("another name"),
        tagger(epochs=3.0),  # as the config has it
        tagger(log_every=3, checkpoint_every=5, **{"mesh.data": 2}),  # comfort
        tagger(init=Point("other", "pretrain", "bert:toy", {"steps": 100, "keep": 9})),
        tagger(config=str(ROOT / "experiments" / "configs" / "finetune.py")),
    ]
    assert {point.identity for point in same} == {first}
    different_points = [
        tagger(seed=1),
        tagger(epochs=4.0),
        tagger(train=File("y.iob2")),
        tagger(init=Point("bert", "pretrain", "bert:toy", {"steps": 101})),
        tagger(init="some/where"),
        tagger(config="finetune:entities"),
        bert,
    ]
    assert len({first, *(point.identity for point in different_points)}) == len(different_points) + 1


def test_checkpoints_that_are_averaged_belong_to_the_identity(sweeps):
    def identify(**settings):
        return sweeps.points.Point("t", "pretrain", "transformer:toy", settings).identity

    assert identify(checkpoint_every=50) != identify(checkpoint_every=60)
    assert identify(average=1, checkpoint_every=50) == identify(average=1, checkpoint_every=60)
    assert identify(keep=7) == identify(keep=8)


def test_where_a_point_lies(sweeps, tmp_path):
    Point, folders = sweeps.points.Point, sweeps.folders.Folders(tmp_path / "w", tmp_path / "data")
    bert = Point("BERT 80/10/10, 배", "pretrain", "bert:toy", {"masking.split": (0.8, 0.1, 0.1)})
    assert folders.run(bert).name == f"BERT-80-10-10-배-{bert.identity}"
    assert "'--config.masking.split=(0.8, 0.1, 0.1)'" in folders.command(bert)
    again = Point("base", "pretrain", "bert:toy", {"masking.split": (0.8, 0.1, 0.1)})
    folders.run(bert).mkdir(parents=True)
    assert sweeps.folders.Folders(tmp_path / "w").run(again) == folders.run(bert), "one run under two names"
    elmo = Point("elmo", "pretrain", "elmo:toy")
    settings = {"encoder": elmo, "task": "uner", "train": sweeps.points.File("x.iob2")}
    taggers = [Point("t", "finetune", "tagger", {**settings, **more}) for more in ({}, {"seed": 1}, {"share": 0.5})]
    caches = [folders.job(tagger).fields["cache"] for tagger in taggers]
    assert caches[0] == caches[1] != caches[2], "vectors are shared by runs that read the same texts"
    assert f" --train={tmp_path / 'data' / 'x.iob2'} " in folders.command(taggers[0])
