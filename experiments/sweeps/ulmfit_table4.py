"""ULMFiT, table 4: with and without a general language model.

Without pretraining, the language model begins with random weights and reads the task's texts alone.

Paper and expected score: Howard and Ruder 2018, https://arxiv.org/abs/1801.06146, table 4: validation errors, here as
accuracies; pretraining helps most where the data are few (TREC-6).
Scales: toy (minutes on two cores; the general model reads a toy world, and AG's column is another one),
one_gpu (a fifth of IMDb's labels, and TREC-6), paper.
Cost: toy, 133 seconds of processor time in 9 runs; the others are not measured yet.
Command: python -m experiments.sweep --sweep=ulmfit_table4 --jobs=2 --workdir=runs/sweeps
"""

from bert_elmo_jax.sweeps.definition import Add, Paper

from ._ulmfit import COLUMNS, ULMFIT, as_accuracies

SCALES = ("toy", "one_gpu", "paper")
PAPER = Paper(
    source="Howard and Ruder 2018, table 4, 100 − validation error",
    columns=COLUMNS,
    rows={"without pretraining": as_accuracies(5.63, 10.67, 5.52), "with pretraining": as_accuracies(5.00, 5.69, 5.38)},
    reference="without pretraining",
)
NOTES = {
    "toy": "In the world that the general model knows, 128 texts are enough for a model without it. In the other "
    "world it is worth 11 points, but its two seeds without are 9 points apart."
}


def sweep(add: Add) -> None:
    """Add one general language model, and the tasks with and without it."""
    s = ULMFIT[add.scale]
    lm = s.pretrain(add)
    s.row(add, "without pretraining", preset=lm, tokenizer=lm, transfer="gradual")
    s.row(add, "with pretraining", init=lm, transfer="gradual")
