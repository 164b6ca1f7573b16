r"""ELMo, figure 1: what the biLM is worth with little training data.

Paper and expected score: Peters et al. 2018, https://arxiv.org/abs/1802.05365, section 5.4, figure 1, dev (a picture,
so there are no figures to print beside ours): with ELMo every point lies higher, most of all the leftmost; with 1
percent of the training data the network for semantic roles has with ELMo what it has without on 10 percent. There is
no network for semantic roles here: named entities stand for them. Scales: toy (minutes of two cores), one_gpu, paper.
Files below --data: see experiments/sweeps/_scales.py. Smaller shares are parts of larger ones (`config.share`).
Cost: toy, 430 seconds of processor time in 25 runs; the others are not measured yet.

Command:
  python -m experiments.sweep --sweep=experiments/sweeps/elmo_figure1.py --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.report.figures import Lines
from bert_elmo_jax.sweeps.definition import Add, Means, Paper
from experiments.sweeps._scales import ELMO

SCALES = ("toy", "one_gpu", "paper")
TASKS = ("SNLI", "SRL")
SHARES = {"toy": (0.1, 0.3, 1.0), "one_gpu": (0.001, 0.01, 0.1, 1.0), "paper": (0.001, 0.01, 0.1, 1.0)}
COLUMNS = {
    f"{task}, {100 * share:g}%": (task, share)
    for task in TASKS
    for share in sorted({share for some in SHARES.values() for share in some})
}
PAPER = Paper(
    source="Peters et al. 2018, figure 1",
    columns=tuple(COLUMNS),
    rows={row: (None,) * len(COLUMNS) for row in ("without ELMo", "with ELMo")},
    reference="without ELMo",
)


def sweep(add: Add) -> None:
    """One biLM, and two tasks with and without it on more and more of their training data."""
    s = ELMO[add.scale]
    elmo = add.pretrain("ELMo", s.config, **s.pretraining)
    for column, (task, share) in COLUMNS.items():
        if share in SHARES[add.scale]:
            network, files, how = s.tasks[task]
            same: dict[str, Any] = {"of": files.of, "seeds": s.seeds, **files.settings, **how, "share": share}
            add.transfer("without ELMo", column, network, **same)
            add.transfer("with ELMo", column, network, **same, encoder=elmo)


def plot(means: Means) -> Lines:
    """A line for each task with and without ELMo, over the share of the training data."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in PAPER.rows:
        for column, (task, share) in COLUMNS.items():
            if (row, column) in means:
                lines.setdefault(f"{task}, {row}", []).append((100 * share, means[row, column]))
    return Lines("Score against the share of the training data", "% of it", "score", lines, logarithmic=True)
