"""ULMFiT, table 5: an AWD-LSTM, or the same language model without any dropout.

Paper and expected score: Howard and Ruder 2018, https://arxiv.org/abs/1801.06146, table 5: validation errors, here as
accuracies; the regularised model is better everywhere, most where the data are few.
Scales: toy (minutes on two cores; its dropout is weak, because the toy world has more text than the model reads),
paper. Cost: not measured yet.
Command: python -m experiments.sweep --sweep=experiments/sweeps/ulmfit_table5.py --jobs=2 --workdir=runs/sweeps
"""

from bert_elmo_jax.sweeps.definition import Add, Paper
from experiments.sweeps._ulmfit import COLUMNS, NO_DROPOUT, as_accuracies
from experiments.sweeps._ulmfit import SCALES as _SCALES

SCALES = tuple(_SCALES)
PAPER = Paper(
    source="Howard and Ruder 2018, table 5, 100 − validation error",
    columns=COLUMNS,
    rows={"vanilla LM": as_accuracies(5.98, 7.41, 5.76), "AWD-LSTM LM": as_accuracies(5.00, 5.69, 5.38)},
    reference="vanilla LM",
)


def sweep(add: Add) -> None:
    """Add the tasks on a language model with and without dropout, in all three stages."""
    s = _SCALES[add.scale]
    vanilla = s.pretrain(add, "language model without dropout", **NO_DROPOUT)
    none = {"drop_factor": 0.0, "lm.drop_factor": 0.0}
    s.row(add, "vanilla LM", init=vanilla, transfer="gradual", **none)
    s.row(add, "AWD-LSTM LM", init=s.pretrain(add), transfer="gradual")
