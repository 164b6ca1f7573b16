r"""A tagger of words: BiLSTMs and a conditional random field, with or without an encoder's layers.

experiments/configs/finetune.py and network.py have the shared fields (`transfer` and `layer_decay` are for a fine-tuned
encoder).

Paper and expected score: Peters et al. 2018, https://arxiv.org/abs/1802.05365: F1 on CoNLL-2003's test data 90.15
without ELMo and 92.22 ± 0.10 with it (table 1). Peters et al. 2017, https://arxiv.org/abs/1705.00108: 91.93 with a
language model between the BiLSTMs, 91.55 at the input of the first, 91.72 at the output (--config.places).
Here, UNER English EWT, six epochs, LSTMs of 100: F1 64.7 without ELMo and 66.0 with it
(docs/results/reproductions.md), about five minutes of processor time per run.
Command:
  python -m experiments.finetune --config=experiments/configs/tagger.py --config.encoder=runs/elmo_novels \
      --train=en_ewt-ud-train.iob2 --dev=en_ewt-ud-dev.iob2 --workdir=runs/tagger
"""

from ml_collections import ConfigDict

from experiments.configs import network


def get_config() -> ConfigDict:
    """Return the configuration."""
    c = network.fields()
    c.network = "tagger"
    c.task = "uner"  # or conll, wnut17, klue_ner, ud_upos, ud_xpos; entities or tags of your own columns
    c.places = "input"  # between (the BiLSTMs), output; or several with commas: each has a mixture of its own
    c.lstm_layers = 2
    c.lstm_size = 200
    c.dropout = 0.5  # at the input of each BiLSTM and of the output, the same for all words of a sentence
    c.output = "crf"  # softmax
    c.update(epochs=75.0, patience=10)
    return c
