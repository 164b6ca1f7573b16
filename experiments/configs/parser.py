r"""A greedy parser of dependencies: Chen and Manning's network, with or without an encoder's layers.

`finetune` and `network` have the shared fields.

Paper and expected score: Chen and Manning 2014, https://aclanthology.org/D14-1082/: UAS 91.8 and LAS 89.6 on the Penn
Treebank with tags and pretrained vectors; these give 0.7 there and 1.7 in Chinese; `x³` is 0.8 to 1.2 better than tanh.
Here, UD English EWT with gold tags (--config.tag_column=upos), two epochs: LAS 76.2, UAS 79.0 on test, in 2.6
minutes of processor time (docs/guides/parser.md).
Command:
  python -m experiments.finetune --config=parser --train=en_ewt-ud-train.conllu \
      --dev=en_ewt-ud-dev.conllu --test=en_ewt-ud-test.conllu --workdir=runs/parser
"""

from ml_collections import ConfigDict

from . import network


def get_config() -> ConfigDict:
    """Return the configuration."""
    c = network.fields()
    c.network = "parser"
    c.task = "dependencies"  # trees in CoNLL-U
    # Tags that it reads in addition to the words: upos or xpos, a column that files must have in predictions too;
    # empty: none, so that `predict` needs words alone.
    c.tag_column = ""
    c.hidden_size = 200
    c.activation = "cube"  # relu
    c.tag_size = 50
    c.relation_size = 50
    c.dropout = 0.5  # of the hidden layer
    c.word_dropout = 0.0  # of the vectors of words
    c.mix_dropout = 0.0
    c.update(epochs=20.0, patience=5)
    # The paper's optimizer: name=adagrad, learning_rate=0.01, gradient_scale=1000 (so that the first square of its sum,
    # 1, means nothing), clip=1e9.
    return c
