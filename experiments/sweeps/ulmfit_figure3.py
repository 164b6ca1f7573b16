"""ULMFiT, figure 3: from scratch, pretrained, and pretrained and tuned on all of the task's texts, with few labels.

The last row reads the texts of all training examples without their labels ("semi-supervised" in the paper); the second
has no second stage.

Paper and expected score: Howard and Ruder 2018, https://arxiv.org/abs/1801.06146, figure 3, which has no figures: with
100 labels, the tuned model matches one from scratch with 10 to 20 times as many on IMDb and AG.
Scales: toy (minutes on two cores; 13, 38 and 128 labels), one_gpu, paper (from 50 labels or so to all).
Cost: toy, 187 seconds of processor time in 19 runs; the others are not measured yet.
Command: python -m experiments.sweep --sweep=ulmfit_figure3 --jobs=2 --workdir=runs/sweeps
"""

from functools import partial
from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper

from ._scales import SHARES, list_shares, plot_shares
from ._ulmfit import AG, IMDB, NO_LM, TREC, ULMFIT

SCALES = ("toy", "one_gpu", "paper")
COLUMNS = list_shares(IMDB, TREC, AG)
ROWS = ("from scratch", "pretrained", "pretrained and tuned")
PAPER = Paper.without_figures(COLUMNS, ROWS, ROWS[0], "Howard and Ruder 2018, figure 3")
NOTES = {
    "toy": "Pretraining is worth 12 points with 13 labels and 7 with 38; with 128 labels it is worth nothing. The "
    "texts are of a world that the general model knows, so tuning on them adds little."
}


def sweep(add: Add) -> None:
    """Add one general language model, and three rows of each task on growing shares of its labels."""
    s = ULMFIT[add.scale]
    lm = s.pretrain(add)
    for column, (name, share) in COLUMNS.items():
        if share not in SHARES[add.scale] or name not in (s.few or s.tasks):
            continue
        task = s.tasks[name].settings
        rows: dict[str, dict[str, Any]] = {
            "from scratch": {"preset": lm, "tokenizer": lm, **NO_LM},
            "pretrained": {"init": lm, **NO_LM},
            "pretrained and tuned": {"init": lm, "unlabelled": task.get("unlabelled", task["train"])},
        }
        for row, more in rows.items():
            s.cell(add, row, column, name, transfer="gradual", share=share, **more)


plot = partial(plot_shares, paper=PAPER, columns=COLUMNS)
