r"""Fine-tuning in `make quickstart`: a small BERT of the toy world, or none, on a task in English and Korean.

No dropout, as in its pretraining, a rate for small models, and one evaluation at the end: nothing is chosen by it.
Expected score: in the quickstart's report. Cost: a few seconds of two cores.

Command:
  python -m experiments.finetune --config=experiments/configs/finetune_quickstart.py --init=runs/quickstart/bert \
      --task=classification --text=text --label=label --train=runs/quickstart/tasks/topics/train.tsv \
      --dev=runs/quickstart/tasks/topics/dev.tsv --workdir=runs/topics
"""

from ml_collections import ConfigDict

from experiments.configs import finetune


def get_config() -> ConfigDict:
    """The configuration."""
    c = finetune.get_config()
    c.dropout = 0.0
    c.optimizer.learning_rate = 1e-3
    c.eval_every = 100_000
    return c
