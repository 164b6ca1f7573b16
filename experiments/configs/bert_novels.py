r"""A small BERT from a shelf of English novels (99 of them, 14 million words), for a laptop.

Two layers more than BERT-tiny and a little wider; whole sentences, one text after the other, no pairs. The wide
initialisation and the high rate shorten the time in which such a model knows no more than how frequent words are. The
last tenth of the steps has rows of twice the length. Prepared by:
  python -m experiments.prepare_data --input='novels/*.txt' --split=sentences --vocab_size=8192 --sample_mb=100 \
      --output=corpora/novels

Expected score: masked tokens 0.372 of 24,313 held-out predictions (perplexity 35), where the most frequent token has
0.151 right and the token most often seen between the two neighbours 0.322; at the places that show [MASK] 0.310, 0.062
and 0.276 (`experiments.benchmarks.masked_baselines --run=runs/bert_novels`). Cost: 60 minutes of processor time, so
about half an hour of two cores.

Command:
  python -m experiments.pretrain_bert --config=experiments/configs/bert_novels.py --config.data=corpora/novels \
      --workdir=runs/bert_novels
"""

from ml_collections import ConfigDict

from experiments.configs import pretraining


def get_config() -> ConfigDict:
    """The configuration."""
    c = pretraining.bert("tiny")
    c.steps = 5_600
    c.batch_size = 64
    c.length = 64
    c.long_length = 128
    c.long_batch_size = 32
    c.objective = "sentences"
    c.model.update({"num_layers": 4, "hidden_size": 192, "num_heads": 6, "feed_forward_size": 768})
    c.model.update({"dropout": 0.0, "attention_dropout": 0.0, "initializer_range": 0.05, "max_positions": 128})
    c.optimizer.update({"name": "adamw", "schedule": "linear_after_warmup", "learning_rate": 1.5e-3, "warmup": 0.05})
    c.log_every = 20
    c.eval_every = 560
    c.checkpoint_every = 280
    return c
