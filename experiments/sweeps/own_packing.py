r"""Packing: several examples in a row, each seeing itself alone, against one example and padding.

The same steps over rows of the same length, so the same arithmetic: packed rows hold more text.

Paper and expected score: none, so there are no figures to print beside ours; packing should lose nothing at equal
steps, and gains by what the padding would have cost.
Scales: toy (minutes of two cores: rows of 64 pieces), one_gpu (BERT-small, 100,000 steps a row), paper (BERT-base).
What lies below --data: experiments/sweeps/_scales.py. Cost: toy, 180 seconds of processor time in 10 runs; the others
are not measured yet.

Command:
  python -m experiments.sweep --sweep=experiments/sweeps/own_packing.py --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper
from experiments.sweeps._scales import BERT

SCALES = ("toy", "one_gpu", "paper")
MASKED = "masked words"
COLUMNS = (MASKED, "MNLI", "NER fine-tuned")
ROWS = {"one example a row": 1, "up to eight": 8}
PAPER = Paper("none", COLUMNS, {row: (None,) * len(COLUMNS) for row in ROWS}, "one example a row")


def sweep(add: Add) -> None:
    """Two pretrainings with many short examples, and two tasks."""
    s = BERT[add.scale]
    rows = {"length": 64, "batch_size": 24} if add.scale == "toy" else {}
    for row, sequences in ROWS.items():
        # Half of the documents aim at a random shorter length: as where short texts are what one has.
        settings: dict[str, Any] = {**s.pretraining, **rows, "short_share": 0.5, "sequences": sequences}
        bert = add.pretrain(f"BERT, {row}", s.config, **settings)
        add.figure(row, MASKED, bert, of="held-out accuracy, %", score="held_out/mlm_accuracy", percent=True)
        begin: dict[str, Any] = {"init": bert, "seeds": s.seeds, **s.tuning}
        add.transfer(row, "MNLI", "finetune", of=s.pairs.of, **begin, **s.pairs.settings)
        add.transfer(row, "NER fine-tuned", "finetune:entities", of=s.entities.of, **begin, **s.entities.settings)
