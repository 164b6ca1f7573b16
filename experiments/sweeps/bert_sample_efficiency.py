"""BERT: the value of pretraining with little training data, and of reading the task's texts first.

Rows differ only in their first weights: random ones for a model of the same size and pieces; pretrained ones; and
pretrained ones after more pretraining on the texts of all training examples, without their labels, as single sentences.

Paper and expected score: no paper on BERT has these figures; Peters et al. 2018, figure 1, has the first two lines for
ELMo (elmo_figure1), Howard and Ruder 2018, figure 3, all three for ULMFiT (ulmfit_figure3).
Scales: toy (minutes on two cores), one_gpu (BERT-small), paper (BERT-base). Smaller shares are parts of larger ones
(`config.share`). The pretraining is shared with the first row of bert_table8.
Cost: toy, 270 seconds of processor time in 39 runs; the others are not measured yet.
Command: python -m experiments.sweep --sweep=bert_sample_efficiency --jobs=2 --workdir=runs/sweeps
"""

from functools import partial
from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper
from bert_elmo_jax.sweeps.points import File

from ._scales import BERT, SHARES, TOY_DATA, list_shares, plot_shares

SCALES = ("toy", "one_gpu", "paper")
COLUMNS = list_shares("MNLI", "NER")
ROWS = ("from nothing", "pretrained", "pretrained and tuned")
PAPER = Paper.without_figures(COLUMNS, ROWS, ROWS[0])
TEXTS = {"MNLI": File("corpora/mnli_texts"), "NER": File("corpora/conll_texts")}
TOY_TEXTS = {"MNLI": "topics", "NER": "senses"}
# Of the pretraining on the task's texts.
TUNING: dict[str, dict[str, Any]] = {
    "toy": {"steps": 200, "batch_size": 16, "eval_every": 200, "checkpoint_every": 200,
            "optimizer.learning_rate": 1e-3},
    "one_gpu": {"steps": 5_000, "optimizer.learning_rate": 5e-5, "optimizer.warmup": 0.1},
    "paper": {"steps": 10_000, "optimizer.learning_rate": 5e-5, "optimizer.warmup": 0.1},
}  # fmt: skip

NOTES = {
    "toy": "Pretraining is worth 55, 39 and 8 points of topics, and from 30% on many of words. Reading the task's 128 "
    "texts first is within chance of not reading them: the world is the one of the pretraining."
}


def sweep(add: Add) -> None:
    """Add one pretraining, one more for each task, and the tasks with each on growing shares of their training data."""
    s = BERT[add.scale]
    bert = s.pretrain(add, "BERT")
    tasks = {"MNLI": ("finetune", s.pairs), "NER": ("finetune:entities", s.entities)}
    rows: dict[str, dict[str, Any]] = {}
    for name in tasks:
        toy = add.scale == "toy"
        texts = TOY_DATA.texts(TOY_TEXTS[name], s.pretraining["data"]) if toy else TEXTS[name]
        settings = {"init": bert, "objective": "sentences", "data": texts, **TUNING[add.scale]}
        rows[name] = {
            "from nothing": {"tokenizer": bert, "preset": bert},
            "pretrained": {"init": bert},
            "pretrained and tuned": {"init": s.pretrain(add, f"BERT on the texts of {name}", **settings)},
        }
    for column, (name, share) in COLUMNS.items():
        if share in SHARES[add.scale]:
            config, task = tasks[name]
            for row, begin in rows[name].items():
                s.cell(add, row, column, config, task, **begin, **s.tuning, share=share)


plot = partial(plot_shares, paper=PAPER, columns=COLUMNS)
