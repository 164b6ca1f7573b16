"""The ELMo of `make quickstart`: that of elmo_toy at half its width, in a smaller world, English and Korean.

Expected score: perplexity 4.49; the quickstart's page has it beside the best possible. Cost: 90
seconds of one core.

Command:
  python -m experiments.pretrain_elmo --config=experiments/configs/elmo_quickstart.py --workdir=runs/quickstart/elmo
"""

from ml_collections import ConfigDict

from experiments.configs import elmo_toy


def get_config() -> ConfigDict:
    """The configuration."""
    c = elmo_toy.get_config()
    c.model.update({"cell_size": 128, "filters": ((1, 8), (2, 16), (3, 32), (6, 32))})
    c.update({"batch_size": 32, "eval_batches": 10})
    c.toyworld.update({"words": 3, "documents": 6_000})
    c.steps = 1_200
    return c
