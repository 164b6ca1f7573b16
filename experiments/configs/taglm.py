"""TagLM: a tagger of two BiGRUs, with the top layer of a language model between them.

The first BiGRU reads word vectors, which are trained, and a vector of each word's characters. The second reads the
output of the first and the language model's top layer, and a conditional random field chooses the tags. The language
model is frozen, and its top layer is not mixed with others. All other fields are as in `tagger`.

Paper: Peters et al. 2017, https://arxiv.org/abs/1705.00108. It lowers all words and writes 0 for each digit; it lowers
the learning rate twice at the end, where these recipes stop; and it has no dropout before the output, where
--config.dropout is here, too.
"""

from ml_collections import ConfigDict

from bert_elmo_jax.runs.config_files import choose_recipe

from . import tagger


def fields() -> ConfigDict:
    """Return the fields that both recipes share."""
    c = tagger.get_config()
    c.places = "between"
    c.layers = "top"
    c.update(mix_l2=0.0, mix_dropout=0.0)
    c.unknown = "unk"
    return c


def entities() -> ConfigDict:
    r"""TagLM for named entities: BiGRUs of 300 cells, characters read by two BiGRUs of 80.

    Paper and expected score: F1 on CoNLL-2003's test data 90.87 ± 0.13 without a language model, 91.93 ± 0.19 with it,
    with vectors of 50 numbers by Senna.
    Cost: not measured here. Command:
      python -m experiments.finetune --config=taglm --config.encoder=runs/elmo_novels \
          --config.vectors=glove.6B.50d.txt --task=conll --train=eng.train --dev=eng.testa --test=eng.testb \
          --workdir=runs/taglm
    """
    c = fields()
    c.cell = "gru"
    c.update(lstm_size=300, dropout=0.25)
    c.character_vectors = "gru"
    c.update(character_size=80, character_embedding_size=25, character_layers=2)
    return c


def chunks() -> ConfigDict:
    r"""TagLM for the phrases of CoNLL-2000: BiLSTMs of 200 cells, characters read by 30 filters.

    Paper and expected score: F1 on CoNLL-2000's test data 95.00 ± 0.08 without a language model, 96.37 ± 0.05 with it.
    Cost: not measured here. Command:
      python -m experiments.finetune --config=taglm:chunks --config.encoder=runs/elmo_novels \
          --config.vectors=glove.6B.50d.txt --train=train.txt --dev=0.1 --test=test.txt --text=0 --label=2 \
          --workdir=runs/taglm_chunks
    """
    c = fields()
    c.task = "entities"
    c.update(lstm_size=200, dropout=0.5)
    c.character_vectors = "cnn"
    c.update(character_size=30, character_embedding_size=30)
    return c


get_config = choose_recipe(entities, chunks, default="entities")
