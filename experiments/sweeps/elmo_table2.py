r"""ELMo, table 2: all layers of the biLM or the last one alone, and how far the learned weights may go.

λ·‖w‖² holds the weights of a task's mixture near their mean: with λ = 1 nearly an average, with 0.001 they are free.

Paper and expected score: Peters et al. 2018, https://arxiv.org/abs/1802.05365, section 5.1, table 2, dev: every row
better than the one before, in every task. There is no network for semantic roles here: named entities stand for them.
Scales: toy (minutes of two cores, without SQuAD, whose network takes minutes to compile), laptop (novels, SQuAD,
SNLI, UNER), one_gpu, paper. Files below --data: see experiments/sweeps/_scales.py. Cost: toy, 420 seconds of
processor time in 17 runs; laptop, about 112 minutes of it in 29 runs; the others are not measured yet.

Command:
  python -m experiments.sweep --sweep=experiments/sweeps/elmo_table2.py --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper
from experiments.sweeps._scales import ELMO

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
    "toy": "The last layer alone is ahead of all of them. At λ = 1 the shares of the layers stay within two percent "
    "of a third each, and even at 0.001 the last has 38 to 53 percent after 200 steps (layer_shares in "
    "result.json); in this world it tells senses best, and a mixture has the others in it, too. The paper's "
    "difference is half a point.",
    "laptop": "SQuAD's rows with a biLM are a reader each, within 1.4 points: one seed cannot tell them apart. On SNLI "
    "the last layer alone gains nothing: left free (λ = 0.001) its mixtures have most of layer 0 (36 to 38 percent in "
    "five of six), which reads a word's characters and so tells words apart that have no vector, and least of the last "
    "one. λ = 1 and 0.001 differ by less than a fifth of a point on SNLI and on entities, and their seeds by more; of "
    "entities the lower BiLSTM has most, left free (35 percent).",
}
LAYERS: dict[str, dict[str, Any]] = {
    "last layer only": {"layers": "-1", "mix_l2": 0.0},
    "all layers, λ=1": {"mix_l2": 1.0},
    "all layers, λ=0.001": {"mix_l2": 0.001},
}


def sweep(add: Add) -> None:
    """One biLM, and each task with and without it."""
    s = ELMO[add.scale]
    elmo = add.pretrain("ELMo", s.config, **s.pretraining)
    for column, (network, task, how) in s.tasks.items():
        same: dict[str, Any] = {"of": task.of, "seeds": s.seeds_of(column), **task.settings, **how}
        add.transfer("baseline", column, network, **same)
        for row, layers in LAYERS.items():
            add.transfer(row, column, network, **same, encoder=elmo, **layers)
