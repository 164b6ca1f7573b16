"""Korean pieces: WordPiece, which continues words cut at white space, or SentencePiece's unigrams.

Both learn the same number of pieces from the same text.

Paper and expected score: none.
Scales: toy (minutes on two cores, the toy world in Korean, 800 pieces), one_gpu (BERT-small, 100,000 steps per row,
NSMC and KLUE's named entities), paper (BERT-base).
Cost: toy, 200 seconds of processor time in 10 runs; the others are not measured yet.
Command: python -m experiments.sweep --sweep=own_korean_tokenizer --jobs=2 --workdir=runs/sweeps
"""

from bert_elmo_jax.sweeps.definition import Add, Paper
from bert_elmo_jax.sweeps.points import File

from ._scales import BERT, KOREAN, toy_corpus

SCALES = ("toy", "one_gpu", "paper")
ROWS = {"WordPiece": "wordpiece", "SentencePiece": "sentencepiece"}
PAPER = Paper.without_figures(("NSMC", "KLUE NER"), ROWS, "WordPiece")


def sweep(add: Add) -> None:
    """Add two pretrainings and two tasks."""
    s = BERT[add.scale]._replace(tasks=KOREAN["toy" if add.scale == "toy" else "real"])
    for row, tokenizer in ROWS.items():
        data = toy_corpus(tokenizer, 800, "ko") if add.scale == "toy" else File(f"corpora/ko_{tokenizer}")
        s.tune(add, row, init=s.pretrain(add, f"BERT, {row}", data=data))
