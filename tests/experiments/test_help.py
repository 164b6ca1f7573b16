"""`--help` of every program, messages about mistyped flags, and the shape of the programs."""

import ast
import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from absl import flags

from experiments.command_line import start

from .programs import run_program

ROOT = Path(__file__).parents[2]
SOURCES = {
    ".".join(path.relative_to(ROOT / "experiments").with_suffix("").parts): path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "experiments").rglob("[a-z]*.py"))
    if '__name__ == "__main__"' in path.read_text(encoding="utf-8")
}
PROGRAMS = [name for name in SOURCES if "." not in name]
CONFIG = "experiments/configs/bert.py:tiny"
PRETRAIN = [f"--config={CONFIG}", "--workdir=x"]
MISTAKES = [
    ("prepare_data", ["--outptu=x"], "prepare_data: there is no flag --outptu; did you mean --output?; --help"),
    ("prepare_data", ["--input=a", "--output=b", "--split=sentence"], "--split=sentence is not known; it is one of"),
    ("prepare_data", ["--input=a", "--output=b", "--split=sentence"], "lines, sentences; did you mean sentences?"),
    ("prepare_data", ["--input=a", "--output=b", "--tokenizer=wordpeice"], "did you mean wordpiece?"),
    ("convert", ["--from=x"], "convert: --to=… is needed"),
    ("probe", ["--what=sense", "--output=x"], "--what=sense is not known; it is one of probe, efficiency, senses,"),
    ("probe", ["--what=sense", "--output=x"], "; did you mean senses?"),
    ("predict", ["--model=x", "--batch_size=0"], "--batch_size=0: "),
    ("predict", ["--model=x", "surplus"], "unexpected argument 'surplus'"),
    ("extract", ["--model=x", "--input=y", "--output=z.h5", "--layer=1"], "no flag --layer; did you mean --layers?"),
    ("pretrain", ["--config=experiments/configs/bert_toi.py"], "did you mean bert:toy?"),
    ("pretrain", ["--config=experiments/configs/bert_toy.py"], "did you mean bert:toy?"),
    ("pretrain", ["--config", "elmo-smal", "--workdir=x"], "did you mean elmo:small?"),
    (
        "pretrain",
        ["--config=bret:toy", "--workdir=x"],
        "--config=bret:toy: there is no such recipe; did you mean bert:toy?",
    ),
    ("pretrain", ["--config=bert:toi"], "--config=bert:toi: there is no recipe 'toi'; choose from toy, tiny, mini"),
    ("pretrain", ["--config=강가.py"], "there is no such file; give your own file, or one of awd_lstm, bcn,"),
    ("pretrain", ["--config=experiments/configs/bert.py"], "bert.py: it needs a recipe; choose from toy, tiny, mini,"),
    ("pretrain", ["--config=experiments/configs/bert.py:toi"], "there is no recipe 'toi'; choose from toy, tiny, mini"),
    ("pretrain", ["--config=experiments/configs/bert.py:toi"], "did you mean toy?"),
    ("pretrain", ["--workdir=x"], "--config=… is needed: a recipe, such as bert:base, or your own file"),
    ("pretrain", [f"--config={CONFIG}"], "--workdir=… is needed"),
    ("pretrain", [*PRETRAIN, "--config.stepz=3"], "no field 'stepz'; did you mean --config.steps?"),
    ("pretrain", [*PRETRAIN, "--config.zebra=3"], f"no field 'zebra'; --config={CONFIG} --help lists them"),
    ("pretrain", [*PRETRAIN, "--config.steps=many"], "steps='many': expected a value like 1000000"),
    ("pretrain", [*PRETRAIN, "--config.model.remat=perhaps"], "model.remat='perhaps': expected a value like false"),
    ("pretrain", [*PRETRAIN, "--coordinator=host:port"], "--coordinator=host:port: expected auto, or host:port with a"),
    ("pretrain", [f"--config={CONFIG}", "--worksdir=x"], "no flag --worksdir; did you mean --workdir?"),
    ("finetune", ["--workdir=x", "--config.optimiser.name=adamw"], "did you mean --config.optimizer.name?"),
    ("finetune", ["--taks=sst2"], "there is no flag --taks; did you mean --task?"),
    ("plan", ["--config=bert_bas.py", "--topology=cpu:8"], "did you mean bert:base?"),
    ("finetune", ["--config=experiments/configs/bert.py:toy", "--workdir=x"], "bert.py:toy is for pretrain, not for"),
    ("plan", ["--config=experiments/configs/tagger.py", "--topology=cpu:8"], "tagger.py is for finetune, not for"),
    ("pretrain", ["--config=experiments/__init__.py", "--workdir=x"], "__init__.py: it has no function get_config"),
    ("benchmarks.speed", ["--what=encoding"], "--what=encoding is not known; it is of step, encode, one_text, first_"),
    ("benchmarks.toyworld", ["--run=nowhere"], "benchmarks.toyworld: nowhere is not a run directory"),
]


def flags_of(name):
    """Return the flags that a program defines, each as (kind, name)."""
    return re.findall(r'DEFINE_(\w+)\(\s*"(\w+)"', SOURCES[name])


def test_programs_are_few_and_short():
    assert len(PROGRAMS) <= 13  # the twelve of training, use and tables, and the one for models that write
    long = {name: SOURCES[name].count("\n") for name in PROGRAMS if SOURCES[name].count("\n") > 60}
    assert not long


def test_importing_a_program_defines_no_flag_and_starts_nothing():
    names = [f"experiments.{name}" for name in SOURCES]
    code = (
        "import importlib, threading; from absl import flags; import experiments.command_line.start; "
        f"before = set(flags.FLAGS); [importlib.import_module(name) for name in {names}]; "
        "print({name for name in set(flags.FLAGS) - before if not name.startswith('experimental_orbax')}, "
        "threading.active_count())"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set() 1\n"


def test_no_library_reads_flags_or_imports_a_program():
    for path in (ROOT / "bert_elmo_jax").rglob("*.py"):
        for part in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [part.module or ""] if isinstance(part, ast.ImportFrom) else []
            names += [name.name for name in part.names] if isinstance(part, ast.Import | ast.ImportFrom) else []
            wrong = ("experiments",) if path.name == "workers.py" else ("absl", "experiments")  # grain has flags
            assert not any(name.partition(".")[0] in wrong for name in names), path


@pytest.mark.parametrize(
    "name", ["kneser_ney", "masked_baselines", "nearest_translation", "_inputs", "_results", "_page", "_utilisation"]
)
def test_examples_of_docstrings(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    failed, tried = doctest.testmod(importlib.import_module(f"experiments.benchmarks.{name}"))
    assert tried > failed == 0
    for module in [module for module in sys.modules if module.startswith("experiments.benchmarks")]:
        del sys.modules[module]  # or starting one of them as a program would warn


def test_parts_of_the_command_line(monkeypatch):
    monkeypatch.chdir(ROOT)
    words = ["finetune", "--config=a.py", "--config.epochs=2", "--noconfig.context", "--config.seed", "1"]
    fields = {"epochs": "2", "context": "false", "seed": "1"}
    assert start.split_fields(words) == (["finetune", "--config=a.py"], fields)
    assert [start.read_layers(names) for names in (["0", "-1"], ["all"], None)] == [[0, -1], "all", None]
    error = flags.IllegalFlagValueError("flag --what=sense: value should be one of <senses|weights>")
    known = "--what=sense is not known; it is one of senses, weights; did you mean senses?"
    assert start.describe(error, []) == known
    comments = start.read_comments(ROOT / "experiments" / "configs" / "bcn.py")
    assert comments["batch_size"] == "rows, on all devices together"
    assert comments["feed_size"] == "of the layer between words and BiLSTM"


@pytest.mark.parametrize("name", SOURCES)
def test_help(name):
    status, out, err = run_program(name, "--help")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert re.match(r"[A-Z].*[.?:;,\w]$", lines[0]), "it begins with what the program is for"
    assert re.search(r"^[A-Z][^.?]*[.?](\s|$)", out), "in a sentence"
    assert re.search(rf"^ .*python -m experiments\.{re.escape(name)}( |$)", out, re.M), "an example"
    assert max(map(len, lines)) <= 120
    defined = flags_of(name)
    assert defined or name == "doctor"
    for kind, flag in defined:
        shown = f"[no]{flag}" if kind == "bool" else flag
        assert len(re.findall(rf"^  --{re.escape(shown)}( |$)", out, re.M)) == 1, f"--{flag} is listed once"
    assert len(re.findall(r"^  --", out, re.M)) == len(defined), "and none that is another's"
    if len(defined) > 10 and "benchmarks" not in name:
        assert len(re.findall(r"^[A-Z][\w ,]*:$", out.split("\n\n", 1)[1].rpartition("\n  python")[2], re.M)) >= 2
    assert ("--config=FILE --help" in out) == (("string", "config") in defined)


def test_values_and_defaults():
    out = " ".join(run_program("prepare_data", "--help").out.split())
    assert "--split One sentence per line, or running text to be split. [lines, sentences; default lines]" in out
    assert "--heldout Share of documents held out for evaluation. [default 0.01]" in out
    assert "may be repeated; repeat" not in out


def test_fields_of_a_config():
    status, out, err = run_program("finetune", "--help", "--config=experiments/configs/tagger.py")
    assert (status, err) == (0, "")
    assert out.startswith("A tagger of words: BiLSTMs and a conditional random field")
    assert max(map(len, out.splitlines())) <= 120
    for line in (  # the beginnings of some
        "--config.network=tagger\n",
        "--config.optimizer.learning_rate=0.001\n",
        "--config.batch_size=32                      rows, on all devices together",
        "--config.adapt.epochs=0.0                   Epochs that the encoder first trains on the training texts",
        "--config.adapt.learning_rate=0.001\n",
    ):
        assert f"\n  {line}" in out, line


def test_recipes_of_a_config():
    out = run_program("pretrain", "--help", "--config=elmo").out
    assert re.search(r"^  elmo:original    ELMo, original size: 93\.6 M parameters", out, re.M)
    out = run_program("pretrain", "--help", "--config=elmo:original").out
    assert out.startswith("ELMo, original size: 93.6 M parameters")
    assert "\n\nPaper and expected score: Peters et al. 2018" in out


@pytest.mark.parametrize(("name", "words", "message"), MISTAKES)
def test_mistakes(name, words, message):
    status, out, err = run_program(name, *words)
    assert status == 2, err
    assert message in err
    assert err.count("\n") == 1, "one message"
    assert "Traceback" not in err
    assert not out
