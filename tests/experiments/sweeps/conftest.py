"""A small sweep as a file, and the modules that read it: all of one import, whatever other tests have let go of."""

import textwrap
from types import SimpleNamespace

import pytest

MODULES = ("points", "definition", "scales", "schedule", "forks", "table", "markdown", "page", "dashboard",
           "print_runner", "ray_runner", "toy_tasks", "fork_server")  # fmt: skip
SMALL = '''
"""A small sweep.

Paper and expected score: none.
"""

from experiments.sweeps.definition import Paper

SCALES = ("toy", "paper")
PAPER = Paper("somebody, table 1", ("NER", "MNLI"), {"a": (90.0, 80.0), "b": (91.0, 79.0), "c": (None, 70.0)}, "a")


def sweep(add):
    """Two pretrainings, three rows."""
    berts = {row: add.pretrain(f"BERT {row}", "pretrain_bert", "bert_toy", steps=steps) for row, steps in STEPS.items()}
    for row, bert in berts.items():
        for column in PAPER.columns:
            more = {"init": bert, "seeds": SEEDS, "task": "uner", "label": column, **MORE.get((row, column), {})}
            add.transfer(row, column, "finetune", of="F1", **more)
'''


@pytest.fixture
def sweeps(program):
    """The modules of sweeps."""
    return SimpleNamespace(**{name: program(f"sweeps.{name}") for name in MODULES})


@pytest.fixture
def write_small(tmp_path):
    """Writes the small sweep with other steps, seeds and settings of cells."""

    def write(steps=None, seeds=(0, 1, 2), more=None, text=SMALL):
        file = tmp_path / "small.py"
        steps = steps or {"a": 10, "b": 20, "c": 30}
        known = f"\nSTEPS, SEEDS, MORE = {steps!r}, {seeds!r}, {more or {}!r}\n"
        file.write_text(textwrap.dedent(text).strip() + "\n" + known, encoding="utf-8")
        return str(file)

    return write


TINY = '''
"""Table 8, smaller."""

from experiments.sweeps.definition import Paper
from experiments.sweeps.scales import BERT

SCALES = ("toy",)
PAPER = Paper("Devlin et al. 2018, table 8, dev", ("MNLI",), {"80/10/10": (84.2,), "0/0/100": (83.6,)}, "80/10/10")


def sweep(add):
    """Two pretrainings and a task."""
    s = BERT[add.scale]
    for row, split in (("80/10/10", (0.8, 0.1, 0.1)), ("0/0/100", (0.0, 1.0, 0.0))):
        small = {"steps": 30, "eval_every": 30, "checkpoint_every": 10, "masking.split": split}
        size = {"model.num_layers": 1, "toyworld.documents": 300}
        bert = add.pretrain(f"BERT {row}", "pretrain_bert", s.config, **{**s.pretraining, **small, **size})
        how = {**s.pairs.settings, **s.tuning, "share": 0.5, "epochs": 4.0}
        add.transfer(row, "MNLI", "finetune", of=s.pairs.of, init=bert, seeds=SEEDS, **how)
'''


@pytest.fixture
def write_toy(tmp_path):
    """Writes a sweep of real trainings, as small as they can be."""

    def write(seeds=(0, 1)):
        file = tmp_path / "tiny.py"
        file.write_text(f"{TINY.strip()}\n\n\nSEEDS = {seeds!r}\n", encoding="utf-8")
        return str(file)

    return write
