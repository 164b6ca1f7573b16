"""ELMo, table 2: all layers of the biLM or only the last, and the regularisation of the learned weights.

λ·‖w‖² keeps the weights of a task's mixture near their mean: λ = 1 is nearly an average, λ = 0.001 leaves them free.

Paper and expected score: Peters et al. 2018, https://arxiv.org/abs/1802.05365, section 5.1, table 2, dev: every row is
better than the one before, in every task. There is no network for semantic roles here; named entities replace them.
Scales: toy (minutes on two cores, without SQuAD, whose network compiles for minutes), laptop (novels, SQuAD, SNLI,
UNER), one_gpu, paper. Cost: toy, 420 seconds of processor time in 17 runs; laptop, about 112 minutes of it in 29 runs;
the others are not measured yet.
Command: python -m experiments.sweep --sweep=elmo_table2 --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper

from ._scales import ELMO

SCALES = ("toy", "laptop", "one_gpu", "paper")
PAPER = Paper(
    source="Peters et al. 2018, table 2, dev",
    columns=("SQuAD", "SNLI", "SRL"),
    rows={
        "baseline": (80.8, 88.1, 81.6),
        "last layer only": (84.7, 89.1, 84.1),
        "all layers, λ=1": (85.0, 89.3, 84.6),
        "all layers, λ=0.001": (85.2, 89.5, 84.8),
    },
    reference="baseline",
)
NOTES = {
    "toy": "The last layer alone is ahead of all layers. At λ = 1 the weights stay within two percent of a third "
    "each, and even at 0.001 the last layer has only 38 to 53 percent after 200 steps (layer_shares in result.json). "
    "In this world it separates senses best, and a mixture dilutes it. The paper's difference is half a point.",
    "laptop": "SQuAD's rows with a biLM are one reader each and within 1.4 points: one seed cannot order them. On "
    "SNLI the last layer alone gains nothing: with λ = 0.001 the mixtures prefer layer 0 (36 to 38 percent in five of "
    "six), which reads characters and so distinguishes words without a vector, and use the last layer least. λ = 1 "
    "and 0.001 differ by less than a fifth of a point on SNLI and on entities, their seeds by more; for entities the "
    "lower BiLSTM has the largest free weight (35 percent).",
}
LAYERS: dict[str, dict[str, Any]] = {
    "last layer only": {"layers": "-1", "mix_l2": 0.0},
    "all layers, λ=1": {"mix_l2": 1.0},
    "all layers, λ=0.001": {"mix_l2": 0.001},
}


def sweep(add: Add) -> None:
    """Add one biLM, and each task with and without it."""
    s = ELMO[add.scale]
    elmo = s.pretrain(add)
    for column in s.tasks:
        s.cell(add, "baseline", column)
        for row, layers in LAYERS.items():
            s.cell(add, row, column, encoder=elmo, **layers)
