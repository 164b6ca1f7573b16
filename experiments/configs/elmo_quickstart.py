"""The ELMo of `make quickstart`: that of elmo_toy, English and Korean, for fewer steps.

Expected score: perplexity 4.28; the quickstart's page has it beside the best possible. Cost: three and a half minutes
of processor time, by the cost of elmo_toy's steps.

Command:
  python -m experiments.pretrain_elmo --config=experiments/configs/elmo_quickstart.py --workdir=runs/quickstart/elmo
"""

from ml_collections import ConfigDict

from experiments.configs import elmo_toy


def get_config() -> ConfigDict:
    """The configuration."""
    c = elmo_toy.get_config()
    c.toyworld.documents = 10_000
    c.steps = 1_000
    return c
