"""`--help` of every program, and the shape of the programs."""

import ast
import doctest
import importlib
import inspect
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest
from absl import flags

import bert_elmo_jax
from experiments.command_line import start

from .programs import run_program

ROOT = Path(__file__).parents[2]
SOURCES = {
    ".".join(path.relative_to(ROOT / "experiments").with_suffix("").parts): path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "experiments").rglob("[a-z]*.py"))
    if '__name__ == "__main__"' in path.read_text(encoding="utf-8")
}
SHARING = (ROOT / "experiments" / "command_line" / "sharing.py").read_text(encoding="utf-8")
PROGRAMS = [name for name in SOURCES if "." not in name]


def flags_of(name):
    """Return the flags that a program defines, each as (kind, name)."""
    source = SOURCES[name].replace("    define_sharing()\n", SHARING)
    return re.findall(r'DEFINE_(\w+)\(\s*"(\w+)"', source)


def test_programs_are_few_and_short():
    assert len(PROGRAMS) <= 16  # of training, use, tables, writing, serving, exporting and sharing
    long = {name: SOURCES[name].count("\n") for name in PROGRAMS if SOURCES[name].count("\n") > 60}
    assert not long


def test_the_command_of_a_report_can_be_pasted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/srv/kim")
    shown = {
        f"--train={tmp_path}/a.csv": "--train=a.csv",
        "--dev=/mnt/srv/kim/dev.csv": "--dev=/mnt/srv/kim/dev.csv",
        "--init=/srv/kim/bert": "--init=$HOME/bert",
        "--test=/srv/kim/데이터.csv": "'--test=/srv/kim/데이터.csv'",  # a shell replaces nothing in quotes
    }
    assert {word: start.shorten_word(word) for word in shown} == shown


def test_a_file_of_flags_may_name_the_config(tmp_path):
    (tmp_path / "my.flags").write_text("--config=no_such:recipe\n")
    done = run_program("finetune", f"--flagfile={tmp_path / 'my.flags'}")
    assert done.status == 2 and "--config=no_such:recipe: there is no such recipe" in done.err


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
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "bert_elmo_jax").rglob("*.py")}
    for path, text in texts.items():
        for part in ast.walk(ast.parse(text)) if "absl" in text or "experiments" in text else ():
            names = [part.module or ""] if isinstance(part, ast.ImportFrom) else []
            names += [name.name for name in part.names] if isinstance(part, ast.Import | ast.ImportFrom) else []
            wrong = ("experiments",) if path.name == "workers.py" else ("absl", "experiments")  # grain has flags
            assert not any(name.partition(".")[0] in wrong for name in names), path


@pytest.mark.parametrize(
    "name",
    [
        "kneser_ney",
        "masked_baselines",
        "nearest_translation",
        "retrieval",
        "_inputs",
        "_results",
        "_page",
        "_utilisation",
    ],
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
    message = "--what=sense is not known; it is one of senses, weights; did you mean senses?"
    assert start.describe(error, []) == message
    comments = start.read_comments(ROOT / "experiments" / "configs" / "bcn.py")
    assert comments["batch_size"] == "rows, on all devices together"
    assert comments["feed_size"] == "of the layer between words and BiLSTM"
    configs = ROOT / "experiments" / "configs"
    elmo = start.read_comments(configs / "elmo.py", "original")
    assert "length" not in elmo or "sources" not in elmo["length"], "of a recipe that it does not call"
    assert "buckets" in str(start.read_comments(configs / "static.py", "fasttext"))
    assert "buckets" not in str(start.read_comments(configs / "static.py", "skipgram"))
    assert start.read_comments(configs / "static.py", "skipgram")["min_count"].startswith("words that occur less")
    assert start.read_comments(configs / "tagger.py", "get_config")["suffix"].startswith("Hand-made features: ")


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


@pytest.mark.parametrize(
    "imported",
    [
        "from . import finetune as base",
        "from experiments.configs import (\n    finetune,\n)",
        "from bert_elmo_jax.experiments.configs.finetune import fields as base",
        "from .finetune import (  # the usual fields\n    fields,\n)",
    ],
)
def test_fields_of_a_config_of_ones_own_have_the_comments_of_the_imported_one(imported, tmp_path):
    (tmp_path / "mine.py").write_text(f'"""Mine."""\n\n{imported}\n', encoding="utf-8")
    comments = start.read_comments(tmp_path / "mine.py")
    assert comments == start.read_comments(ROOT / "experiments" / "configs" / "finetune.py") != {}


def test_an_import_of_the_package_itself_gives_no_comments(tmp_path):
    (tmp_path / "mine.py").write_text("from experiments.configs import __path__\n", encoding="utf-8")
    assert start.read_comments(tmp_path / "mine.py") == {}


def test_recipes_of_a_config():
    out = run_program("pretrain", "--help", "--config=elmo").out
    assert re.search(r"^  elmo:original    ELMo, original size: 93\.6 M parameters", out, re.M)
    out = run_program("pretrain", "--help", "--config=elmo:original").out
    assert out.startswith("ELMo, original size: 93.6 M parameters")
    assert "\n\nPaper and expected score: Peters et al. 2018" in out


def test_help_of_packages_names_their_public_members():
    text = pydoc.render_doc(bert_elmo_jax, renderer=pydoc.plaintext)
    description = text[: text.index("PACKAGE CONTENTS")]
    assert not [name for name in bert_elmo_jax.__all__ if f"`{name}`" not in description]
    for name in ("inference", "optim", "networks"):
        package = getattr(bert_elmo_jax, name)
        text = pydoc.render_doc(package, renderer=pydoc.plaintext)
        members = text[text.index("PACKAGE CONTENTS") : text.rindex("DATA")]
        documented = [member for member in package.__all__ if inspect.isroutine(getattr(package, member))]
        assert documented and not [member for member in documented if member not in members]
