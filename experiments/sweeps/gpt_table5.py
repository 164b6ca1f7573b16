r"""GPT: without the auxiliary term, without pretraining, with an LSTM in the Transformer's place.

Paper and expected score: Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training", table 5,
GLUE's test data: 74.7 on average of eight tasks, 75.0 without the auxiliary term (it helps on the larger data sets
only), 59.9 without pretraining, 69.1 with the LSTM.
Scales: toy (minutes on two cores), one_gpu (GPT-1's shape at half its width, 100,000 steps), paper (GPT-1).
Cost: not measured yet.
Command: python -m experiments.sweep --sweep=experiments/sweeps/gpt_table5.py --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper
from experiments.sweeps._scales import GPT

SCALES = ("toy", "one_gpu", "paper")
PAPER = Paper(
    source="Radford et al. 2018, table 5, GLUE test",
    columns=("SST-2", "QNLI", "MNLI"),
    rows={"GPT": (91.3, 88.1, 81.8), "no auxiliary term": (92.0, 86.9, 81.1), "no pretraining": (84.0, 71.2, 75.7)},
    reference="GPT",
)
AUXILIARY = 0.5


def sweep(add: Add) -> None:
    """Add a pretraining, and each task with and without it, and without the auxiliary term."""
    s = GPT[add.scale]
    gpt = add.pretrain("GPT", s.config, **s.pretraining)
    rows: dict[str, dict[str, Any]] = {
        "GPT": {"init": gpt, "lm_weight": AUXILIARY},
        "no auxiliary term": {"init": gpt},
        "no pretraining": {"tokenizer": gpt, "preset": gpt, "lm_weight": AUXILIARY},
    }
    for column, (config, task) in s.tasks.items():
        for row, how in rows.items():
            add.transfer(row, column, config, of=task.of, seeds=s.seeds, **{**task.settings, **s.tuning, **how})
