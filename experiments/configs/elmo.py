"""ELMo: recipes for pretraining it, from the original sizes to small ones for a laptop."""

from ml_collections import ConfigDict

from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.runs.config_files import choose_recipe

from . import pretraining


def fields(preset: str) -> ConfigDict:
    """Return the original recipe: streams of text with carried state, Adagrad, a sampled softmax."""
    c = pretraining.fields("elmo", ElmoConfig.preset(preset))
    c.batch_size = 128
    c.reading = "streams"  # sentences: each from a zero state, both directions read the same words
    c.length = 20
    c.negatives = 8192  # 0: the full softmax
    c.coefficients = ConfigDict({"forward": 0.5, "backward": 0.5})  # of the terms of the loss
    c.optimizer.update(name="adagrad", schedule="constant", learning_rate=0.2, warmup=0.0)
    c.optimizer.update(clip=10.0, gradient_scale=20.0, decay=0.0)
    return c


def released(preset: str) -> ConfigDict:
    """Return the original recipe with ten epochs of the 1B-word benchmark."""
    c = fields(preset)
    c.steps = 10 * 768_648_884 // (c.batch_size * c.length)
    return c


def toy() -> ConfigDict:
    """An ELMo for a laptop: a small toy world in English and Korean, generated when the run starts.

    Four topics with at most four words per list; the toy world's default, 24 topics of six, needs several times as
    long. The vocabulary has room for every word of both languages, so the true perplexity of the predicted words is
    known exactly: `python -m experiments.benchmarks.toyworld --run=runs/elmo_toy` compares the model with it. The
    filters span two Korean syllables, which are three bytes each.

    Expected score: perplexity 4.21 (English 3.54, Korean 5.24). The true perplexity of its held-out text is 3.86 (3.25,
    4.81; the end of a sentence counts, and is certain), so the model is 9 percent above it. Most of the gap is the
    subject of a document: a name that returns after ten words or more, which the model has hardly begun to learn. A
    linear probe tells the senses of *bank* and of 배 apart in 92 and 95 of 100 cases (layer 2; a reader who knows the
    world exactly: 96 and 97), not at all in layer 0 (`experiments.probe --what=toyworld --model=runs/elmo_toy
    --words=bank,배`). Cost: 21 minutes of processor time, about a quarter of an hour on two cores. Command:
      python -m experiments.pretrain --config=elmo:toy --workdir=runs/elmo_toy
    """
    c = fields("toy")
    c.update(data="toyworld", steps=6_000, batch_size=64, negatives=0)
    c.model.update(cell_size=256, projection_size=64, dropout=0.0)
    c.model.filters = ((1, 16), (2, 32), (3, 64), (4, 64), (6, 64))
    c.optimizer.update(name="adamw", schedule="linear_after_warmup", learning_rate=1e-2, warmup=0.05)
    c.optimizer.update(clip=1.0, gradient_scale=1.0)
    c.toyworld.update(topics=4, words=4, documents=40_000, vocab_size=8_192)
    c.update(log_every=20, eval_every=500, checkpoint_every=500)
    return c


def small() -> ConfigDict:
    r"""ELMo, small size: 13.6 M parameters, the original recipe on the 1B-word benchmark.

    Paper and expected score: https://allennlp.org/elmo: semantic roles F1 83.62, constituency parsing F1 93.12.
    Cost: not measured here. Command:
      python -m experiments.pretrain --config=elmo:small --config.data=data/1b \
          --workdir=runs/elmo_small
    """
    return released("small")


def medium() -> ConfigDict:
    r"""ELMo, medium size: 28.0 M parameters, the original recipe on the 1B-word benchmark.

    Paper and expected score: https://allennlp.org/elmo: semantic roles F1 84.04, constituency parsing F1 93.60.
    Cost: not measured here. Command:
      python -m experiments.pretrain --config=elmo:medium --config.data=data/1b \
          --workdir=runs/elmo_medium
    """
    return released("medium")


def original() -> ConfigDict:
    r"""ELMo, original size: 93.6 M parameters, the original recipe on the 1B-word benchmark.

    Paper and expected score: Peters et al. 2018, https://arxiv.org/abs/1802.05365: perplexity 39.7 after ten epochs,
    the mean of both directions. Cost: about two weeks on three GTX 1080 in the original. Command:
      python -m experiments.pretrain --config=elmo:original --config.data=data/1b \
          --workdir=runs/elmo_original
    """
    return released("original")


def novels() -> ConfigDict:
    r"""A small ELMo for a laptop, from English novels: 99 of them, 14 million words.

    It uses Adam. The original's Adagrad was chosen for ten epochs of a billion words: after 110 steps the perplexity of
    four held-out batches is 401 with Adam (rate 0.002) and 885 with Adagrad (0.2). Prepared by:
      python -m experiments.prepare_data --input='novels/*.txt' --split=sentences --tokenizer=words --vocab_size=30000 \
          --output=corpora/novels_words

    Expected score: perplexity 61.5 forwards and 62.2 backwards on 142,636 held-out words. An interpolated modified
    Kneser-Ney 5-gram model of the same words has 99.4 and 99.6 (`python -m experiments.benchmarks.kneser_ney
    --data=corpora/novels_words --run=runs/elmo_novels`), which the run passes after 2,000 steps. Cost: two hours and a
    quarter of processor time, somewhat more than an hour on two cores; after 5,000 steps the perplexity is 71. Command:
      python -m experiments.pretrain --config=elmo:novels --config.data=corpora/novels_words \
          --workdir=runs/elmo_novels
    """
    c = fields("small")
    c.update(steps=9_000, batch_size=128, negatives=2_048)
    c.model.update(cell_size=512, filters=((1, 32), (2, 32), (3, 64), (4, 128), (5, 128)), dropout=0.0)
    c.optimizer.update(name="adamw", schedule="linear_after_warmup", learning_rate=2e-3, warmup=0.02)
    c.optimizer.update(clip=1.0, gradient_scale=1.0)
    c.update(log_every=20, eval_every=1_000, checkpoint_every=250)
    return c


def quickstart() -> ConfigDict:
    """The ELMo of `make quickstart`: half the width of `toy`, in a smaller world, English and Korean.

    Expected score: perplexity 4.49; the quickstart's page shows the best possible, too. Cost: 90 seconds of one core.
    Command:
      python -m experiments.pretrain --config=elmo:quickstart --workdir=runs/quickstart/elmo
    """
    c = toy()
    c.update(steps=1_200, batch_size=32, eval_batches=10)
    c.model.update(cell_size=128, filters=((1, 8), (2, 16), (3, 32), (6, 32)))
    c.toyworld.update(words=3, documents=6_000)
    return c


get_config = choose_recipe(toy, small, medium, original, novels, quickstart)
