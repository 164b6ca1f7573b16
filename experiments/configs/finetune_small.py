r"""Small BERTs that were pretrained on a laptop (`bert_novels`, `bert_reviews`), or none, on any task.

A higher rate than the paper's, as small models need, and dropout, which they were pretrained without.
Paper and expected score: none in a paper; parts of speech of English EWT 92.9 (87.2 from scratch), and the other rows
of the README's table of what pretraining is worth, each of which is a command like this one. Cost: two to eight minutes
of processor time a run.

Command:
  python -m experiments.finetune --config=experiments/configs/finetune_small.py --init=runs/bert_novels \
      --task=ud_upos --train=en_ewt-ud-train.conllu --dev=en_ewt-ud-dev.conllu --test=en_ewt-ud-test.conllu \
      --seeds=0,1,2 --workdir=runs/pos
The same from scratch, with the same tokenizer and sizes:
  … --tokenizer=runs/bert_novels --config.preset=runs/bert_novels (instead of --init; whole texts want a lower
  rate then, --config.optimizer.learning_rate=1e-4)
"""

from ml_collections import ConfigDict

from experiments.configs import finetune


def get_config() -> ConfigDict:
    """The configuration."""
    c = finetune.get_config()
    c.dropout = 0.1
    c.optimizer.learning_rate = 5e-4
    return c
