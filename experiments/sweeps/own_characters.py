"""Sub-words or characters as BERT's input.

The same model reads the same text in the same number of rows. Characters need rows several times as long, and so
several times the arithmetic.

Paper and expected score: none. Characters must learn much that a vocabulary of pieces provides, and should be behind at
equal steps.
Scales: toy (minutes on two cores, about four characters per word), one_gpu (BERT-small, 100,000 steps per row, rows of
128 pieces or 512 characters), paper (BERT-base).
Cost: toy, 310 seconds of processor time in 10 runs; the others are not measured yet.
Command: python -m experiments.sweep --sweep=own_characters --jobs=2 --workdir=runs/sweeps
"""

from bert_elmo_jax.sweeps.definition import Add, Paper
from bert_elmo_jax.sweeps.points import File

from ._scales import BERT, TUNED, Settings, toy_corpus

SCALES = ("toy", "one_gpu", "paper")
ROWS = ("sub-words", "characters")
PAPER = Paper.without_figures(TUNED, ROWS, "sub-words")


def read_corpus(row: str, scale: str) -> Settings:
    """Return the corpus of a row and the length of its examples."""
    if scale == "toy":  # a vocabulary of 81 has room for the characters only
        sizes = {"sub-words": (500, 24), "characters": (81, 64)}
        return {"data": toy_corpus("wordpiece", sizes[row][0]), "length": sizes[row][1]}
    if row == "sub-words":
        return {}
    return {"data": File("corpora/wiki_characters"), "length": 512, "long_share": 0.0}


def sweep(add: Add) -> None:
    """Add two pretrainings and two tasks."""
    s = BERT[add.scale]
    for row in ROWS:
        longest = {"max_length": 512} if row == "characters" and add.scale != "toy" else {}
        s.tune(add, row, init=s.pretrain(add, f"BERT of {row}", **read_corpus(row, add.scale)), **longest)
