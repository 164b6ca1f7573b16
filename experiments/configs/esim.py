r"""A classifier of pairs of texts: ESIM, with or without an encoder's layers.

`finetune` and `network` have the shared fields.

Paper and expected score: Chen et al. 2017, https://arxiv.org/abs/1609.06038: test accuracy on SNLI 88.0. Peters et al.
2018, https://arxiv.org/abs/1802.05365: 88.7 ± 0.17 with ELMo (table 1); on the dev data 88.1 without it, 88.9 with it
at the input, 89.5 at input and output, 88.7 at the output alone (table 3; --config.places).
The papers' layers have 300 cells. Here they have half as many, so that two cores can train them; use
--config.lstm_size=300 for the papers' size. Peters et al. do not train GloVe's vectors: --config.tune_words=false.
Cost: not measured here.
Command:
  python -m experiments.finetune --config=esim --config.encoder=runs/elmo_novels \
      --config.vectors=glove.840B.300d.txt --task=snli --train=snli_1.0_train.txt --dev=snli_1.0_dev.txt \
      --workdir=runs/esim_snli
"""

from ml_collections import ConfigDict

from . import network


def get_config() -> ConfigDict:
    """Return the configuration."""
    c = network.fields()
    c.network = "esim"
    c.task = "snli"  # or rte, mrpc, kornli, …; classification of your own columns, with --pair=…
    c.places = "input,output"  # input (joined to the words), output (joined to the output of the first BiLSTM), or both
    c.mix_l2 = 0.001
    c.max_length = 512  # words that a text is cut to; the run reports how many texts were cut
    c.lstm_size = 150  # of both BiLSTMs, in each direction, and of the layers between and after them
    c.dropout = 0.5
    c.update(epochs=75.0, patience=5)
    c.optimizer.learning_rate = 4e-4
    return c
