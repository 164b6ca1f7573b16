"""ULMFiT, table 7: ways to train the classifier on the tuned language model.

From scratch; all layers at once; only the classifier ("last"); chain-thaw (one layer after the other, then all);
gradual unfreezing ("freez"); each with discriminative rates ("discr") or a slanted triangle ("stlr").

Paper and expected score: Howard and Ruder 2018, https://arxiv.org/abs/1801.06146, table 7: validation errors, here as
accuracies; only the last layer underfits, from scratch is worst on IMDb, and all three ideas together are best.
Scales: toy (minutes on two cores; topics of a toy world),
one_gpu (a fifth of IMDb's labels, and TREC-6), paper.
Cost: toy, 293 seconds of processor time in 19 runs; the others are not measured yet.
Command: python -m experiments.sweep --sweep=ulmfit_table7 --jobs=2 --workdir=runs/sweeps
"""

from bert_elmo_jax.sweeps.definition import Add, Paper

from ._ulmfit import COLUMNS, DISCRIMINATIVE, FULL, GRADUAL, NO_LM, TRIANGLE, ULMFIT, as_accuracies

SCALES = ("toy", "one_gpu", "paper")
PAPER = Paper(
    source="Howard and Ruder 2018, table 7, 100 − validation error",
    columns=COLUMNS,
    rows={
        "from scratch": as_accuracies(9.93, 13.36, 6.81),
        "full": as_accuracies(6.87, 6.86, 5.81),
        "full + discr": as_accuracies(5.57, 6.21, 5.62),
        "last": as_accuracies(6.49, 16.09, 8.38),
        "chain-thaw": as_accuracies(5.39, 6.71, 5.90),
        "freez": as_accuracies(6.37, 6.86, 5.81),
        "freez + discr": as_accuracies(5.39, 5.86, 6.04),
        "freez + stlr": as_accuracies(5.04, 6.02, 5.35),
        "freez + stlr + discr": as_accuracies(5.00, 5.69, 5.38),
    },
    reference="from scratch",
)
NOTES = {
    "toy": "320 steps are few, so every idea that keeps layers back costs points: rates by layer, and most of all the "
    "classifier alone. Full training, chain-thaw and gradual unfreezing with the triangle are within a point of each "
    "other, and 2 to 3 points above a model from scratch, which has seen 128 texts only."
}


def sweep(add: Add) -> None:
    """Add one general language model, and the tasks on it, trained in nine ways."""
    s = ULMFIT[add.scale]
    lm = s.pretrain(add)
    s.row(add, "from scratch", long=True, **{**FULL, **NO_LM}, preset=lm, tokenizer=lm)
    s.row(add, "full", long=True, init=lm, **FULL)
    s.row(add, "full + discr", long=True, init=lm, **{**FULL, **DISCRIMINATIVE})
    s.row(add, "last", long=True, init=lm, **{**FULL, "transfer": "frozen"})
    s.row(add, "chain-thaw", long=True, init=lm, **{**FULL, "transfer": "chain_thaw"})
    s.row(add, "freez", long=True, init=lm, **{**FULL, **GRADUAL})
    s.row(add, "freez + discr", long=True, init=lm, **{**FULL, **GRADUAL, **DISCRIMINATIVE})
    s.row(add, "freez + stlr", long=True, init=lm, **{**FULL, **GRADUAL, **TRIANGLE})
    s.row(add, "freez + stlr + discr", long=True, init=lm, transfer="gradual")
