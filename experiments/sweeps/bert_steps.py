r"""BERT, appendix C.1: how good the model is for a task after more and more steps of pretraining.

Each row is one pretraining, fine-tuned from its checkpoints, as in the paper: whoever stops early has exactly this
model. (Shorter runs would each end with a low rate of their own, answer another question, and cost three times as
much.)

Paper and expected score: Devlin et al. 2018, https://arxiv.org/abs/1810.04805, appendix C.1, figure 5, BERT-base, MNLI
dev after 200 k to 1 M steps (a picture, so there are no figures to print beside ours): masked words still gain a point
from 500 k to 1 M steps, and lie above left-to-right almost from the beginning.
Scales: toy (minutes of two cores: three checkpoints), one_gpu (BERT-small, 100,000 steps), paper (a million, of which
50 checkpoints are kept, 65 GB). What lies below --data: experiments/sweeps/_scales.py. The pretrainings are those of
bert_table5. Cost: toy, 220 seconds of processor time in 14 runs; the others are not measured yet.

Command:
  python -m experiments.sweep --sweep=experiments/sweeps/bert_steps.py --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.report.figures import Lines
from bert_elmo_jax.sweeps.definition import Add, Means, Paper
from bert_elmo_jax.sweeps.points import Step
from experiments.sweeps._scales import BERT, LEFT_TO_RIGHT

SCALES = ("toy", "one_gpu", "paper")
SHARES = {f"MNLI, {share:.0%} of the steps": share for share in (0.2, 1 / 3, 0.4, 0.6, 2 / 3, 0.8, 1.0)}
AT = {"toy": (1 / 3, 2 / 3, 1.0), "one_gpu": (0.2, 0.4, 0.6, 0.8, 1.0), "paper": (0.2, 0.4, 0.6, 0.8, 1.0)}
ROWS: dict[str, dict[str, Any]] = {"masked words": {}, "left to right": {"objective": "documents", **LEFT_TO_RIGHT}}
PAPER = Paper(
    source="Devlin et al. 2018, figure 5",
    columns=tuple(SHARES),
    rows={row: (None,) * len(SHARES) for row in ROWS},
    reference="masked words",
)
NOTES = {
    "toy": "Left to right stays ahead of masked words, otherwise than in the paper: topics are told by single words, "
    "it learns from every word where masked words learn from one in six, and both end within a point of 99. "
    "On words with several senses masked words are ahead in the end (bert_table5)."
}


def sweep(add: Add) -> None:
    """Two pretrainings, each fine-tuned from several of its checkpoints."""
    s = BERT[add.scale]
    for row, how in ROWS.items():
        bert = add.pretrain(f"BERT, {row}", s.config, **{**s.pretraining, **how})
        for column, share in SHARES.items():
            if share in AT[add.scale]:
                step = round(share * bert.resolved.steps)
                begin: dict[str, Any] = {"init": bert if share == 1 else Step(bert, step), "seeds": s.seeds}
                add.transfer(row, column, "finetune", of=s.pairs.of, **begin, **s.pairs.settings, **s.tuning)


def plot(means: Means) -> Lines:
    """A line for each objective over the share of its steps."""
    lines = {
        row: [(100 * share, means[row, column]) for column, share in SHARES.items() if (row, column) in means]
        for row in ROWS
        if any((row, column) in means for column in SHARES)
    }
    return Lines("MNLI against the steps of pretraining", "% of the steps", "score", lines)
