"""ELMo, table 3: the biLM's layers at the input of a task's network, at its output, or at both.

Paper and expected score: Peters et al. 2018, https://arxiv.org/abs/1802.05365, section 5.2, table 3, dev: both places
are best for SQuAD and SNLI, whose networks attend after their first BiLSTM; for semantic roles the input alone is best.
There is no network for semantic roles here; named entities replace them.
Scales: toy (minutes on two cores, without SQuAD, whose network compiles for minutes), laptop (novels, SQuAD, SNLI,
UNER), one_gpu, paper. The biLM, and with λ = 0.001 the row "input", are shared with elmo_table2. Cost: toy, 340 seconds
of processor time in 13 runs; laptop, about 36 minutes of it in 14 runs after table 2; the others are not measured yet.
Command: python -m experiments.sweep --sweep=elmo_table3 --jobs=2 --workdir=runs/sweeps
"""

from bert_elmo_jax.sweeps.definition import Add, Paper

from ._scales import ELMO

SCALES = ("toy", "laptop", "one_gpu", "paper")
PAPER = Paper(
    source="Peters et al. 2018, table 3, dev",
    columns=("SQuAD", "SNLI", "SRL"),
    rows={"input": (85.1, 88.9, 84.7), "input and output": (85.6, 89.5, 84.3), "output": (84.8, 88.7, 80.9)},
    reference="input",
)
NOTES = {
    "toy": "Both places together are best for words with several senses (instead of SRL), in the paper for SNLI; with "
    "two seeds none of these differences is significant.",
    "laptop": "Both places are best for SQuAD, as in the paper. On SNLI they equal the output and beat the input; in "
    "the paper the input beats the output. Layers at the output are learned sooner, and no run has converged: on SNLI "
    "the output has 56.4 to 61.0 after three of six epochs, the input 53.7 to 56.5, and its best is 2.2 ahead; on "
    "SQuAD, one seed, 17.0 against 12.6 after the first of three epochs, and 1.2 ahead after the last.",
}
PLACES = {"input": "input", "input and output": "input,output", "output": "output"}


def sweep(add: Add) -> None:
    """Add one biLM, and each task with its layers at each place."""
    s = ELMO[add.scale]
    elmo = s.pretrain(add)
    for column in s.tasks:
        for row, places in PLACES.items():
            s.cell(add, row, column, encoder=elmo, places=places, mix_l2=0.001)
