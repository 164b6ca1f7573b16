r"""What BERT reads: sub-words, or characters.

The same model on the same text in the same number of rows; characters need rows several times as long, and so as much
more arithmetic.

Paper and expected score: none, so there are no figures to print beside ours. Characters have much to learn that a
vocabulary of pieces is given, and should be behind at equal steps.
Scales: toy (minutes of two cores: about four characters a word), one_gpu (BERT-small, 100,000 steps a row, rows of 128
pieces or 512 characters), paper (BERT-base). What lies below --data: experiments/sweeps/_scales.py. Cost: toy, 310
seconds of processor time in 10 runs; the others are not measured yet.

Command:
  python -m experiments.sweep --sweep=experiments/sweeps/own_characters.py --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper
from bert_elmo_jax.sweeps.points import File
from experiments.sweeps._scales import BERT, Settings, toy_corpus

SCALES = ("toy", "one_gpu", "paper")
COLUMNS = ("MNLI", "NER fine-tuned")
ROWS = ("sub-words", "characters")
PAPER = Paper("none", COLUMNS, {row: (None,) * len(COLUMNS) for row in ROWS}, "sub-words")


def read(row: str, scale: str) -> Settings:
    """The corpus of a row and the length of its rows."""
    if scale == "toy":  # all that 81 pieces leave room for are the characters
        sizes = {"sub-words": (500, 24), "characters": (81, 64)}
        return {"data": toy_corpus("wordpiece", sizes[row][0]), "length": sizes[row][1]}
    if row == "sub-words":
        return {}
    return {"data": File("corpora/wiki_characters"), "length": 512, "long_share": 0.0}


def sweep(add: Add) -> None:
    """Two pretrainings and two tasks."""
    s = BERT[add.scale]
    for row in ROWS:
        settings = {**s.pretraining, **read(row, add.scale)}
        bert = add.pretrain(f"BERT of {row}", s.config, **settings)
        longer = {"max_length": 512} if row == "characters" and add.scale != "toy" else {}
        begin: dict[str, Any] = {"init": bert, "seeds": s.seeds, **s.tuning, **longer}
        add.transfer(row, "MNLI", "finetune", of=s.pairs.of, **begin, **s.pairs.settings)
        add.transfer(row, "NER fine-tuned", "finetune:entities", of=s.entities.of, **begin, **s.entities.settings)
