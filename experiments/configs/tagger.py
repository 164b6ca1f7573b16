r"""A tagger of words: BiLSTMs and a conditional random field, with or without an encoder's layers.

`finetune` and `network` have the shared fields (`transfer` and `layer_decay` are for a fine-tuned
encoder).

Paper and expected score: Peters et al. 2018, https://arxiv.org/abs/1802.05365: F1 on CoNLL-2003's test data 90.15
without ELMo and 92.22 ± 0.10 with it (table 1). Peters et al. 2017, https://arxiv.org/abs/1705.00108: 91.93 with a
language model between the BiLSTMs, 91.55 at the input of the first, 91.72 at the output (--config.places).
Here, UNER English EWT, six epochs, LSTMs of 100: F1 64.7 without ELMo and 66.0 with it
(docs/results/reproductions.md), about five minutes of processor time per run.
Command:
  python -m experiments.finetune --config=tagger --config.encoder=runs/elmo_novels \
      --train=en_ewt-ud-train.iob2 --dev=en_ewt-ud-dev.iob2 --workdir=runs/tagger
"""

from ml_collections import ConfigDict

from . import network


def get_config() -> ConfigDict:
    """Return the configuration."""
    c = network.fields()
    c.network = "tagger"
    c.task = "uner"  # or conll, wnut17, klue_ner, ud_upos, ud_xpos; entities or tags of your own columns
    # Or between (the first layer and the second), output; or several with commas: each has a mixture of its own.
    c.places = "input"
    # Of the layers, which read in both directions: lstm, gru; or window: a layer on `window` words around each word;
    # or linear: no layers (recipes in `window`).
    c.cell = "lstm"
    c.window = 11
    c.lstm_layers = 2
    c.lstm_size = 200  # cells in each direction; units on a window
    # Hand-made features: the last letters of a word (their number; 0: none), its capitals, and whether an entity of the
    # training part is called so; and the size of their vectors.
    c.update(suffix=0, capitals=False, gazetteer=False, feature_size=5)
    c.dropout = 0.5  # at the input of each layer and of the output, the same for all words of a sentence
    c.output = "crf"  # softmax
    c.update(epochs=75.0, patience=10)
    return c
