"""The BERT of `make quickstart`: that of bert_toy in a smaller world, English and Korean, in about a minute and a half.

Expected score: in the quickstart's report, beside the best possible. Cost: four minutes of processor time.

Command:
  python -m experiments.pretrain_bert --config=experiments/configs/bert_quickstart.py --workdir=runs/quickstart/bert
"""

from ml_collections import ConfigDict

from experiments.configs import bert_toy


def get_config() -> ConfigDict:
    """The configuration."""
    c = bert_toy.get_config()
    c.toyworld.update({"topics": 4, "words": 4, "documents": 10_000})
    c.steps = 2_000
    return c
