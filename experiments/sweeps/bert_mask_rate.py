r"""BERT: how much of a text is masked, from 5 to 60 percent of its pieces.

With more masked there is more to learn from a row, and less to learn it by.

Paper and expected score: Devlin et al. 2018, https://arxiv.org/abs/1810.04805, take 15 percent and show no other rate;
Wettig et al. 2022, https://arxiv.org/abs/2202.08005, find 40 percent better for large models. There are no figures
here to print beside ours.
Scales: toy (minutes of two cores, four rates), one_gpu (BERT-small, 100,000 steps a rate), paper (eight BERT-bases).
What lies below --data: experiments/sweeps/_scales.py. Cost: toy, 380 seconds of processor time in 20 runs; the others
are not measured yet.

Command:
  python -m experiments.sweep --sweep=experiments/sweeps/bert_mask_rate.py --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.report.figures import Lines
from bert_elmo_jax.sweeps.definition import Add, Means, Paper
from experiments.sweeps._scales import BERT

SCALES = ("toy", "one_gpu", "paper")
COLUMNS = ("MNLI", "NER fine-tuned")
RATES = {f"{percent}%": percent / 100 for percent in (5, 10, 15, 20, 30, 40, 50, 60)}
TOY = ("5%", "15%", "40%", "60%")
PAPER = Paper("none", COLUMNS, {rate: (None,) * len(COLUMNS) for rate in RATES}, "15%")


def sweep(add: Add) -> None:
    """A pretraining for each rate, and two tasks."""
    s = BERT[add.scale]
    for row in TOY if add.scale == "toy" else RATES:
        settings = {**s.pretraining, "masking.rate": RATES[row]}
        bert = add.pretrain(f"BERT, {row} masked", s.config, **settings)
        begin: dict[str, Any] = {"init": bert, "seeds": s.seeds, **s.tuning}
        add.transfer(row, "MNLI", "finetune", of=s.pairs.of, **begin, **s.pairs.settings)
        add.transfer(row, "NER fine-tuned", "finetune:entities", of=s.entities.of, **begin, **s.entities.settings)


def plot(means: Means) -> Lines:
    """A line for each task over the share that is masked."""
    lines = {
        column: [(100 * rate, means[row, column]) for row, rate in RATES.items() if (row, column) in means]
        for column in COLUMNS
        if any((row, column) in means for row in RATES)
    }
    return Lines("Score against what is masked", "% masked", "score", lines)
