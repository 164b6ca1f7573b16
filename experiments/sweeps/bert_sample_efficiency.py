"""BERT: the value of pretraining with little training data.

Rows differ only in their first weights: pretrained ones, or random ones for a model of the same size and pieces.

Paper and expected score: no paper on BERT has these figures; Peters et al. 2018, figure 1, has them for ELMo
(elmo_figure1).
Scales: toy (minutes on two cores), one_gpu (BERT-small), paper (BERT-base). Smaller shares are parts of larger ones
(`config.share`). The pretraining is shared with the first row of bert_table8.
Cost: toy, 180 seconds of processor time in 25 runs; the others are not measured yet.
Command: python -m experiments.sweep --sweep=experiments/sweeps/bert_sample_efficiency.py --jobs=2 --workdir=runs/sweeps
"""

from functools import partial
from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper
from experiments.sweeps._scales import BERT, SHARES, list_shares, plot_shares

SCALES = ("toy", "one_gpu", "paper")
COLUMNS = list_shares("MNLI", "NER")
PAPER = Paper.without_figures(COLUMNS, ("from nothing", "pretrained"), "from nothing")


def sweep(add: Add) -> None:
    """Add one pretraining, and two tasks with and without it on growing shares of their training data."""
    s = BERT[add.scale]
    bert = s.pretrain(add, "BERT")
    rows: dict[str, dict[str, Any]] = {
        "from nothing": {"tokenizer": bert, "preset": bert},
        "pretrained": {"init": bert},
    }
    tasks = {"MNLI": ("finetune", s.pairs), "NER": ("finetune:entities", s.entities)}
    for column, (name, share) in COLUMNS.items():
        if share in SHARES[add.scale]:
            config, task = tasks[name]
            for row, begin in rows.items():
                s.cell(add, row, column, config, task, **begin, **s.tuning, share=share)


plot = partial(plot_shares, paper=PAPER, columns=COLUMNS)
