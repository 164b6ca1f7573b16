r"""BERT: what pretraining is worth with little training data.

Rows differ in the weights to begin with alone: those of the pretraining, or such as are drawn, of a model of the same
size and pieces.

Paper and expected score: none in a paper of BERT's own, so there are no figures to print beside ours; Peters et al.
2018, figure 1, is the same for ELMo (elmo_figure1).
Scales: toy (minutes of two cores), one_gpu (BERT-small), paper (BERT-base). Smaller shares are parts of larger ones
(`config.share`). The pretraining is that of bert_table8's first row. What lies below --data:
experiments/sweeps/_scales.py. Cost: toy, 180 seconds of processor time in 25 runs; the others are not measured yet.

Command:
  python -m experiments.sweep --sweep=experiments/sweeps/bert_sample_efficiency.py --jobs=2 \
      --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.report.figures import Lines
from bert_elmo_jax.sweeps.definition import Add, Means, Paper
from experiments.sweeps._scales import BERT

SCALES = ("toy", "one_gpu", "paper")
TASKS = ("MNLI", "NER")
SHARES = {"toy": (0.1, 0.3, 1.0), "one_gpu": (0.001, 0.01, 0.1, 1.0), "paper": (0.001, 0.01, 0.1, 1.0)}
COLUMNS = {
    f"{task}, {100 * share:g}%": (task, share)
    for task in TASKS
    for share in sorted({share for some in SHARES.values() for share in some})
}
PAPER = Paper(
    source="none",
    columns=tuple(COLUMNS),
    rows={row: (None,) * len(COLUMNS) for row in ("from nothing", "pretrained")},
    reference="from nothing",
)


def sweep(add: Add) -> None:
    """One pretraining, and two tasks with and without it on more and more of their training data."""
    s = BERT[add.scale]
    bert = add.pretrain("BERT", s.config, **s.pretraining)
    begin: dict[str, dict[str, Any]] = {
        "from nothing": {"tokenizer": bert, "preset": bert},
        "pretrained": {"init": bert},
    }
    tasks = {"MNLI": ("finetune", s.pairs), "NER": ("finetune:entities", s.entities)}
    for column, (name, share) in COLUMNS.items():
        if share in SHARES[add.scale]:
            config, task = tasks[name]
            how: dict[str, Any] = {**task.settings, **s.tuning, "share": share}
            for row in PAPER.rows:
                add.transfer(row, column, config, of=task.of, seeds=s.seeds, **begin[row], **how)


def plot(means: Means) -> Lines:
    """A line for each task with and without pretraining, over the share of the training data."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in PAPER.rows:
        for column, (task, share) in COLUMNS.items():
            if (row, column) in means:
                lines.setdefault(f"{task}, {row}", []).append((100 * share, means[row, column]))
    return Lines("Score against the share of the training data", "% of it", "score", lines, logarithmic=True)
