"""BERT: the share of masked pieces, from 5 to 60 percent.

With more masked pieces a row teaches more, but gives less context to learn from.

Paper and expected score: Devlin et al. 2018, https://arxiv.org/abs/1810.04805, mask 15 percent and compare no other
rates; Wettig et al. 2022, https://arxiv.org/abs/2202.08005, find 40 percent better for large models. So there are no
figures to compare with.
Scales: toy (minutes on two cores, four rates), one_gpu (BERT-small, 100,000 steps per rate), paper (eight BERT-bases).
Cost: toy, 380 seconds of processor time in 20 runs; the others are not measured yet.
Command: python -m experiments.sweep --sweep=bert_mask_rate --jobs=2 --workdir=runs/sweeps
"""

from bert_elmo_jax.report.figures import Lines
from bert_elmo_jax.sweeps.definition import Add, Means, Paper

from ._scales import BERT, TUNED, plot_lines

SCALES = ("toy", "one_gpu", "paper")
RATES = {f"{percent}%": percent / 100 for percent in (5, 10, 15, 20, 30, 40, 50, 60)}
TOY = ("5%", "15%", "40%", "60%")
PAPER = Paper.without_figures(TUNED, RATES, "15%")


def sweep(add: Add) -> None:
    """Add a pretraining and two tasks for each rate."""
    s = BERT[add.scale]
    for row in TOY if add.scale == "toy" else RATES:
        s.tune(add, row, init=s.pretrain(add, f"BERT, {row} masked", **{"masking.rate": RATES[row]}))


def plot(means: Means) -> Lines:
    """Plot a line per task over the masked share."""
    points = [(column, 100 * rate, (row, column)) for column in TUNED for row, rate in RATES.items()]
    return plot_lines(means, "Score against the masked share", "% masked", points)
