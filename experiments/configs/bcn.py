r"""A classifier of texts or pairs of texts: the biattentive network, with or without an encoder's layers.

`finetune` and `network` have the shared fields.

Paper and expected score: McCann et al. 2017 (CoVe), https://arxiv.org/abs/1708.00107: test accuracy with GloVe and CoVe
on SST-2 90.3, SST-5 53.7, TREC-6 95.8, SNLI 88.1. Peters et al. 2018, https://arxiv.org/abs/1802.05365: SST-5 51.4
without ELMo and 54.7 ± 0.5 with it (table 1).
The papers' BiLSTMs have 300 cells in each direction. Here they are half as wide, so that two cores can train them; use
--config.lstm_size=300 --config.feed_size=300 for the papers' size.
Cost: not measured here.
Command:
  python -m experiments.finetune --config=bcn --config.encoder=runs/elmo_novels \
      --config.vectors=glove.6B.300d.txt --task=sst5 --train=sst5/train.txt --dev=sst5/dev.txt --test=sst5/test.txt \
      --workdir=runs/bcn_sst5
"""

from ml_collections import ConfigDict

from . import network


def get_config() -> ConfigDict:
    """Return the configuration."""
    c = network.fields()
    c.network = "bcn"
    c.task = "sst5"  # or sst2, trec, nsmc, rte, …; classification of your own columns, with --pair=… of pairs
    c.places = "input"  # output (joined to the output of the integrator), or input,output
    c.mix_l2 = 0.001
    c.max_length = 512  # words that a text is cut to; the run reports how many texts were cut
    c.feed_size = 150  # of the layer between words and BiLSTM
    c.lstm_size = 150  # of both BiLSTMs, in each direction; the maxout layers have four times and twice that width
    c.word_dropout = 0.5
    c.dropout = 0.2  # after the feed-forward layer, and before each maxout layer
    c.update(epochs=20.0, patience=5)
    return c
