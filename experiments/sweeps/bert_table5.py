r"""BERT, table 5: the value of the second objective, and of seeing both sides of a word.

"No NSP" reads as many sentences of a document as fit, without pairs. "LTR & No NSP" predicts every next word from the
words before it, also in fine-tuning (a text is classified by its last piece, the only one that sees all of it). "+
BiLSTM" adds a randomly initialised BiLSTM to that model; it represents a text by the mean of its pieces.

Paper and expected score: Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 5.1, table 5, BERT-base, dev:
left-to-right is worse everywhere, most of all on SQuAD, where the BiLSTM recovers a part.
Scales: toy (minutes on two cores, two tasks; words with several senses replace SQuAD), laptop (novels; SNLI replaces
MNLI, RTE replaces QNLI), one_gpu (BERT-small, 100,000 steps per row), paper. Cost: toy, 320 seconds of processor time
in 19 runs; the others are not measured yet.
Command: python -m experiments.sweep --sweep=bert_table5 --jobs=2 --workdir=runs/sweeps
With a limit of nine minutes on a GPU, again as long as the exit status is 75:
  timeout --preserve-status 540 python -m experiments.sweep --sweep=bert_table5 \
      --scale=one_gpu --data=data --devices=0 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper

from ._scales import BERT, LEFT_TO_RIGHT, RTE, SNLI, SQUAD, ScaleTask

SCALES = ("toy", "laptop", "one_gpu", "paper")
PAPER = Paper(
    source="Devlin et al. 2018, table 5, dev",
    columns=("MNLI", "QNLI", "MRPC", "SST-2", "SQuAD"),
    rows={
        "BERT": (84.4, 88.4, 86.7, 92.7, 88.5),
        "No NSP": (83.9, 84.9, 86.5, 92.6, 87.9),
        "LTR & No NSP": (82.1, 84.3, 77.5, 92.1, 77.8),
        "+ BiLSTM": (82.1, 84.1, 75.7, 91.6, 84.9),
    },
    reference="BERT",
)
NOTES = {
    "toy": "Single words reveal the topic: all rows are within a point of 99 and have no order. On words with several "
    "senses (instead of SQuAD) the order is the paper's, except for No NSP and + BiLSTM, a tenth of a point apart. "
    "Left to right predicts every word, not one in six, and leads at first, as in the paper's appendix C.1: after a "
    "third of the steps 99.8 against 91.0 on topics (bert_steps)."
}
# Pairs of sentences, because next sentences are to help these.
LAPTOP = BERT["laptop"]._replace(
    pairs=ScaleTask("SNLI, accuracy", SNLI),
    tasks={
        "QNLI": ("finetune", ScaleTask("RTE, accuracy", RTE)),
        "SQuAD": ("finetune:squad", ScaleTask("SQuAD 1.1, F1", SQUAD)),
    },
)
PRETRAINED: dict[str, dict[str, Any]] = {
    "BERT": {},
    "No NSP": {"objective": "documents"},
    "LTR & No NSP": {"objective": "documents", **LEFT_TO_RIGHT},
}


def sweep(add: Add) -> None:
    """Add three pretrainings and every task; one pretraining serves two rows."""
    s = LAPTOP if add.scale == "laptop" else BERT[add.scale]
    berts = {row: s.pretrain(add, row, **how) for row, how in PRETRAINED.items()}
    on_top: dict[str, Any] = {"features.layers": "-1", "features.lstm_layers": 1}
    if add.scale == "toy":  # in few steps, a new BiLSTM needs a higher rate than the layers below it
        on_top |= {"features.lstm_size": 32, "optimizer.learning_rate": 5e-3, "layer_decay": 0.2}
    if add.scale == "laptop":
        on_top["features.lstm_size"] = 64
    for row, bert in berts.items():
        s.tune(add, row, init=bert)
    s.tune(add, "+ BiLSTM", init=berts["LTR & No NSP"], **on_top)
