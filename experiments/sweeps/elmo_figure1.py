"""ELMo, figure 1: the value of the biLM with little training data.

Paper and expected score: Peters et al. 2018, https://arxiv.org/abs/1802.05365, section 5.4, figure 1, dev (a picture
without figures to compare with): ELMo raises every point, the leftmost ones most. For semantic roles, 1 percent of the
training data with ELMo equals 10 percent without. There is no network for semantic roles here; named entities replace
them.
Scales: toy (minutes on two cores), one_gpu, paper. Smaller shares are parts of larger ones (`config.share`).
Cost: toy, 430 seconds of processor time in 25 runs; the others are not measured yet.
Command: python -m experiments.sweep --sweep=elmo_figure1 --jobs=2 --workdir=runs/sweeps
"""

from functools import partial

from bert_elmo_jax.sweeps.definition import Add, Paper

from ._scales import ELMO, SHARES, list_shares, plot_shares

SCALES = ("toy", "one_gpu", "paper")
COLUMNS = list_shares("SNLI", "SRL")
ROWS = ("without ELMo", "with ELMo")
PAPER = Paper.without_figures(COLUMNS, ROWS, "without ELMo", "Peters et al. 2018, figure 1")


def sweep(add: Add) -> None:
    """Add one biLM, and two tasks with and without it on growing shares of their training data."""
    s = ELMO[add.scale]
    elmo = s.pretrain(add)
    for column, (task, share) in COLUMNS.items():
        if share in SHARES[add.scale]:
            s.cell(add, "without ELMo", column, task, share=share)
            s.cell(add, "with ELMo", column, task, share=share, encoder=elmo)


plot = partial(plot_shares, paper=PAPER, columns=COLUMNS)
