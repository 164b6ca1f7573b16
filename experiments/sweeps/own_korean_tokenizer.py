r"""Korean in pieces: WordPiece, which goes on inside words cut at white space, against SentencePiece's unigrams.

Both learn as many pieces from the same text.

Paper and expected score: none, so there are no figures to print beside ours.
Scales: toy (minutes of two cores: the toy world in Korean, 800 pieces), one_gpu (BERT-small, 100,000 steps a row, NSMC
and KLUE's named entities), paper (BERT-base). What lies below --data: experiments/sweeps/_scales.py. Cost: toy, 200
seconds of processor time in 10 runs; the others are not measured yet.

Command:
  python -m experiments.sweep --sweep=experiments/sweeps/own_korean_tokenizer.py --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper
from bert_elmo_jax.sweeps.points import File
from experiments.sweeps._scales import BERT, KOREAN, toy_corpus

SCALES = ("toy", "one_gpu", "paper")
COLUMNS = ("NSMC", "KLUE NER")
ROWS = {"WordPiece": "wordpiece", "SentencePiece": "sentencepiece"}
PAPER = Paper("none", COLUMNS, {row: (None,) * len(COLUMNS) for row in ROWS}, "WordPiece")


def sweep(add: Add) -> None:
    """Two pretrainings and two tasks."""
    s = BERT[add.scale]
    tasks = KOREAN["toy" if add.scale == "toy" else "real"]
    for row, tokenizer in ROWS.items():
        data = toy_corpus(tokenizer, 800, "ko") if add.scale == "toy" else File(f"corpora/ko_{tokenizer}")
        bert = add.pretrain(f"BERT, {row}", s.config, **{**s.pretraining, "data": data})
        for column in COLUMNS:
            config, task = tasks[column]
            how: dict[str, Any] = {**task.settings, **s.tuning}
            add.transfer(row, column, config, of=task.of, init=bert, seeds=s.seeds, **how)
