"""Sub-words, joined bytes or characters as BERT's input.

The same model reads the same text in the same number of rows. Characters need rows several times as long, and so
several times the arithmetic. Joined bytes (byte-level BPE) know every character of every language.

Paper and expected score: none. Characters must learn much that a vocabulary of pieces provides, and should be behind at
equal steps.
Scales: toy (minutes on two cores, about four characters per word), one_gpu (BERT-small, 100,000 steps per row, rows of
128 pieces or 512 characters), paper (BERT-base).
Cost: toy, 560 seconds of processor time in 15 runs; the others are not measured yet.
Command: python -m experiments.sweep --sweep=own_characters --jobs=2 --workdir=runs/sweeps
"""

from bert_elmo_jax.sweeps.definition import Add, Paper
from bert_elmo_jax.sweeps.points import File

from ._scales import BERT, TUNED, Settings, toy_corpus

SCALES = ("toy", "one_gpu", "paper")
ROWS = ("sub-words", "joined bytes", "characters")
PAPER = Paper.without_figures(TUNED, ROWS, "sub-words")


def read_corpus(row: str, scale: str) -> Settings:
    """Return the corpus of a row and the length of its examples."""
    if scale == "toy":
        # Sub-words and bytes are joined about as often, and a vocabulary of 81 has room for the characters only.
        corpora = {
            "sub-words": (toy_corpus("wordpiece", 500), 24),
            "joined bytes": (toy_corpus("byte_bpe", 680), 24),
            "characters": (toy_corpus("wordpiece", 81), 64),
        }
        data, length = corpora[row]
        return {"data": data, "length": length}
    if row == "sub-words":
        return {}
    if row == "joined bytes":
        return {"data": File("corpora/wiki_bytes")}
    return {"data": File("corpora/wiki_characters"), "length": 512, "long_share": 0.0}


def sweep(add: Add) -> None:
    """Add a pretraining and two tasks for each kind of piece."""
    s = BERT[add.scale]
    for row in ROWS:
        longest = {"max_length": 512} if row == "characters" and add.scale != "toy" else {}
        s.tune(add, row, init=s.pretrain(add, f"BERT of {row}", **read_corpus(row, add.scale)), **longest)
