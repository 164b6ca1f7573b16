"""ULMFiT, table 5: an AWD-LSTM, or the same language model without any dropout.

Paper and expected score: Howard and Ruder 2018, https://arxiv.org/abs/1801.06146, table 5: validation errors, here as
accuracies; the regularised model is better everywhere, most where the data are few.
Scales: toy (minutes on two cores; its usual model has no dropout, because the toy world has more text than it reads, so
the other row gets some), one_gpu (a fifth of IMDb's labels, and TREC-6), paper.
Cost: toy, 140 seconds of processor time in 6 runs; the others are not measured yet.
Command: python -m experiments.sweep --sweep=ulmfit_table5 --jobs=2 --workdir=runs/sweeps
"""

from bert_elmo_jax.sweeps.definition import Add, Paper

from ._ulmfit import COLUMNS, NO_DROPOUT, TOY_DROPOUT, ULMFIT, as_accuracies

SCALES = ("toy", "one_gpu", "paper")
PAPER = Paper(
    source="Howard and Ruder 2018, table 5, 100 − validation error",
    columns=COLUMNS,
    rows={"vanilla LM": as_accuracies(5.98, 7.41, 5.76), "AWD-LSTM LM": as_accuracies(5.00, 5.69, 5.38)},
    reference="vanilla LM",
)
NOTES = {
    "toy": "The order is reversed: the toy world has more text than 1,000 steps read, so dropout only slows the "
    "language model (perplexity 5.2 against 4.6) and its classifier, which learns from 128 texts in 320 steps."
}


def sweep(add: Add) -> None:
    """Add the tasks on a language model with and without dropout, in all three stages."""
    s = ULMFIT[add.scale]
    without = s.pretrain(add, "language model without dropout", **NO_DROPOUT)
    lm_settings = {"lm.drop_factor": 0.25} if add.scale == "toy" else {}
    s.row(add, "vanilla LM", long=True, init=without, transfer="gradual", **{"drop_factor": 0.0, "lm.drop_factor": 0.0})
    lm = s.pretrain(add, **(TOY_DROPOUT if add.scale == "toy" else {}))
    s.row(add, "AWD-LSTM LM", long=True, init=lm, transfer="gradual", **lm_settings)
