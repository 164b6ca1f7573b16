r"""The Transformer, table 3: heads, the size of keys, the size of the model, dropout, smoothing, positions.

The names of the rows: h heads, d_k the size of a head's keys, N layers, d_model and d_ff the sizes of the model and of
its feed-forward layers, P_drop dropout, ε_ls label smoothing. All other fields are as in "base".

Paper and expected score: Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, table 3, newstest2013, perplexity per
piece and BLEU, without averaging of checkpoints: bigger models are better, one head is worse than eight, smaller keys
are worse, and learned positions are as good as sinusoids.
Scales: toy (minutes on two cores; English to Korean in the toy world), one_gpu (half the paper's width, 20,000 steps
per row), paper (100,000 steps; `big` 300,000). Cost: toy, 865 seconds of processor time in 16 runs; others unmeasured.
Command: python -m experiments.sweep --sweep=transformer_table3 --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper

from ._scales import TRANSLATION

SCALES = ("toy", "one_gpu", "paper")
PERPLEXITY = "perplexity (lower is better)"
PAPER = Paper(
    source="Vaswani et al. 2017, table 3, English to German, newstest2013",
    columns=(PERPLEXITY, "BLEU"),
    rows={
        "base": (4.92, 25.8),
        "h=1": (5.29, 24.9),
        "h=4": (5.00, 25.5),
        "h=16": (4.91, 25.8),
        "h=32": (5.01, 25.4),
        "d_k=16": (5.16, 25.1),
        "d_k=32": (5.01, 25.4),
        "N=2": (6.11, 23.7),
        "N=4": (5.19, 25.3),
        "N=8": (4.88, 25.5),
        "d_model=256": (5.75, 24.5),
        "d_model=1024": (4.66, 26.0),
        "d_ff=1024": (5.12, 25.4),
        "d_ff=4096": (4.75, 26.2),
        "P_drop=0.0": (5.77, 24.6),
        "P_drop=0.2": (4.95, 25.5),
        "ε_ls=0.0": (4.67, 25.3),
        "ε_ls=0.2": (5.47, 25.7),
        "learned positions": (4.92, 25.7),
        "big": (4.33, 26.4),
    },
    reference="base",
)
NOTES = {scale: s.notes for scale, s in TRANSLATION.items() if s.notes}
SIZES = {"h": "num_heads", "d_k": "key_size", "N": "num_layers", "d_model": "hidden_size", "d_ff": "feed_forward_size"}


def fields_of(row: str, scale: str) -> dict[str, Any]:
    """Return the fields that a row changes; sizes are the paper's, shrunk to the scale."""
    s = TRANSLATION[scale]
    name, _, value = row.partition("=")
    if row == "big":
        return dict(s.big)
    if row == "learned positions":
        return {"model.positions": "learned"}
    if name == "P_drop":
        return {"model.dropout": float(value)}
    if name == "ε_ls":
        return {"smoothing": float(value)}
    return {f"model.{SIZES[name]}": s.shrink(name, int(value))} if name in SIZES else {}


def sweep(add: Add) -> None:
    """Add the runs of each row, their perplexity and their BLEU."""
    s = TRANSLATION[add.scale]
    for row in s.rows or PAPER.rows:
        how = {**s.fields, **fields_of(row, add.scale)}
        runs = [add.pretrain(f"Transformer {row}, seed {seed}", s.config, **how, seed=seed) for seed in s.seeds]
        add.figure(row, PERPLEXITY, runs, of="per piece of held-out texts", score="held_out/perplexity")
        add.figure(row, "BLEU", runs, of="of held-out translations", score="held_out/bleu")
