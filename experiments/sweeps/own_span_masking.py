"""Masked together: single pieces, whole words, or spans of words.

Paper and expected score: none for BERT's own recipe. Google's release notes report gains of one or two points for whole
words (BERT-large); Joshi et al. 2019, https://arxiv.org/abs/1907.10529, report gains for spans, most of all on SQuAD.
Scales: toy (minutes on two cores, a vocabulary of 150, about two pieces per word), one_gpu (BERT-small, 100,000 steps
per row), paper (BERT-base). Cost: toy, 300 seconds of processor time in 15 runs; the others are not measured yet.
Command: python -m experiments.sweep --sweep=own_span_masking --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper

from ._scales import BERT, toy_corpus

SCALES = ("toy", "one_gpu", "paper")
ROWS = {"pieces": "token", "whole words": "word", "spans": "span"}
PAPER = Paper.without_figures(("MNLI", "SQuAD"), ROWS, "pieces")
NOTES = {
    "toy": "Whole words and spans are behind: a word's other piece reveals it (held-out perplexity 1.6 for pieces, "
    "4.1 for whole words, 10.6 for spans), so they have more to learn in the same number of steps."
}


def sweep(add: Add) -> None:
    """Add three pretrainings and two tasks."""
    s = BERT[add.scale]
    if add.scale == "toy":  # longer rows, for a vocabulary of more pieces per word
        data: dict[str, Any] = {"data": toy_corpus("wordpiece", 150), "length": 40, "batch_size": 40}
        s = s._replace(pretraining={**s.pretraining, **data})
    for row, kind in ROWS.items():
        s.tune(add, row, init=s.pretrain(add, f"BERT, {row} masked", **{"masking.kind": kind}))
