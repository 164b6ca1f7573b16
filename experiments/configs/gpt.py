"""GPT: recipes for pretraining GPT-1 and GPT-2, which predict each piece from those before it."""

from ml_collections import ConfigDict

from bert_elmo_jax.families.gpt.config import GptConfig
from bert_elmo_jax.runs.config_files import choose_recipe

from . import pretraining


def fields(preset: str) -> ConfigDict:
    """Return a recipe with packed rows of whole documents, or of full length for the objective `sentences`."""
    model = GptConfig.preset(preset)
    c = pretraining.masked("gpt", model)
    c.update(length=model.max_positions, long_length=model.max_positions)
    c.objective = "documents"  # sentences: full rows, across the ends of documents
    c.coefficients = ConfigDict({"lm": 1.0})  # of the terms of the loss
    c.sequences = 8  # the largest number of documents that share a row; none sees another
    c.masking.kind = "next"  # a GPT masks no pieces
    c.optimizer.update(name="adamw", schedule="cosine", learning_rate=2.5e-4, warmup=2_000.0)
    return c


def toy() -> ConfigDict:
    """A GPT-2 for a laptop: two layers, the toy world in English and Korean, generated when the run starts.

    Expected score: perplexity 4.70 per piece of whole held-out documents; the true one is 4.66
    (`python -m experiments.benchmarks.toyworld --run=runs/gpt_toy`). Cost: 17 minutes of processor time. Command:
      python -m experiments.pretrain --config=gpt:toy --workdir=runs/gpt_toy
    """
    c = fields("gpt2")
    c.update(data="toyworld", steps=3_000, batch_size=32, length=128, long_length=128)
    c.model.update(num_layers=2, hidden_size=128, num_heads=4, feed_forward_size=512, max_positions=128)
    c.model.update(initializer_range=0.05, dropout=0.0, embedding_dropout=0.0, attention_dropout=0.0)
    c.optimizer.update(schedule="linear_after_warmup", learning_rate=2e-3, warmup=0.05)
    c.toyworld.update(topics=4, words=4, documents=40_000, vocab_size=8_192)
    c.update(log_every=20, eval_every=500, checkpoint_every=500)
    return c


def quickstart() -> ConfigDict:
    """A GPT-2 of the size, world, steps and rows of `bert:quickstart`, to compare the two.

    Expected score: 95 % of its second sentences in English are possible, see docs/concepts/bert_does_not_write.md.
    Cost: about two minutes of one core. Command:
      python -m experiments.pretrain --config=gpt:quickstart --workdir=runs/gpt_quickstart
    """
    c = toy()
    c.update(steps=1_500, batch_size=32, length=64, long_length=64, sequences=4, eval_batches=20)
    c.model.update(hidden_size=64, feed_forward_size=256, max_positions=64)
    c.optimizer.learning_rate = 5e-3
    c.toyworld.update(topics=4, words=3, documents=6_000)
    return c


def novels() -> ConfigDict:
    r"""A small GPT for a laptop, from English novels: the size, corpus and rows of `bert:novels`.

    Every piece is predicted, not one in seven, so a step costs nearly twice as much and there are half as many.
    Prepared by the command of `bert:novels`.
    Expected score: perplexity 76.2 per piece of held-out text and 134 per word, where a Kneser-Ney 5-gram model of the
    words has 122 (`python -m experiments.benchmarks.kneser_ney --data=corpora/novels_words --run=runs/gpt_novels`).
    Cost: an hour of processor time. Command:
      python -m experiments.pretrain --config=gpt:novels --config.data=corpora/novels \
          --workdir=runs/gpt_novels
    """
    c = fields("gpt2")
    c.update(steps=2_800, batch_size=64, length=64, long_length=128, long_share=0.1, long_batch_size=32)
    c.objective = "sentences"
    c.model.update(num_layers=4, hidden_size=192, num_heads=6, feed_forward_size=768, max_positions=128)
    c.model.update(initializer_range=0.05, dropout=0.0, embedding_dropout=0.0, attention_dropout=0.0)
    c.optimizer.update(schedule="linear_after_warmup", learning_rate=1.5e-3, warmup=0.05)
    c.update(log_every=20, eval_every=560, checkpoint_every=280)
    return c


def gpt1() -> ConfigDict:
    r"""GPT-1: 12 layers of 768, 117 M parameters, rows of 512 pieces.

    Paper and expected score: Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training": 18.4
    per piece on BooksCorpus; 74.7 on average of the tasks in table 5. Batches of 64 rows; 100 epochs of BooksCorpus are
    about three million steps. Cost: a month on eight GPUs in the paper. Command:
      python -m experiments.pretrain --config=gpt:gpt1 --config.data=data/books \
          --workdir=runs/gpt1
    """
    c = fields("gpt")
    c.update(batch_size=64, steps=3_000_000, objective="sentences", sequences=1)
    return c


def small() -> ConfigDict:
    r"""GPT-2 small: 12 layers of 768, 124 M parameters, rows of 1,024 pieces.

    Paper and expected score: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners": 29.4 per word
    on WikiText-2 and 35.1 on LAMBADA, without training on either (table 3). Batches of 512 rows; the number of steps
    and the rate are ours. Cost: not measured here. Prepare the data with `--tokenizer=openai-community/gpt2`. Command:
      python -m experiments.pretrain --config=gpt:small --config.data=data/web \
          --workdir=runs/gpt2_small
    """
    c = fields("gpt2")
    c.update(batch_size=512, accumulate=32, steps=600_000)
    c.optimizer.update(learning_rate=6e-4)
    return c


get_config = choose_recipe(toy, quickstart, novels, gpt1, small)
