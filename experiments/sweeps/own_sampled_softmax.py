r"""ELMo's softmax in training: over all words, or over a sample of them; held-out text is scored by all in any case.

Paper and expected score: none, so there are no figures to print beside ours; the original ELMo has 8,192 of 793,471.
More words in the sample come nearer to the full softmax; what is lost in perplexity need not be lost in the tasks.
Scales: toy (minutes of two cores: 8 and 64 of some 350 words), one_gpu (ELMo-medium, 300,000 steps a row), paper. The
full softmax's biLM at toy scale is that of elmo_table2, elsewhere that with 8,192. What lies below --data:
experiments/sweeps/_scales.py. Cost: toy, 330 seconds of processor time in 15 runs; the others are not measured yet.

Command:
  python -m experiments.sweep --sweep=experiments/sweeps/own_sampled_softmax.py --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper
from experiments.sweeps._scales import ELMO

SCALES = ("toy", "one_gpu", "paper")
PERPLEXITY = "perplexity (lower is better)"
COLUMNS = (PERPLEXITY, "SNLI", "SRL")
ROWS = ("all words", "a large sample", "a small sample")
NEGATIVES = {"toy": (0, 64, 8), "one_gpu": (0, 8_192, 512), "paper": (0, 8_192, 512)}
PAPER = Paper("none", COLUMNS, {row: (None,) * len(COLUMNS) for row in ROWS}, "all words")


def sweep(add: Add) -> None:
    """Three biLMs and two tasks."""
    s = ELMO[add.scale]
    for row, negatives in zip(ROWS, NEGATIVES[add.scale]):
        settings: dict[str, Any] = {**s.pretraining, "negatives": negatives}
        elmo = add.pretrain(f"ELMo, {row}", s.config, **settings)
        said = "of held-out text by the full softmax"
        add.figure(row, PERPLEXITY, elmo, of=said, score="held_out/perplexity")
        for column in COLUMNS[1:]:
            network, task, how = s.tasks[column]
            same: dict[str, Any] = {"of": task.of, "seeds": s.seeds, **task.settings, **how}
            add.transfer(row, column, network, **same, encoder=elmo)
