r"""A reader of questions: BiDAF with self-attention, with or without an encoder's layers.

`finetune` and `network` have the shared fields.

Paper and expected score: Peters et al. 2018, https://arxiv.org/abs/1802.05365: F1 on SQuAD 1.1's hidden test data 81.1
without ELMo and 85.8 with it (table 1); on the dev data 80.8 without it, 85.1 with it at the input, 85.6 at input and
output, 84.8 at the output alone (table 3; --config.places). The network is Clark and Gardner's of 2018,
https://arxiv.org/abs/1710.10723, with LSTMs instead of GRUs. If some training questions have no answer, it learns a
score for that. Peters et al. do not train GloVe's vectors: --config.tune_words=false.
Answers are whole words. A run reports how many answers end inside a word, as KorQuAD's do before a particle.
Here, SQuAD's 6,111 questions, four epochs, LSTMs of 60, 50-number GloVe and an ELMo of an hour: F1 22.1 without it,
27.6 with it; 17 and 20 minutes of one core.
Command:
  python -m experiments.finetune --config=bidaf --config.encoder=runs/elmo_novels \
      --config.vectors=glove.840B.300d.txt --train=squad/train-v1.1.json --dev=squad/dev-v1.1.json \
      --workdir=runs/reader
"""

from ml_collections import ConfigDict

from . import network


def get_config() -> ConfigDict:
    """Return the configuration."""
    c = network.fields()
    c.network = "bidaf"
    c.task = "squad"  # or korquad, qamr
    c.places = "input,output"  # input (joined to the words), output (joined to the output of the first BiLSTM), or both
    c.mix_l2 = 0.0
    c.max_length = 400  # words of a context; training reads one window of a longer context, prediction all windows
    c.longest_answer = 17  # words
    c.lstm_size = 90  # of each BiLSTM, in each direction; the layers between them have twice as many
    c.dropout = 0.2  # at the input of each BiLSTM and linear layer, the same for all words of a text
    c.update(epochs=20.0, patience=5)
    return c
