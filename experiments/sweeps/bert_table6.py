"""BERT, table 6: the size of the model, as layers / hidden size / heads.

Paper and expected score: Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 5.2, table 6, dev, the mean of
five restarts: larger is better in every column, even for MRPC's 3,600 examples, and has a lower perplexity of masked
words.
Scales: toy (minutes on two cores, four rows with one to three layers of 32 to 96), one_gpu (half the paper's width and
heads, 100,000 steps per row), paper.
Cost: toy, 400 seconds of processor time in 12 runs; the others are not measured yet.
Command: python -m experiments.sweep --sweep=bert_table6 --jobs=2 --workdir=runs/sweeps
"""

from bert_elmo_jax.sweeps.definition import Add, Paper

from ._scales import BERT

SCALES = ("toy", "one_gpu", "paper")
PERPLEXITY = "perplexity (lower is better)"
PAPER = Paper(
    source="Devlin et al. 2018, table 6, dev",
    columns=(PERPLEXITY, "MNLI", "MRPC", "SST-2"),
    rows={
        "3/768/12": (5.84, 77.9, 79.8, 88.4),
        "6/768/3": (5.24, 80.6, 82.2, 90.7),
        "6/768/12": (4.68, 81.9, 84.8, 91.3),
        "12/768/12": (3.99, 84.4, 86.7, 92.9),
        "12/1024/16": (3.54, 85.7, 86.9, 93.3),
        "24/1024/16": (3.23, 86.6, 87.8, 93.7),
    },
    reference="12/768/12",
)
NOTES = {
    "toy": "The two middle rows (two layers each, of width 64 and 96 here) differ by 0.04 in perplexity and by 0.2 "
    "points. Each row is one pretraining, and all of them classify 99 percent of the topics correctly."
}
TOY = {"3/768/12": (1, 64, 4), "12/768/12": (2, 64, 4), "12/1024/16": (2, 96, 4), "24/1024/16": (3, 96, 4)}


def read_size(row: str, scale: str) -> tuple[int, int, int]:
    """Return layers, hidden size and heads of a row at a scale."""
    if scale == "toy":
        return TOY[row]
    layers, hidden, heads = map(int, row.split("/"))
    return (layers, hidden // 2, max(1, heads // 2)) if scale == "one_gpu" else (layers, hidden, heads)


def sweep(add: Add) -> None:
    """Add a pretraining for each size, its perplexity, and the tasks."""
    s = BERT[add.scale]
    for row in TOY if add.scale == "toy" else PAPER.rows:
        layers, hidden, heads = read_size(row, add.scale)
        size = {"model.num_layers": layers, "model.hidden_size": hidden, "model.num_heads": heads}
        bert = s.pretrain(add, f"BERT {row}", **size, **{"model.feed_forward_size": 4 * hidden})
        add.figure(row, PERPLEXITY, bert, of="of masked words that were held out", score="held_out/mlm_perplexity")
        s.tune(add, row, init=bert)
