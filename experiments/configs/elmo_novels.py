r"""A small ELMo from a shelf of English novels (99 of them, 14 million words), for a laptop.

Adam instead of the original's Adagrad, which was for ten epochs of a billion words: after 110 steps the perplexity of
four held-out batches is 401 by the one (rate 0.002), 885 by the other (0.2). Prepared by:
  python -m experiments.prepare_data --input='novels/*.txt' --split=sentences --tokenizer=words --vocab_size=30000 \
      --output=corpora/novels_words

Expected score: perplexity 61.5 forwards and 62.2 backwards on 142,636 held-out words; an interpolated modified
Kneser-Ney 5-gram model of the same words has 99.4 and 99.6 (`python -m experiments.benchmarks.kneser_ney
--data=corpora/novels_words --run=runs/elmo_novels`), and is passed after 2,000 steps. Cost: two hours and a quarter of
processor time, so somewhat more than an hour of two cores; after 5,000 steps it is 71.

Command:
  python -m experiments.pretrain_elmo --config=experiments/configs/elmo_novels.py --config.data=corpora/novels_words \
      --workdir=runs/elmo_novels
"""

from ml_collections import ConfigDict

from experiments.configs import pretraining


def get_config() -> ConfigDict:
    """The configuration."""
    c = pretraining.elmo("small")
    c.steps = 9_000
    c.batch_size = 128
    c.negatives = 2_048
    c.model.update({"cell_size": 512, "filters": ((1, 32), (2, 32), (3, 64), (4, 128), (5, 128)), "dropout": 0.0})
    c.optimizer.update({"name": "adamw", "schedule": "linear_after_warmup", "learning_rate": 2e-3, "warmup": 0.02})
    c.optimizer.update({"clip": 1.0, "gradient_scale": 1.0})
    c.log_every = 20
    c.eval_every = 1_000
    c.checkpoint_every = 250
    return c
