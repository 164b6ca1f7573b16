r"""A biattentive classification network with the settings of the CoVe paper: GloVe, characters, and CoVe.

The network reads [GloVe; characters; CoVe]: frozen word vectors, convolutions over the characters of each word, and the
last layer of a frozen CoVe. All other fields are as in `bcn`. The paper reads n-grams of
characters instead of convolutions, and normalises batches between the maxout layers, where dropout is here.

Paper and expected score: McCann et al. 2017, https://arxiv.org/abs/1708.00107: test accuracy on SST-2 90.3, SST-5 53.7,
IMDb 91.8, TREC-6 95.8, SNLI 88.1.
Cost: not measured here.
Command:
  python -m experiments.finetune --config=bcn_cove --config.encoder=runs/cove \
      --config.vectors=glove.840B.300d.txt --task=sst5 --train=sst5/train.txt --dev=sst5/dev.txt \
      --test=sst5/test.txt --workdir=runs/bcn_cove
"""

from ml_collections import ConfigDict

from . import bcn


def get_config() -> ConfigDict:
    """Return the configuration."""
    c = bcn.get_config()
    c.layers = "-1"  # CoVe's last layer, without a learned mixture
    c.update(mix_l2=0.0, mix_dropout=0.0)
    c.tune_words = False
    c.unknown = "characters"
    c.update(feed_size=300, lstm_size=300)
    return c
