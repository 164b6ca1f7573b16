r"""Taggers of 2011: a layer on a window of words, and a conditional random field of hand-made features.

Both are `tagger` with other fields. Paper: Collobert et al. 2011, https://arxiv.org/abs/1103.0398. It lowers all words,
and all of its networks have the capitals as a feature; here, words keep their case, and capitals are a switch. Its
taggers read windows of 5 words (`window=5`); its word vectors were trained on windows of 11, the default here.
"""

from ml_collections import ConfigDict

from bert_elmo_jax.runs.config_files import choose_recipe

from . import tagger


def network() -> ConfigDict:
    r"""A network: the vectors of 11 words, 300 units with a hard tanh, and scores of tags.

    `output=crf` is the likelihood of sentences, `output=softmax` that of single words. `suffix=2`, `capitals=true` and
    `gazetteer=true` add features. Paper and expected score: entities of CoNLL-2003 F1 81.47 with random vectors, 88.87
    with pretrained ones, 89.59 with a gazetteer, too (as quoted in Manning's tutorial of 2012); here, the table in
    docs/results/small_models.md. Cost: about a minute of processor time. Command:
      python -m experiments.finetune --config=window --config.vectors=glove.6B.50d.txt --config.gazetteer=true \
          --train=en_ewt-ud-train.iob2 --dev=en_ewt-ud-dev.iob2 --workdir=runs/window
    """
    c = tagger.get_config()
    c.update(cell="window", window=11, lstm_layers=1, lstm_size=300, dropout=0.0)
    c.unknown = "unk"
    c.update(epochs=20.0, patience=5)
    return c


def linear() -> ConfigDict:
    r"""A conditional random field of features without a network: words, suffixes and capitals of five words.

    `gazetteer=true` adds the entities of the training part. Paper and expected score: the best systems with features of
    their time had 97.24 (parts of speech) and F1 89.31 (entities); they have many more features. Here,
    docs/results/small_models.md. Cost: about a minute of processor time. Command:
      python -m experiments.finetune --config=window:linear --config.gazetteer=true \
          --train=en_ewt-ud-train.iob2 --dev=en_ewt-ud-dev.iob2 --workdir=runs/features
    """
    c = network()
    c.update(cell="linear", window=5)
    c.update(suffix=2, capitals=True)
    c.min_count = 2
    c.optimizer.learning_rate = 1e-2
    return c


get_config = choose_recipe(network, linear, default="network")
