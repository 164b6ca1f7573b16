r"""ELMo, table 3: where a task's network takes the biLM's layers in: at its input, at its output, or at both.

Paper and expected score: Peters et al. 2018, https://arxiv.org/abs/1802.05365, section 5.2, table 3, dev: both places
are best for SQuAD and SNLI, whose networks attend behind their first BiLSTM; for semantic roles the input alone is.
There is no network for semantic roles here: named entities stand for them.
Scales: toy (minutes of two cores, without SQuAD, whose network takes minutes to compile), laptop (novels, SQuAD, SNLI,
UNER), one_gpu, paper. What lies below --data: experiments/sweeps/_scales.py. The biLM is that of elmo_table2, and λ is
0.001: so the last row of that table is run once for both. Cost: toy, 340 seconds of processor time in 13 runs; laptop,
about 36 minutes of it in 14 runs behind table 2; the others are not measured yet.

Command:
  python -m experiments.sweep --sweep=experiments/sweeps/elmo_table3.py --jobs=2 --workdir=runs/sweeps
"""

from bert_elmo_jax.sweeps.definition import Add, Paper
from experiments.sweeps._scales import ELMO

SCALES = ("toy", "laptop", "one_gpu", "paper")
PAPER = Paper(
    source="Peters et al. 2018, table 3, dev",
    columns=("SQuAD", "SNLI", "SRL"),
    rows={"input": (85.1, 88.9, 84.7), "input and output": (85.6, 89.5, 84.3), "output": (84.8, 88.7, 80.9)},
    reference="input",
)
NOTES = {
    "toy": "Both places together are best for words with several senses (here in the place of SRL), in the paper for "
    "SNLI; with two seeds none of these differences can be told from chance.",
    "laptop": "Both places are best for SQuAD, as in the paper, and on SNLI level with the output, ahead of the "
    "input, which the paper has the other way round. At the output the layers are learned from sooner, and nothing has "
    "levelled off at the end: on SNLI the output has 56.4 to 61.0 after three of six epochs where the input has 53.7 "
    "to 56.5, and is 2.2 ahead at its best; on SQuAD, one seed, 17.0 against 12.6 after the first of three, 1.2 ahead "
    "after the last.",
}
PLACES = {"input": "input", "input and output": "input,output", "output": "output"}


def sweep(add: Add) -> None:
    """One biLM, and each task with its layers at each place."""
    s = ELMO[add.scale]
    elmo = add.pretrain("ELMo", s.config, **s.pretraining)
    for column, (network, task, how) in s.tasks.items():
        for row, places in PLACES.items():
            settings = {"encoder": elmo, "places": places, "mix_l2": 0.001, **task.settings, **how}
            add.transfer(row, column, network, of=task.of, seeds=s.seeds_of(column), **settings)
