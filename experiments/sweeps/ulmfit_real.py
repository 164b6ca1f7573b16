"""ULMFiT on real text with few labels: TREC-6, SST-2 and NSMC, the last in Korean subwords.

Four rows add one part after the other: a classifier from random weights; one on a general language model; one on that
model after it has read the task's texts, of all examples and without labels; and one trained with all of the paper's
tricks: discriminative rates, the slanted triangle and gradual unfreezing. The first three train all layers at once with
one constant rate, 0.002 at the laptop scale; the last has the paper's peak of 0.01, which only the classifier gets. The
language model is tuned with its own tricks, once for all seeds and numbers of labels. Gradual unfreezing costs epochs,
so two more rows train the last two for four times as long.

Paper and expected score: no paper has these tasks with these numbers of labels; Howard and Ruder 2018, figure 3 and
tables 4 to 7, has such comparisons for IMDb, TREC-6 and AG (ulmfit_figure3, ulmfit_table4 to 7).
Scales: toy (minutes on two cores, two toy worlds), laptop (novels and a small Korean text, then TREC-6, SST-2 and NSMC
with 100,000 of its unlabelled reviews). Scores are those after the last step, so none is chosen by them.
Cost: laptop, 134 minutes of processor time for the first four rows, 40 of them for two language models; the last two
rows 48 minutes for each seed; toy, 450 seconds in 28 runs.
Command: python -m experiments.sweep --sweep=ulmfit_real --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper
from bert_elmo_jax.sweeps.points import Adapted, Point

from ._ulmfit import FULL, NO_LM, REAL, REAL_COLUMNS

SCALES = ("toy", "laptop")
LONGER = ("+ LM tuning, 4 × the epochs", "+ all the tricks, 4 × the epochs")
ROWS = ("scratch", "pretrained", "+ LM tuning", "+ all the tricks", *LONGER)
PAPER = Paper.without_figures(REAL_COLUMNS, ROWS, "pretrained")


def sweep(add: Add) -> None:
    """Add the general language models, one tuned model for each text, and four rows of classifiers."""
    s = REAL[add.scale]
    general: dict[str, Point] = {}
    for name, text in s.texts.items():
        if text.language not in general:
            general[text.language] = add.pretrain(f"{text.language} language model", text.config, **text.pretraining)
        lm = general[text.language]
        short = {"transfer": "frozen", "epochs": 1.0, "eval_every": 100_000}  # its classifier is not used
        tuning = {**text.task, **s.lm, **text.tuning, **short}
        (tuned,) = add.runs(f"{name}, language model", "ulmfit", seeds=(0,), init=lm, **tuning)
        full = {**FULL, "optimizer.learning_rate": s.one_rate}
        rows: dict[str, dict[str, Any]] = {
            "scratch": {"preset": lm, "tokenizer": lm, **full},
            "pretrained": {"init": lm, **full},
            "+ LM tuning": {"init": Adapted(tuned), **full},
            "+ all the tricks": {"init": Adapted(tuned)},
        }
        rows |= {row: rows[row.partition(",")[0]] for row in LONGER}
        for row, how in rows.items():
            for column, (measured, fields) in text.columns.items():
                settings = {**text.task, **s.classifier, **fields, **NO_LM, **how}
                settings["epochs"] *= 4 if row in LONGER else 1
                add.transfer(row, column, "ulmfit", of=measured, seeds=s.seeds, **settings)
