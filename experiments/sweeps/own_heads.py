"""BERT with one head or several, at equal width and with equally many parameters.

Paper and expected score: Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, table 3 (A), compare heads in
translation: one is 0.9 BLEU worse than eight. There are no figures for BERT to compare with. A study in seconds shows
the mechanism: docs/concepts/attention_heads.md.
Scales: toy (minutes on two cores), one_gpu (BERT-small, 100,000 steps per row), paper (BERT-base).
Cost: toy, 420 seconds of processor time in 20 runs; the others are not measured yet.
Command: python -m experiments.sweep --sweep=own_heads --jobs=2 --workdir=runs/sweeps
"""

from bert_elmo_jax.sweeps.definition import Add, Paper

from ._scales import BERT, TUNED

SCALES = ("toy", "one_gpu", "paper")
ROWS = {"1 head": 1, "2 heads": 2, "4 heads": 4, "8 heads": 8}
NOTES = {
    "toy": "One head is last: its held-out perplexity of masked words is 3.44, with two, four and eight heads 3.05, "
    "3.06 and 2.98. It is last in both tasks, too, by two to four points, which is no more than two seeds of "
    "one row differ by."
}
PAPER = Paper.without_figures(TUNED, ROWS, "4 heads")


def sweep(add: Add) -> None:
    """Add a pretraining and two tasks for each number of heads."""
    s = BERT[add.scale]
    for row, heads in ROWS.items():
        s.tune(add, row, init=s.pretrain(add, f"BERT, {row}", **{"model.num_heads": heads}))
