"""--help of every program, and what mistyped flags are told: all in one process, each program as if it were alone."""

import doctest
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = {
    ".".join(path.relative_to(ROOT / "experiments").with_suffix("").parts): path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "experiments").rglob("[a-z]*.py"))
    if '__name__ == "__main__"' in path.read_text(encoding="utf-8")
}
SHARED = (ROOT / "experiments" / "pretraining.py").read_text(encoding="utf-8")
CONFIG = "experiments/configs/bert_tiny.py"
MISTAKES = [
    ("prepare_data", ["--outptu=x"], "prepare_data: there is no flag --outptu; did you mean output?; --help"),
    ("prepare_data", ["--input=a", "--output=b", "--split=sentence"], "--split=sentence is not known; it is one of"),
    ("prepare_data", ["--input=a", "--output=b", "--split=sentence"], "lines, sentences; did you mean sentences?"),
    ("prepare_data", ["--input=a", "--output=b", "--tokenizer=wordpeice"], "did you mean wordpiece?"),
    ("convert", ["--from=x"], "convert: --to=… is needed"),
    ("probe", ["--what=sense", "--output=x"], "--what=sense is not known; it is one of probe, efficiency, senses,"),
    ("probe", ["--what=sense", "--output=x"], "; did you mean senses?"),
    ("predict", ["--model=x", "--batch_size=0"], "--batch_size=0: "),
    ("predict", ["--model=x", "surplus"], "unexpected argument 'surplus'"),
    ("extract", ["--model=x", "--input=y", "--output=z.h5", "--layer=1"], "no flag --layer; did you mean layers?"),
    ("pretrain_bert", ["--config=experiments/configs/bert_toi.py"], "did you mean experiments/configs/bert_toy.py?"),
    ("pretrain_elmo", ["--config", "elmo-smal", "--workdir=x"], "did you mean experiments/configs/elmo_small.py?"),
    ("pretrain_bert", ["--config=강가.py"], "no such file; experiments/configs has those that come along"),
    ("pretrain_bert", [f"--config={CONFIG}", "--config.stepz=3"], "did you mean --config.steps?"),
    ("pretrain_bert", [f"--config={CONFIG}", "--config.zebra=3"], f"--config={CONFIG} --help lists them"),
    ("pretrain_bert", [f"--config={CONFIG}", "--config.steps=many"], "--config.steps=many: invalid literal"),
    ("pretrain_bert", [f"--config={CONFIG}", "--worksdir=x"], "no flag --worksdir; did you mean workdir?"),
    ("finetune", ["--config.optimiser.name=adamw"], "did you mean --config.optimizer.name?"),
    ("finetune", ["--taks=sst2"], "there is no flag --taks; did you mean task?"),
    ("plan", ["--config=bert_bas.py"], "did you mean experiments/configs/bert_base.py?"),
    ("pretrain_bert", ["--config=experiments/configs/elmo_toy.py"], "elmo_toy.py is for pretrain_elmo, and this is"),
    ("finetune", ["--config=experiments/configs/bert_toy.py", "--task=sst2"], "bert_toy.py is for pretrain_bert,"),
    ("plan", ["--config=experiments/configs/tagger.py"], "tagger.py is for finetune, and this is plan"),
    ("pretrain_elmo", ["--config=experiments/__init__.py"], "__init__.py: it has no function get_config"),
    ("benchmarks.bert", ["--what=encoding"], "it is one of step, encode, utilisation"),
    ("benchmarks.toyworld", ["--run=nowhere"], "benchmarks.toyworld: nowhere is no run directory"),
]
HELPS = [*((name, ["--help"]) for name in SOURCES), ("finetune", ["--help", "--config=experiments/configs/tagger.py"])]

# Runs programs as `python -m` would, one after the other; the flags of one are gone when the next is started.
DRIVER = """
import contextlib, io, json, os, runpy, sys
from absl import app, flags
app.define_help_flags()
found = []
for name, words in json.load(sys.stdin):
    before = set(flags.FLAGS)
    out, err = io.StringIO(), io.StringIO()
    sys.argv = [f"{name}.py", *words]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            runpy.run_module(f"experiments.{name}", run_name="__main__", alter_sys=True)
            status = 0
        except SystemExit as error:
            status = error.code
    found.append([status or 0, out.getvalue(), err.getvalue()])
    flags.FLAGS.unparse_flags()
    for flag in set(flags.FLAGS) - before:
        if flags.FLAGS.find_module_defining_flag(flag).startswith(("experiments.", os.sep, f"{name}.py")):
            delattr(flags.FLAGS, flag)
    for module in [module for module in sys.modules if module.startswith("experiments.")]:
        del sys.modules[module]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def started():
    """What each program says for each of the command lines: exit status, standard output and standard error."""
    asked = [*HELPS, *((name, words) for name, words, _ in MISTAKES)]
    done = subprocess.run(
        [sys.executable, "-c", DRIVER], input=json.dumps(asked), capture_output=True, text=True, check=True, cwd=ROOT
    )
    return {(name, *words): said for (name, words), said in zip(asked, json.loads(done.stdout), strict=True)}


def flags_of(name):
    """The flags that a program defines, and for --[no]flag whether it is a switch."""
    source = SOURCES[name] + (SHARED if "pretraining.start(" in SOURCES[name] else "")
    return re.findall(r'DEFINE_(\w+)\(\s*"(\w+)"', source)


@pytest.mark.parametrize("name", SOURCES)
def test_help(started, name):
    status, out, err = started[name, "--help"]
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert re.match(r"[A-Z].*[.?:;,\w]$", lines[0]), "it begins with what the program is for"
    assert re.search(r"^[A-Z][^.?]*[.?](\s|$)", out), "in a sentence"
    assert re.search(rf"^ .*python -m experiments\.{re.escape(name)}( |$)", out, re.M), "an example"
    assert max(map(len, lines)) <= 120
    defined = flags_of(name)
    assert defined
    for kind, flag in defined:
        shown = f"[no]{flag}" if kind == "bool" else flag
        assert len(re.findall(rf"^  --{re.escape(shown)}( |$)", out, re.M)) == 1, f"--{flag} is listed once"
    assert len(re.findall(r"^  --", out, re.M)) == len(defined), "and none that is another's"
    if len(defined) > 10 and "benchmarks" not in name:
        assert len(re.findall(r"^[A-Z][\w ,]*:$", out.split("\n\n", 1)[1].rpartition("\n  python")[2], re.M)) >= 2
    assert ("--config=FILE --help" in out) == ("config_file" in dict(defined))


def test_values_and_usual_ones(started):
    out = " ".join(started["prepare_data", "--help"][1].split())
    assert (
        "--split A line is a sentence, or lines are running text to be split. [lines, sentences; default lines]" in out
    )
    assert "--heldout Share of documents held out for evaluation. [default 0.01]" in out
    assert "may be repeated; repeat" not in out


WITH_EXAMPLES = ["command_line", "config_comments", "config_flags", "endings", "prediction_files", "program_help"]


@pytest.mark.parametrize("name", [*WITH_EXAMPLES, "running_text", "task_data", "what_next"])
def test_examples_of_docstrings(program, name, monkeypatch):
    monkeypatch.chdir(ROOT)
    failed, tried = doctest.testmod(program(name))
    assert tried > failed == 0


def test_fields_of_a_config(started):
    status, out, err = started["finetune", "--help", "--config=experiments/configs/tagger.py"]
    assert (status, err) == (0, "")
    assert out.startswith("A tagger of words: BiLSTMs and a conditional random field")
    assert max(map(len, out.splitlines())) <= 120
    for line in (  # the beginnings of some
        "--config.network=tagger\n",
        "--config.optimizer.learning_rate=0.001\n",
        "--config.batch_size=32                      rows, of all devices together",
        "--config.adapt.epochs=0.0                   How many epochs the encoder, an ELMo, reads the training texts",
        "--config.adapt.learning_rate=0.001\n",
    ):
        assert f"\n  {line}" in out, line


@pytest.mark.parametrize(("name", "words", "message"), MISTAKES)
def test_mistakes(started, name, words, message):
    status, out, err = started[name, *words]
    assert status == 2, err
    assert message in err
    assert err.count("\n") == 1, "one message"
    assert "Traceback" not in err
    assert not out
