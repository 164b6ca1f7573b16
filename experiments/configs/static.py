r"""Static word vectors: recipes for training them on a prepared corpus of words.

A corpus is prepared by
  python -m experiments.prepare_data --input='novels/*.txt' --split=sentences --tokenizer=words --vocab_size=50000 \
      --output=corpora/novels_words
"""

from ml_collections import ConfigDict

from bert_elmo_jax.families.static.config import StaticConfig
from bert_elmo_jax.runs.config_files import choose_recipe

from . import pretraining


def fields(preset: str) -> ConfigDict:
    """Return the fields of every recipe: rows of 32 words, and a rate that falls to zero."""
    c = pretraining.fields("static", StaticConfig.preset(preset, vocab_size=1))
    c.batch_size = 64
    c.length = 32  # words of a row, which share their negatives; of GloVe, pairs of words
    c.window = 5  # the largest distance of a neighbour
    c.min_count = 5  # words that occur less often in the training text are left out
    c.sample = 1e-3  # words with a larger share of the text are read less often; 0: all words
    c.negatives = 5  # of each pair of neighbours
    c.row_negatives = 64  # different words that are drawn for a row, and weighted to be that many
    c.optimizer.update(name="row_sgd", schedule="linear_from_start", learning_rate=0.025, warmup=0.0, decay=0.0)
    c.optimizer.clip = 0.5  # the longest step of a word's vector
    c.update(steps=20_000, log_every=100, eval_every=2_000, checkpoint_every=2_000, eval_batches=50)
    return c


def toy() -> ConfigDict:
    """Skip-gram on a small toy world in English and Korean, generated when the run starts.

    Expected score: the neighbours of *river* are other places, such as office, harbor, lake and waterfall. Cost: twenty
    seconds of processor time. Command:
      python -m experiments.pretrain --config=static:toy --workdir=runs/static_toy
    """
    c = fields("toy")
    c.update(data="toyworld", steps=2_000, batch_size=8, window=3, sample=0.0)
    c.toyworld.update(topics=4, words=4, documents=5_000, vocab_size=8_192)
    c.update(log_every=50, eval_every=500, checkpoint_every=500)
    return c


def skipgram() -> ConfigDict:
    r"""Skip-gram with negatives: Mikolov et al. 2013, https://arxiv.org/abs/1310.4546.

    Expected score: docs/guides/static_vectors.md compares the neighbours with gensim's. Cost: about 20 seconds of
    processor time for a million words. Command:
      python -m experiments.pretrain --config=static:skipgram \
          --config.data=corpora/novels_words --workdir=runs/skipgram
    """
    return fields("skipgram")


def cbow() -> ConfigDict:
    r"""The mean of a word's neighbours predicts it: Mikolov et al. 2013, https://arxiv.org/abs/1301.3781.

    Expected score: not measured here. Cost: less than skip-gram's. Command:
      python -m experiments.pretrain --config=static:cbow --config.data=corpora/novels_words --workdir=runs/cbow
    """
    return fields("cbow")


def fasttext() -> ConfigDict:
    r"""Skip-gram whose words are sums of n-grams: Bojanowski et al. 2017, https://arxiv.org/abs/1607.04606.

    Expected score: not measured here. Cost: several times that of skip-gram. Command:
      python -m experiments.pretrain --config=static:fasttext \
          --config.data=corpora/novels_words --workdir=runs/fasttext
    """
    c = fields("fasttext")
    c.model.buckets = 200_000  # of the paper 2 million, which is a table of 800 MB
    c.sample = 1e-4
    c.optimizer.learning_rate = 0.05
    return c


def glove() -> ConfigDict:
    r"""GloVe: Pennington et al. 2014, https://nlp.stanford.edu/pubs/glove.pdf.

    The neighbours are counted when the run starts. The loaded vectors are the sums of both tables. Expected score: not
    measured here. Cost: depends on the number of different pairs. Command:
      python -m experiments.pretrain --config=static:glove --config.data=corpora/novels_words --workdir=runs/glove
    """
    c = fields("glove")
    for name in ("sample", "negatives", "row_negatives"):  # it reads all words, and has no negatives
        del c[name]
    c.update(length=1024, window=10, batch_size=8)
    c.optimizer.update(name="adagrad", schedule="constant", learning_rate=0.05, clip=1e9)
    return c


get_config = choose_recipe(toy, skipgram, cbow, fasttext, glove)
