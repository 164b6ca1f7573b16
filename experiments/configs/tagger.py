r"""A tagger of words: BiLSTMs and a conditional random field, with or without an encoder's layers.

The fields of every run on a task are in finetune.py; `layer_decay` is here for an encoder that is trained along.

Paper and expected score: Peters et al. 2018, https://arxiv.org/abs/1802.05365: F1 on CoNLL-2003's test data 90.15
without ELMo and 92.22 ± 0.10 with it (table 1). Peters et al. 2017, https://arxiv.org/abs/1705.00108: 91.93 with a
language model between the BiLSTMs, 91.55 at the input of the first, 91.72 at the output (--config.places).
Cost: not measured here.

Command:
  python -m experiments.finetune --config=experiments/configs/tagger.py --config.encoder=runs/elmo_novels \
      --train=en_ewt-ud-train.iob2 --dev=en_ewt-ud-dev.iob2 --workdir=runs/tagger
"""

from ml_collections import ConfigDict

from experiments.configs import finetune


def get_config() -> ConfigDict:
    """The configuration."""
    c = finetune.common()
    c.network = "tagger"
    c.task = "uner"  # or conll, wnut17, klue_ner, ud_upos, ud_xpos; entities or tags of your own columns
    c.encoder = ""  # an ELMo or a BERT, anything `load` understands (of a BERT each word's first piece); empty: none
    c.tune_encoder = False  # train it along; otherwise its vectors are computed once, and kept on the disk
    c.cache = ""  # the folder of these vectors; empty: in the run directory
    c.places = "input"  # between (the BiLSTMs), output; or several with commas: each has a mixture of its own
    c.mix_dropout = 0.5
    c.mix_l2 = 0.1  # λ of λ·‖w‖² of the mixtures' weights
    c.vectors = ""  # a file in the format of GloVe, word2vec or fastText; empty: vectors are drawn
    c.word_size = 0  # numbers of a word; 0: 100, or what the file has
    c.tune_words = True  # False: vectors of words stay as they are
    # What stands for a word without a vector of its own (those seen five times, or in the file, have one):
    # unk: one for all; classes: one for each class (number, capitals, suffix, particle); characters: one for all, and
    # convolutions over its characters; vectors: that of the file, also for words first met when the tagger is used;
    # random: one of its own, drawn from a hash of the word.
    c.unknown = "characters"
    c.lstm_layers = 2
    c.lstm_size = 200
    c.dropout = 0.5  # at the input of each BiLSTM and of the output, the same for all words of a sentence
    c.output = "crf"  # softmax
    c.epochs = 75.0
    c.patience = 10
    c.optimizer.update({"name": "adamw", "schedule": "constant", "learning_rate": 1e-3, "warmup": 0.0})
    c.optimizer.update({"decay": 0.0, "clip": 5.0})
    return c
