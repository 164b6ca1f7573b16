"""The second objective: does B follow A (NSP), are A and B in order (SOP), or none.

Paper and expected score: Lan et al. 2019, https://arxiv.org/abs/1909.11942, table 5: SOP helps tasks on several
sentences, NSP little; their model differs, so there are no figures to compare with.
Scales: toy (minutes on two cores, without a task on two texts, which so small a model cannot learn), one_gpu
(BERT-small, 100,000 steps per row), paper (BERT-base). NSP and none are shared with bert_table5.
Cost: toy, 260 seconds of processor time in 15 runs; the others are not measured yet.
Command: python -m experiments.sweep --sweep=own_sop --jobs=2 --workdir=runs/sweeps
"""

from bert_elmo_jax.sweeps.definition import Add, Paper

from ._scales import BERT

SCALES = ("toy", "one_gpu", "paper")
ROWS = {"NSP": "nsp", "SOP": "sop", "none": "documents"}
PAPER = Paper.without_figures(("MNLI", "QNLI", "SQuAD"), ROWS, "NSP")
NOTES = {"toy": "SOP should help tasks on two texts, and there is none here."}


def sweep(add: Add) -> None:
    """Add three pretrainings and three tasks."""
    s = BERT[add.scale]
    for row, objective in ROWS.items():
        s.tune(add, row, init=s.pretrain(add, f"BERT, {row}", objective=objective))
