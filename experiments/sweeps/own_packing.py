"""Packing: several examples per row, each attending to itself, or one example and padding.

The steps and the row length are the same, so the arithmetic is, too; packed rows hold more text.

Paper and expected score: none. Packing should lose nothing at equal steps, and gains the cost of the padding.
Scales: toy (minutes on two cores, rows of 64 pieces), one_gpu (BERT-small, 100,000 steps per row), paper (BERT-base).
Cost: toy, 180 seconds of processor time in 10 runs; the others are not measured yet.
Command: python -m experiments.sweep --sweep=own_packing --jobs=2 --workdir=runs/sweeps
"""

from bert_elmo_jax.sweeps.definition import Add, Paper

from ._scales import BERT, TUNED

SCALES = ("toy", "one_gpu", "paper")
MASKED = "masked words"
ROWS = {"one example a row": 1, "up to eight": 8}
PAPER = Paper.without_figures((MASKED, *TUNED), ROWS, "one example a row")


def sweep(add: Add) -> None:
    """Add two pretrainings with many short examples, and two tasks."""
    s = BERT[add.scale]
    rows = {"length": 64, "batch_size": 24} if add.scale == "toy" else {}
    for row, sequences in ROWS.items():
        # Half of the documents are cut to a random shorter length, as in collections of short texts.
        bert = s.pretrain(add, f"BERT, {row}", **rows, short_share=0.5, sequences=sequences)
        add.figure(row, MASKED, bert, of="held-out accuracy, %", score="held_out/mlm_accuracy", percent=True)
        s.tune(add, row, init=bert)
