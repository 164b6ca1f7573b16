"""ULMFiT, table 6: ways to tune the language model to the texts of the task.

Not at all; all layers with one constant rate; with discriminative rates; and with a slanted triangle, too.

Paper and expected score: Howard and Ruder 2018, https://arxiv.org/abs/1801.06146, table 6: validation errors, here as
accuracies; tuning helps, and each of the two ideas adds to it, except for discriminative rates on TREC-6 at first.
Scales: toy (minutes on two cores; the general model reads a toy world, and AG's column is another one),
one_gpu (a fifth of IMDb's labels, and TREC-6), paper.
Cost: toy, 240 seconds of processor time in 17 runs; the others are not measured yet.
Command: python -m experiments.sweep --sweep=ulmfit_table6 --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper

from ._ulmfit import COLUMNS, LM_FULL, NO_LM, ULMFIT, as_accuracies

SCALES = ("toy", "one_gpu", "paper")
PAPER = Paper(
    source="Howard and Ruder 2018, table 6, 100 − validation error",
    columns=COLUMNS,
    rows={
        "no LM tuning": as_accuracies(6.99, 6.38, 6.09),
        "full": as_accuracies(5.86, 6.54, 5.61),
        "full + discr": as_accuracies(5.55, 6.36, 5.47),
        "full + discr + stlr": as_accuracies(5.00, 5.69, 5.38),
    },
    reference="no LM tuning",
)
NOTES = {
    "toy": "A model that knows the world of the task gains nothing from 128 texts of it and forgets a little, least "
    "with rates by layer. In the world that it does not know, tuning with rates by layer gains 4 points; with one rate "
    "for all layers it loses 3."
}


def sweep(add: Add) -> None:
    """Add one general language model, and the tasks on it, tuned in four ways."""
    s = ULMFIT[add.scale]
    same: dict[str, Any] = {"init": s.pretrain(add), "transfer": "gradual"}
    s.row(add, "no LM tuning", **same, **NO_LM)
    s.row(add, "full", **same, **LM_FULL)
    s.row(add, "full + discr", **same, **{**LM_FULL, "lm.layer_decay": 1 / 2.6})
    s.row(add, "full + discr + stlr", **same)
