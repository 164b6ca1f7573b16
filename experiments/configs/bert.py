"""BERT: recipes for pretraining it, from the sizes of the papers to small ones for a laptop."""

from ml_collections import ConfigDict, config_dict

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.runs.config_files import choose_recipe

from . import pretraining


def fields(preset: str) -> ConfigDict:
    """Return the paper's recipe: 90 percent of the steps with rows of 128, the rest with rows of 512."""
    c = pretraining.masked("bert", BertConfig.preset(preset))
    c.update(length=128, long_share=0.1, short_share=0.1)
    c.objective = "nsp"  # sop, sentences, documents
    c.coefficients = ConfigDict({"mlm": 1.0, "nsp": 1.0})  # of the terms of the loss; nsp is for pairs (nsp, sop)
    c.masking.end_rate = config_dict.placeholder(float)  # the rate changes evenly to this one; empty: it stays
    c.masking.rates = config_dict.placeholder(int)  # the number of different rates on this way; empty: 16
    # The first steps, this share of them, have fewer rows: each of these numbers for as many steps as the others.
    c.batch_warmup = ConfigDict({n: config_dict.placeholder(t) for n, t in (("rows", tuple), ("share", float))})
    c.causal_share = config_dict.placeholder(float)  # of the steps: the first predict the next piece, not masked ones
    return c


def toy() -> ConfigDict:
    """A BERT for a laptop: the toy world in English and Korean, generated when the run starts.

    The vocabulary has room for every word of both languages. So a masked word is one piece, and the best possible
    score is known exactly: `python -m experiments.benchmarks.toyworld --run=runs/bert_toy` compares the model with it.
    Several short examples share a row. The wide initialisation and the high rate shorten the time until such a model
    knows more than word frequencies.

    Expected score: masked words 0.624, the best possible is 0.654 (English 0.680 and 0.711, Korean 0.552 and 0.583);
    next sentence 0.982, the best possible is 0.991. Cost: 17 minutes of processor time, about nine on two cores.
    Command:
      python -m experiments.pretrain --config=bert:toy --workdir=runs/bert_toy
    """
    c = fields("tiny")
    c.update(data="toyworld", steps=9_000, batch_size=16, long_share=0.0, length=128, sequences=8)
    c.model.update(num_heads=4, max_positions=128, initializer_range=0.05, dropout=0.0, attention_dropout=0.0)
    c.optimizer.update(name="adamw", schedule="linear_after_warmup", learning_rate=2e-3, warmup=0.05)
    c.toyworld.update(documents=20_000, vocab_size=8_192)
    c.update(log_every=20, eval_every=500, checkpoint_every=500)
    return c


def tiny() -> ConfigDict:
    r"""BERT-tiny: 2 layers of 128, 4 M parameters, the paper's recipe.

    Paper and expected score: Turc et al. 2019, https://arxiv.org/abs/1908.08962: GLUE 64.2 on average
    (the released model; google-research/bert, README). Cost: not measured here. Command:
      python -m experiments.pretrain --config=bert:tiny --config.data=data/wiki \
          --workdir=runs/tiny
    """
    return fields("tiny")


def mini() -> ConfigDict:
    r"""BERT-mini: 4 layers of 256, 11 M parameters, the paper's recipe.

    Paper and expected score: Turc et al. 2019, https://arxiv.org/abs/1908.08962: GLUE 65.8 on average
    (the released model; google-research/bert, README). Cost: not measured here. Command:
      python -m experiments.pretrain --config=bert:mini --config.data=data/wiki \
          --workdir=runs/mini
    """
    return fields("mini")


def small() -> ConfigDict:
    r"""BERT-small: 4 layers of 512, 29 M parameters, the paper's recipe.

    Paper and expected score: Turc et al. 2019, https://arxiv.org/abs/1908.08962: GLUE 71.2 on average
    (the released model; google-research/bert, README). Cost: not measured here. Command:
      python -m experiments.pretrain --config=bert:small --config.data=data/wiki \
          --workdir=runs/small
    """
    return fields("small")


def medium() -> ConfigDict:
    r"""BERT-medium: 8 layers of 512, 41 M parameters, the paper's recipe.

    Paper and expected score: Turc et al. 2019, https://arxiv.org/abs/1908.08962: GLUE 73.5 on average
    (the released model; google-research/bert, README). Cost: not measured here. Command:
      python -m experiments.pretrain --config=bert:medium --config.data=data/wiki \
          --workdir=runs/medium
    """
    return fields("medium")


def base() -> ConfigDict:
    r"""BERT-base: 12 layers of 768, 110 M parameters, the paper's recipe.

    Paper and expected score: Devlin et al. 2018, https://arxiv.org/abs/1810.04805: GLUE 79.6 on average (table 1),
    SQuAD 1.1 F1 88.5 on the development set (table 2). Cost: four days on 16 TPU v2 chips in the paper. Command:
      python -m experiments.pretrain --config=bert:base --config.data=data/wiki \
          --workdir=runs/base
    """
    return fields("base")


def large() -> ConfigDict:
    r"""BERT-large: 24 layers of 1024, 340 M parameters, the paper's recipe.

    Paper and expected score: Devlin et al. 2018, https://arxiv.org/abs/1810.04805: GLUE 82.1 on average (table 1),
    SQuAD 1.1 F1 90.9 on the development set (table 2). Cost: four days on 64 TPU v2 chips in the paper. Command:
      python -m experiments.pretrain --config=bert:large --config.data=data/wiki \
          --workdir=runs/large
    """
    c = fields("large")
    c.model.update(remat=True, scan=True)
    return c


def large_lamb() -> ConfigDict:
    r"""BERT-large in 8,601 steps with very large batches, by LAMB.

    Paper and expected score: You et al. 2019, https://arxiv.org/abs/1904.00962, table 1: SQuAD 1.1 dev F1 90.6.
    Cost: 76 minutes on 1,024 TPU v3 chips in the paper.

    The first phase has 65,536 rows of 128, the second 32,768 rows of 512 with its own warm-up. On fewer devices raise
    `--config.accumulate`. Command:
      python -m experiments.pretrain --config=bert:large_lamb --config.data=data/wiki \
          --workdir=runs/bert_large_lamb
    """
    c = large()
    c.steps = 7_038 + 1_563
    c.update(
        batch_size=65_536, long_share=1_563 / c.steps, long_batch_size=32_768, checkpoint_every=200, eval_every=200
    )
    c.optimizer.update(name="lamb", schedule="linear_after_warmup", learning_rate=6e-3, warmup=0.2843)
    c.optimizer.update(long_learning_rate=4e-3, long_warmup=0.128)
    c.update(checkpoint_every=200, eval_every=200)
    return c


def novels() -> ConfigDict:
    r"""A small BERT for a laptop, from English novels: 99 of them, 14 million words.

    It has two layers more than BERT-tiny and is a little wider. It reads whole sentences, one text after the other, and
    no pairs. The wide initialisation and the high rate shorten the time until such a model knows more than word
    frequencies. The last tenth of the steps has rows of twice the length. Prepared by:
      python -m experiments.prepare_data --input='novels/*.txt' --split=sentences --vocab_size=8192 --sample_mb=100 \
          --output=corpora/novels

    Expected score: 0.372 of 24,313 held-out masked tokens (perplexity 35). The most frequent token is right in 0.151,
    the token most often seen between the two neighbours in 0.322. Where the row shows [MASK]: 0.310, 0.062 and 0.276
    (`experiments.benchmarks.masked_baselines --run=runs/bert_novels`). Cost: 60 minutes of processor time, about
    half an hour on two cores. Command:
      python -m experiments.pretrain --config=bert:novels --config.data=corpora/novels \
          --workdir=runs/bert_novels
    """
    c = fields("tiny")
    c.update(steps=5_600, batch_size=64, length=64, long_length=128, long_batch_size=32, objective="sentences")
    c.model.update(num_layers=4, hidden_size=192, num_heads=6, feed_forward_size=768)
    c.model.update(dropout=0.0, attention_dropout=0.0, initializer_range=0.05, max_positions=128)
    c.optimizer.update(name="adamw", schedule="linear_after_warmup", learning_rate=1.5e-3, warmup=0.05)
    c.update(log_every=20, eval_every=560, checkpoint_every=280)
    return c


def reviews() -> ConfigDict:
    r"""A small BERT for a laptop, from Korean film reviews: half a million of them, about ten words each.

    It has the size of `novels`. Several reviews share a row, and each sees only itself. Prepared from the unlabelled
    part of NSMC (https://github.com/e9t/nsmc), one review per document:
      cut -f4 rest_unlabelled.tsv | tail -n +2 | sed G > reviews.txt
      python -m experiments.prepare_data --input=reviews.txt --on_bad=skip --vocab_size=16000 --output=corpora/reviews

    Expected score: 0.295 of 14,015 held-out masked tokens (perplexity 97). The most frequent token is right in 0.179,
    the token most often seen between the two neighbours in 0.294: half a million short reviews are not much text. Where
    the row shows [MASK]: 0.225, 0.099 and 0.243 (`experiments.benchmarks.masked_baselines --run=runs/bert_reviews`).
    docs/results/reproductions.md compares fine-tuning from it and from scratch. Cost: 67 minutes of processor time.
    Command:
      python -m experiments.pretrain --config=bert:reviews --config.data=corpora/reviews \
          --workdir=runs/bert_reviews
    """
    c = novels()
    c.update(long_share=0.0, objective="documents", sequences=8)
    return c


def quickstart() -> ConfigDict:
    """The BERT of `make quickstart`: half the width of `toy`, in a smaller world, English and Korean.

    Expected score: masked tokens 0.529, next sentence 0.893; the quickstart's page shows the best possible, too.
    Cost: 85 seconds of one core. Command:
      python -m experiments.pretrain --config=bert:quickstart --workdir=runs/quickstart/bert
    """
    c = toy()
    c.update(steps=1_500, batch_size=32, length=64, sequences=4, eval_batches=20)
    c.model.update(hidden_size=64, feed_forward_size=256, max_positions=64)
    c.optimizer.learning_rate = 5e-3
    c.toyworld.update(topics=4, words=3, documents=6_000)
    return c


get_config = choose_recipe(toy, tiny, mini, small, medium, base, large, large_lamb, novels, reviews, quickstart)
