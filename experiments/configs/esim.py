r"""A classifier of pairs of texts: ESIM, with or without an encoder's layers.

The fields of every run on a task are in finetune.py, those of every network in network.py.

Paper and expected score: Chen et al. 2017, https://arxiv.org/abs/1609.06038: test accuracy on SNLI 88.0. Peters et al.
2018, https://arxiv.org/abs/1802.05365: 88.7 ± 0.17 with ELMo (table 1); on the dev data 88.1 without it, 88.9 with it
at the input, 89.5 at input and output, 88.7 at the output alone (table 3; --config.places).
The papers' layers have 300 numbers; here they have half as many, so that two cores can train them:
--config.lstm_size=300 is the papers'. Peters et al. leave GloVe's vectors as they are: --config.tune_words=false.
Cost: not measured here.

Command:
  python -m experiments.finetune --config=experiments/configs/esim.py --config.encoder=runs/elmo_novels \
      --config.vectors=glove.840B.300d.txt --task=snli --train=snli_1.0_train.txt --dev=snli_1.0_dev.txt \
      --workdir=runs/esim_snli
"""

from ml_collections import ConfigDict

from experiments.configs import network


def get_config() -> ConfigDict:
    """The configuration."""
    c = network.common()
    c.network = "esim"
    c.task = "snli"  # or rte, mrpc, kornli, …; classification of your own columns, with --pair=…
    c.places = "input,output"  # input (beside the words), output (beside what the first BiLSTM says), or both
    c.mix_l2 = 0.001
    c.max_length = 512  # words that a text is cut to; how many were is said when a run begins
    c.lstm_size = 150  # of both BiLSTMs, in each direction, and of the layers between and behind them
    c.dropout = 0.5
    c.epochs = 75.0
    c.patience = 5
    c.optimizer.learning_rate = 4e-4
    return c
