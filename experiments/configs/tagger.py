r"""A tagger of words: BiLSTMs and a conditional random field, with or without an encoder's layers. Every field.

Paper and expected score: Peters et al. 2018, https://arxiv.org/abs/1802.05365: F1 on CoNLL-2003's test data 90.15
without ELMo and 92.22 ± 0.10 with it (table 1). Peters et al. 2017, https://arxiv.org/abs/1705.00108: 91.93 with a
language model between the BiLSTMs, 91.55 at the input of the first, 91.72 at the output (--config.places).
Cost: not measured here.

Command:
  python -m experiments.finetune --config=experiments/configs/tagger.py --config.encoder=runs/elmo_novels \
      --train=en_ewt-ud-train.iob2 --dev=en_ewt-ud-dev.iob2 --workdir=runs/tagger
"""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """The configuration."""
    c = ConfigDict()
    c.network = "tagger"
    c.task = "uner"  # or conll, wnut17, klue_ner, ud_upos, ud_xpos; entities or tags of your own columns
    c.train = ""
    c.dev = ""
    c.test = ""  # scored once, by the model that is best on dev
    c.text = ""  # columns of your own files: the word and the tag, by number (or name, of JSON lines)
    c.pair = ""
    c.label = ""
    c.encoding = "utf-8"
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
    c.layer_decay = 1.0  # of an encoder that is trained along: each layer's rate is so many times that of the one above
    c.epochs = 75.0
    c.batch_size = 32  # sentences, of all devices together
    c.accumulate = 1
    c.seed = 0
    c.patience = 10  # evaluations without a better score, after which a run ends; 0: it does not
    c.log_every = 10
    c.eval_every = 0  # steps; 0: once an epoch
    c.checkpoint_every = 0  # steps; 0: with every evaluation
    c.stop_after_failures = 10
    c.mesh = ConfigDict({"data": -1, "fsdp": 1, "tensor": 1})
    c.optimizer = ConfigDict()
    c.optimizer.name = "adamw"  # bert_adam, lamb, adagrad
    c.optimizer.schedule = "constant"  # linear_from_start, linear_after_warmup, cosine, inverse_square_root
    c.optimizer.learning_rate = 1e-3
    c.optimizer.warmup = 0.0  # a share of the steps, or from 1 on steps
    c.optimizer.decay = 0.0
    c.optimizer.clip = 5.0
    c.optimizer.gradient_scale = 1.0
    return c
