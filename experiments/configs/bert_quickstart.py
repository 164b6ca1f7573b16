"""The BERT of `make quickstart`: that of bert_toy at half its width, in a smaller world, English and Korean.

Expected score: masked tokens 0.529, next sentence 0.893; the quickstart's page has them beside the best possible. Cost:
85 seconds of one core.

Command:
  python -m experiments.pretrain_bert --config=experiments/configs/bert_quickstart.py --workdir=runs/quickstart/bert
"""

from ml_collections import ConfigDict

from experiments.configs import bert_toy


def get_config() -> ConfigDict:
    """The configuration."""
    c = bert_toy.get_config()
    c.model.update({"hidden_size": 64, "feed_forward_size": 256, "max_positions": 64})
    c.update({"batch_size": 32, "length": 64, "sequences": 4, "eval_batches": 20})
    c.optimizer.learning_rate = 5e-3
    c.toyworld.update({"topics": 4, "words": 3, "documents": 6_000})
    c.steps = 1_500
    return c
