r"""GPT: without the auxiliary term, without pretraining, with an LSTM in the Transformer's place.

Paper and expected score: Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training", table 5,
GLUE's test data: 74.7 on average of eight tasks, 75.0 without the auxiliary term (it helps on the larger data sets
only), 59.9 without pretraining, 69.1 with the LSTM. Our LSTM is an AWD-LSTM with one layer (two at toy scale), with
ULMFiT's classifier and no auxiliary term; it reads single texts only, so tasks of pairs are left out.
Scales: toy (minutes on two cores), one_gpu (GPT-1's shape at half its width, 100,000 steps), paper (GPT-1).
Cost: toy, 170 seconds of processor time in 10 runs; the others are not measured yet.
Command: python -m experiments.sweep --sweep=gpt_table5 --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper

from ._scales import GPT
from ._ulmfit import FULL, NO_LM, ULMFIT

SCALES = ("toy", "one_gpu", "paper")
PAPER = Paper(
    source="Radford et al. 2018, table 5, GLUE test",
    columns=("SST-2", "CoLA"),
    rows={"GPT": (91.3, 45.4), "no auxiliary term": (92.0, 47.9), "no pretraining": (84.0, 18.9), "LSTM": (90.5, 30.3)},
    reference="GPT",
)
NOTES = {
    "toy": "128 short texts are a small data set; on such sets the auxiliary term did not help in the paper either. "
    "The LSTM's two seeds differ by ten points."
}
AUXILIARY = 0.5
LSTM: dict[str, dict[str, Any]] = {
    "toy": {"steps": 1_000, "batch_size": 64, "eval_every": 1_000, "checkpoint_every": 250, "eval_batches": 4},
    "one_gpu": {"model.embedding_size": 1024, "model.num_layers": 1, "steps": 100_000, "model.dtype": "bfloat16"},
    "paper": {"model.embedding_size": 2048, "model.num_layers": 1},
}


def sweep(add: Add) -> None:
    """Add both pretrainings, and each task with and without them, and without the auxiliary term."""
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
    recipe = "toy" if add.scale == "toy" else "original"
    lstm = add.pretrain("LSTM", f"awd_lstm:{recipe}", data=s.pretraining["data"], **LSTM[add.scale])
    for column, (_, task) in s.tasks.items():
        settings = {**ULMFIT[add.scale].tuning, **task.settings, **FULL, **NO_LM, "init": lstm}
        add.transfer("LSTM", column, "ulmfit", of=task.of, seeds=s.seeds, **settings)
