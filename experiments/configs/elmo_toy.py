"""An ELMo for a laptop: a small toy world in English and Korean, made on the fly.

Eight topics of at most four words a list: the toy world's own 24 of six want as long again. The vocabulary has room for
every word of both languages, so that the true perplexity of what is predicted is known exactly:
`python -m experiments.benchmarks.toyworld --run=runs/elmo_toy` prints it beside the model's. The filters reach over two
Korean syllables, which are three bytes each.

Expected score: perplexity 4.28 (English 3.59, Korean 5.38) where the true one of its held-out text is 3.88 (3.28, 4.84;
the end of a sentence counts, and is certain): 10.3 percent above it, and 10 is the aim. What is missing is mostly who a
document is about: a name that comes back after thirty words. A linear probe tells the senses of *bank* and of 배 apart
in 97 and 91 of 100 cases (layers 1 and 2), and not at all in layer 0 (`python -m experiments.probe --what=toyworld
--model=runs/elmo_toy --words=bank,배`). Cost: under half an hour of processor time, about a
quarter of an hour of two cores.

Command:
  python -m experiments.pretrain_elmo --config=experiments/configs/elmo_toy.py --workdir=runs/elmo_toy
"""

from ml_collections import ConfigDict

from experiments.configs import pretraining


def get_config() -> ConfigDict:
    """The configuration."""
    c = pretraining.elmo("toy")
    c.data = "toyworld"
    c.steps = 6_000
    c.batch_size = 64
    c.model.update({"cell_size": 256, "projection_size": 64, "dropout": 0.0})
    c.model.filters = ((1, 16), (2, 32), (3, 64), (4, 64), (6, 64))
    c.negatives = 0
    c.optimizer.update({"name": "adamw", "schedule": "linear_after_warmup", "learning_rate": 1e-2, "warmup": 0.05})
    c.optimizer.update({"clip": 1.0, "gradient_scale": 1.0})
    c.toyworld.update({"topics": 8, "words": 4, "documents": 40_000, "vocab_size": 8_192})
    c.log_every = 20
    c.eval_every = 500
    c.checkpoint_every = 500
    return c
