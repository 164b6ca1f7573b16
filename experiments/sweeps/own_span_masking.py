r"""What is masked together: single pieces, whole words, or stretches of words.

Paper and expected score: none for BERT's own recipe, so there are no figures to print beside ours. Google's release
notes report gains of one or two points for whole words (BERT-large); Joshi et al. 2019, https://arxiv.org/abs/1907.10529,
gains for spans, most of all where spans are asked for (SQuAD).
Scales: toy (minutes of two cores: a vocabulary of 150, of which a word takes two pieces), one_gpu (BERT-small, 100,000
steps a row), paper (BERT-base). What lies below --data: experiments/sweeps/_scales.py. Cost: toy, 300 seconds of
processor time in 15 runs; the others are not measured yet.

Command:
  python -m experiments.sweep --sweep=experiments/sweeps/own_span_masking.py --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper
from experiments.sweeps._scales import BERT, TOY_PIECES, toy_corpus

SCALES = ("toy", "one_gpu", "paper")
COLUMNS = ("MNLI", "SQuAD")
ROWS = {"pieces": "token", "whole words": "word", "spans": "span"}
PAPER = Paper("none", COLUMNS, {row: (None,) * len(COLUMNS) for row in ROWS}, "pieces")
NOTES = {
    "toy": "Whole words and spans are behind here: a word's other piece gives it away (held-out perplexity 1.6 for "
    "pieces, 4.1 for whole words, 10.6 for spans), so these have more to learn, and the steps are the same."
}


def sweep(add: Add) -> None:
    """Three pretrainings and two tasks."""
    s = BERT[add.scale]
    data: dict[str, Any] = {"data": toy_corpus("wordpiece", 150), **TOY_PIECES} if add.scale == "toy" else {}
    for row, kind in ROWS.items():
        settings = {**s.pretraining, **data, "masking.kind": kind}
        bert = add.pretrain(f"BERT, {row} masked", s.config, **settings)
        for column in COLUMNS:
            config, task = s.tasks[column]
            how: dict[str, Any] = {**task.settings, **s.tuning}
            add.transfer(row, column, config, of=task.of, init=bert, seeds=s.seeds, **how)
