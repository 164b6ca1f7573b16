"""AWD-LSTM: recipes for pretraining it, from the papers' sizes to small ones for a laptop."""

from ml_collections import ConfigDict

from bert_elmo_jax.families.awd_lstm.config import AwdLstmConfig
from bert_elmo_jax.families.awd_lstm.objective import COEFFICIENTS
from bert_elmo_jax.runs.config_files import choose_recipe

from . import pretraining


def fields(preset: str) -> ConfigDict:
    """Return ULMFiT's recipe: streams of text with carried state, Adam with a slanted triangle."""
    c = pretraining.fields("awd_lstm", AwdLstmConfig.preset(preset, vocab_size=1))
    del c.model["classifier"], c.model["pooling"]
    c.batch_size = 64
    c.reading = "streams"  # sentences: each from a zero state
    c.length = 70
    # The deviation of the number of steps of a batch, which is normal around `length`, and around half of it in one of
    # twenty batches; 0: always `length`.
    c.spread = 5
    # Of the terms of the loss: the next word, and the mean squares of the last layer and of its changes.
    c.coefficients = ConfigDict(COEFFICIENTS)
    c.optimizer.update(name="adamw", schedule="slanted_triangular", learning_rate=4e-3, warmup=0.1)
    c.optimizer.update(b1=0.7, b2=0.99, eps=1e-8, clip=0.25, decay=1.2e-6)
    return c


def toy() -> ConfigDict:
    """An AWD-LSTM for a laptop: a small toy world in English and Korean, generated when the run starts.

    Dropout is off: the world has more text than the run reads. Expected score: perplexity 4.36; the true
    perplexity of the held-out text is 3.86 (see elmo:toy). Cost: about two minutes of processor time. Command:
      python -m experiments.pretrain --config=awd_lstm:toy --workdir=runs/awd_lstm_toy
    """
    c = fields("toy")
    c.update(data="toyworld", steps=3_000, batch_size=32, length=35)
    c.model.update(dict.fromkeys(("output_dropout", "hidden_dropout", "input_dropout"), 0.0))
    c.model.update(embedding_dropout=0.0, weight_dropout=0.0)
    c.coefficients.update(activation=0.0, change=0.0)
    c.optimizer.update(learning_rate=1e-2, clip=1.0, decay=0.0)
    c.toyworld.update(topics=4, words=4, documents=40_000, vocab_size=8_192)
    c.update(log_every=20, eval_every=500, checkpoint_every=500)
    return c


def wikitext2() -> ConfigDict:
    r"""AWD-LSTM of Merity et al. on WikiText-2: 33 million parameters, words.

    Paper and expected score: https://arxiv.org/abs/1708.02182: perplexity 68.6 on the validation text after 750 epochs
    of averaged SGD; this recipe is ULMFiT's Adam, which the table does not have, and short rows are learned from at the
    full rate. Prepared from `wiki.train.tokens` by:
      python -m experiments.prepare_data --input=wiki.train.tokens --tokenizer=words --vocab_size=33278 \
          --output=corpora/wikitext2
    Cost: not measured here. Command:
      python -m experiments.pretrain --config=awd_lstm:wikitext2 \
          --config.data=corpora/wikitext2 --workdir=runs/awd_lstm_wikitext2
    """
    c = fields("original")
    c.model.update(input_dropout=0.65, embedding_dropout=0.1)  # the paper's
    c.update(batch_size=80, steps=40 * 2_088_628 // (80 * 70))
    return c


def novels() -> ConfigDict:
    r"""A small AWD-LSTM for a laptop, from English novels: 99 of them, 14 million words.

    Two layers of 256 and 128 cells, and little dropout, because no word is read twice. Prepared as
    elmo:novels says.

    Expected score: after the 1,000 steps that ulmfit_real takes, perplexity 152 per held-out word, and 373 per word of
    WikiText-2's validation text (docs/results/small_models.md). Cost: 26 minutes of processor time for these. Command:
      python -m experiments.pretrain --config=awd_lstm:novels \
          --config.data=corpora/novels_words --workdir=runs/awd_lstm_novels
    """
    c = fields("original")
    c.model.update(
        num_layers=2, embedding_size=128, cell_size=256, output_dropout=0.1, hidden_dropout=0.1, input_dropout=0.1
    )
    c.model.update(embedding_dropout=0.02, weight_dropout=0.1)
    c.update(steps=4_000, batch_size=32)
    c.optimizer.update(schedule="linear_after_warmup", learning_rate=4e-3, warmup=0.05, b1=0.9, clip=1.0)
    c.update(log_every=20, eval_every=1_000, checkpoint_every=250)
    return c


def korean() -> ConfigDict:
    r"""The model of `novels` in Korean pieces, from little text: about 550,000 pieces, which are read six times.

    The text is what open data sets of other tasks have: UD Korean GSD, KorSTS, XNLI's development pairs, and the news
    of KLUE NER, each different sentence once. The pieces are made of this text and of 100,000 unlabelled reviews, so
    that the model can be tuned to reviews:
      python -m experiments.prepare_data --input=korean/general.txt --input=korean/reviews.txt \
          --tokenizer=sentencepiece --vocab_size=8000 --output=corpora/korean_both
      python -m experiments.prepare_data --input=korean/general.txt --tokenizer=corpora/korean_both/tokenizer \
          --heldout=0.02 --output=corpora/korean_pieces

    Expected score: perplexity 269 per held-out piece after the 750 steps that ulmfit_real takes. Cost: 13 minutes of
    processor time for these. Command:
      python -m experiments.pretrain --config=awd_lstm:korean \
          --config.data=corpora/korean_pieces --workdir=runs/awd_lstm_korean
    """
    c = novels()
    c.model.update(output_dropout=0.2, hidden_dropout=0.2, input_dropout=0.2, weight_dropout=0.2)
    c.update(steps=1_500, eval_every=250)
    return c


def original() -> ConfigDict:
    r"""ULMFiT's language model on WikiText-103: embeddings of 400, three layers of 1150, 60,000 words.

    Paper and expected score: Howard and Ruder 2018, https://arxiv.org/abs/1801.06146, which gives no perplexity.
    Cost: not measured here. Command:
      python -m experiments.pretrain --config=awd_lstm:original \
          --config.data=corpora/wikitext103 --workdir=runs/awd_lstm
    """
    c = fields("original")
    c.steps = 14 * 103_227_021 // (c.batch_size * c.length)
    return c


def backward() -> ConfigDict:
    r"""The model of `original`, reading every text from its end; ULMFiT averages the classifiers of both.

    Paper and expected score: Howard and Ruder 2018, https://arxiv.org/abs/1801.06146. Cost: not measured here. Command:
      python -m experiments.pretrain --config=awd_lstm:backward \
          --config.data=corpora/wikitext103 --workdir=runs/awd_lstm_backward
    """
    c = original()
    c.model.direction = "backward"
    return c


get_config = choose_recipe(toy, wikitext2, novels, korean, original, backward)
