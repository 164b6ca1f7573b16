"""The fields that the networks of tasks share, beside those of every run; each config adds the sizes of its own."""

from ml_collections import ConfigDict

from experiments.configs import finetune


def common() -> ConfigDict:
    """The fields."""
    c = finetune.common()
    c.network = ""
    c.encoder = ""  # an ELMo or a BERT, anything `load` understands (of a BERT each word's first piece); empty: none
    c.tune_encoder = False  # train it along; otherwise its vectors are computed once, and kept on the disk
    # How many epochs the encoder, an ELMo, reads the training texts as a language model before anything else; 0: none.
    c.adapt = ConfigDict({"epochs": 0.0, "learning_rate": 1e-3, "batch_size": 32})
    c.cache = ""  # the folder of these vectors; empty: in the run directory
    c.layers = ""  # those of the encoder's that are mixed (0: of its words, -1: the last), with commas; empty: all
    c.places = "input"  # or the other places of the network; or several with commas: each has a mixture of its own
    c.mix_dropout = 0.5
    c.mix_l2 = 0.1  # λ of λ·‖w‖² of the mixtures' weights
    c.vectors = ""  # a file in the format of GloVe, word2vec or fastText; empty: vectors are drawn
    c.word_size = 0  # numbers of a word; 0: 100, or what the file has
    c.tune_words = True  # False: vectors of words stay as they are
    # What stands for a word without a vector of its own (those seen five times, or in the file, have one):
    # unk: one for all; classes: one for each class (number, capitals, suffix, particle); characters: one for all, and
    # convolutions over its characters; vectors: that of the file, also for words first met when the network is used;
    # random: one of its own, drawn from a hash of the word.
    c.unknown = "characters"
    c.optimizer.update({"name": "adamw", "schedule": "constant", "learning_rate": 1e-3, "warmup": 0.0})
    c.optimizer.update({"decay": 0.0, "clip": 5.0})
    return c
