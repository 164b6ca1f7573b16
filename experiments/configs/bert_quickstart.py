"""The BERT of `make quickstart`: that of bert_toy in a smaller world, English and Korean, for fewer steps.

Expected score: masked tokens 0.550, next sentence 0.917; the quickstart's page has them beside the best possible. Cost:
about four minutes of processor time, by the cost of bert_toy's steps.

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
