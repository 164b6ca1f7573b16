"""BERT, appendix C.1: the quality of the model after more and more steps of pretraining.

Each row is one pretraining that is fine-tuned from its checkpoints, as in the paper: a run that is stopped early leaves
exactly this model. Shorter runs, whose rate falls to zero earlier, would answer another question at three times the
cost.

Paper and expected score: Devlin et al. 2018, https://arxiv.org/abs/1810.04805, appendix C.1, figure 5, BERT-base, MNLI
dev after 200 k to 1 M steps (a picture without figures to compare with): masked words still gain a point from 500 k to
1 M steps, and are ahead of left-to-right almost from the beginning.
Scales: toy (minutes on two cores, three checkpoints), one_gpu (BERT-small, 100,000 steps), paper (a million steps, 50
checkpoints of 65 GB). The pretrainings are shared with bert_table5.
Cost: toy, 220 seconds of processor time in 14 runs; the others are not measured yet.
Command: python -m experiments.sweep --sweep=bert_steps --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.report.figures import Lines
from bert_elmo_jax.sweeps.definition import Add, Means, Paper
from bert_elmo_jax.sweeps.points import Step

from ._scales import BERT, LEFT_TO_RIGHT, plot_lines

SCALES = ("toy", "one_gpu", "paper")
SHARES = {f"MNLI, {share:.0%} of the steps": share for share in (0.2, 1 / 3, 0.4, 0.6, 2 / 3, 0.8, 1.0)}
AT = {"toy": (1 / 3, 2 / 3, 1.0), "one_gpu": (0.2, 0.4, 0.6, 0.8, 1.0), "paper": (0.2, 0.4, 0.6, 0.8, 1.0)}
ROWS: dict[str, dict[str, Any]] = {"masked words": {}, "left to right": {"objective": "documents", **LEFT_TO_RIGHT}}
PAPER = Paper.without_figures(SHARES, ROWS, "masked words", "Devlin et al. 2018, figure 5")
NOTES = {
    "toy": "Unlike in the paper, left to right stays ahead of masked words: single words reveal the topic, it learns "
    "from every word, masked words from one in six, and both end within a point of 99. On words with several senses "
    "masked words are ahead in the end (bert_table5)."
}


def sweep(add: Add) -> None:
    """Add two pretrainings, each fine-tuned from several of its checkpoints."""
    s = BERT[add.scale]
    for row, how in ROWS.items():
        bert = s.pretrain(add, f"BERT, {row}", **how)
        for column, share in SHARES.items():
            if share in AT[add.scale]:
                init = bert if share == 1 else Step(bert, round(share * bert.resolved.steps))
                s.cell(add, row, column, "finetune", s.pairs, init=init, **s.tuning)


def plot(means: Means) -> Lines:
    """Plot a line per objective over the share of its steps."""
    points = [(row, 100 * share, (row, column)) for row in ROWS for column, share in SHARES.items()]
    return plot_lines(means, "MNLI against the steps of pretraining", "% of the steps", points)
