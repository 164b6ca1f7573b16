"""A small sweep as a file, and the modules that read it."""

import textwrap
from types import SimpleNamespace

import pytest

MODULES = ("points", "folders", "definition", "schedule", "runners", "table", "report", "toy_tasks", "run_sweep",
           "new_sweep")  # fmt: skip
SMALL = '''
"""A small sweep.

Paper and expected score: none.
"""

from bert_elmo_jax.sweeps.definition import Paper

SCALES = ("toy", "paper")
PAPER = Paper("Author 2020, table 1", ("NER", "MNLI"), {"a": (90.0, 80.0), "b": (91.0, 79.0), "c": (None, 70.0)}, "a")


def sweep(add):
    """Two pretrainings, three rows."""
    berts = {row: add.pretrain(f"BERT {row}", "bert:toy", steps=steps) for row, steps in STEPS.items()}
    for row, bert in berts.items():
        for column in PAPER.columns:
            more = {"init": bert, "seeds": SEEDS, "task": "uner", "label": column, **MORE.get((row, column), {})}
            add.transfer(row, column, "finetune", of="F1", **more)
'''


@pytest.fixture
def sweeps(program):
    """Return the modules of sweeps."""
    return SimpleNamespace(**{name: program(f"bert_elmo_jax.sweeps.{name}") for name in MODULES})


@pytest.fixture
def write_small(tmp_path):
    """Return a function that writes the small sweep with other steps, seeds and settings of cells."""

    def write(steps=None, seeds=(0, 1, 2), more=None, text=SMALL):
        file = tmp_path / "small.py"
        steps = steps or {"a": 10, "b": 20, "c": 30}
        constants = f"\nSTEPS, SEEDS, MORE = {steps!r}, {seeds!r}, {more or {}!r}\n"
        file.write_text(textwrap.dedent(text).strip() + "\n" + constants, encoding="utf-8")
        return str(file)

    return write


BERT = '''
"""A BERT and what it is worth, very small."""

from bert_elmo_jax.sweeps.definition import Paper
from experiments.sweeps._scales import BERT, TOY_DATA

SCALES = ("toy",)
PAPER = Paper("Author 2020, table 1", ("MNLI",), {"from nothing": (70.5,), "pretrained": (84.2,)}, "from nothing")


def sweep(add):
    """A pretraining, and a task with it and without."""
    s = BERT["toy"]
    small = {"steps": 30, "eval_every": 30, "checkpoint_every": 10, "batch_size": 32, "model.num_layers": 1}
    data = {"data": TOY_DATA.corpus("wordpiece", 8_192, 300)}
    bert = add.pretrain("BERT", s.config, **{**s.pretraining, **small, **data})
    how = {**s.pairs.settings, **s.tuning, "epochs": 20.0, "batch_size": 256}  # few shapes to compile for
    for row, begin in (("from nothing", {"tokenizer": bert, "preset": bert}), ("pretrained", {"init": bert})):
        add.transfer(row, "MNLI", "finetune", of=s.pairs.of, seeds=SEEDS, **begin, **how)
'''

ELMO = '''
"""An ELMo, whose layers a tagger reads at its input or its output, with the learned weights."""

from bert_elmo_jax.sweeps.definition import Paper
from experiments.sweeps._scales import ELMO, TOY_DATA

SCALES = ("toy",)
PAPER = Paper("Author 2020, table 2", ("NER", "words, %"), {"input": (84.7, None), "output": (80.9, None)}, "input")


def sweep(add):
    """A pretraining, and a task with its layers."""
    s = ELMO["toy"]
    network, task, how = s.tasks["SRL"]
    small = {"steps": 20, "eval_every": 20, "checkpoint_every": 10, "batch_size": 16, "model.filters": ((1, 8),)}
    data = {"data": TOY_DATA.corpus("words", 8_192, 300)}
    elmo = add.pretrain("ELMo", s.config, **{**s.pretraining, **small, **data})
    how = {**task.settings, **how, "encoder": elmo, "epochs": 10.0, "batch_size": 256, "lstm_size": 16}
    for row in PAPER.rows:
        runs = add.transfer(row, "NER", network, of=task.of, seeds=SEEDS, **how, places=row)
        shown = f"layer_shares/mix/{row}/0"
        add.figure(row, "words, %", runs, of="share of the lowest layer", score=shown, percent=True)
'''


@pytest.fixture
def write_toy(tmp_path):
    """Return a function that writes a sweep of very small real trainings."""

    def write(seeds=(0, 1), text=BERT):
        file = tmp_path / "tiny.py"
        file.write_text(f"{text.strip()}\n\n\nSEEDS = {seeds!r}\n", encoding="utf-8")
        return str(file)

    write.bert, write.elmo = BERT, ELMO
    return write


@pytest.fixture(scope="module")
def toy_tables(tmp_path_factory):
    """Return one working directory for all sweeps of a test file, which share their common runs."""
    return tmp_path_factory.mktemp("sweeps")
