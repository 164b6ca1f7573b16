r"""The second objective: does B follow A (NSP), are A and B in order (SOP), or none.

Paper and expected score: Lan et al. 2019, https://arxiv.org/abs/1909.11942, table 5: SOP helps tasks on several
sentences, NSP little; with a model of theirs, so no figures are printed beside ours. Scales: toy (minutes of two
cores, without a task on two texts, of which so small a model learns nothing), one_gpu (BERT-small, 100,000 steps a
row), paper (BERT-base). The pretrainings of NSP and of none are those of bert_table5. Files below --data: see
experiments/sweeps/_scales.py. Cost: toy, 260 seconds of processor time in 15 runs; the others are not measured yet.

Command:
  python -m experiments.sweep --sweep=experiments/sweeps/own_sop.py --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper
from experiments.sweeps._scales import BERT

SCALES = ("toy", "one_gpu", "paper")
COLUMNS = ("MNLI", "QNLI", "SQuAD")
ROWS = {"NSP": "nsp", "SOP": "sop", "none": "documents"}
PAPER = Paper("none", COLUMNS, {row: (None,) * len(COLUMNS) for row in ROWS}, "NSP")
NOTES = {"toy": "No task here has two texts, which is where SOP should help."}


def sweep(add: Add) -> None:
    """Three pretrainings and three tasks."""
    s = BERT[add.scale]
    for row, objective in ROWS.items():
        settings: dict[str, Any] = {**s.pretraining, "objective": objective}
        bert = add.pretrain(f"BERT, {row}", s.config, **settings)
        for column in COLUMNS:
            if column in s.tasks:
                config, task = s.tasks[column]
                how: dict[str, Any] = {**task.settings, **s.tuning}
                add.transfer(row, column, config, of=task.of, init=bert, seeds=s.seeds, **how)
