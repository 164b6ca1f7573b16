"""ELECTRA: recipes for pretraining a discriminator with its generator."""

from ml_collections import ConfigDict

from bert_elmo_jax.families.electra.config import ElectraConfig
from bert_elmo_jax.runs.config_files import choose_recipe

from . import pretraining


def toy() -> ConfigDict:
    """An ELECTRA for a laptop: two layers, the toy world in English and Korean, generated when the run starts.

    Its embeddings are as wide as its layers, and its generator is half as wide.

    Expected score: not measured here; `held_out/mlm_accuracy` is the generator's, and the best possible one is shown by
    `experiments.benchmarks.toyworld`. Cost: not measured here, about half more than `bert:toy` per step.
    Command:
      python -m experiments.pretrain --config=electra:toy --workdir=runs/electra_toy
    """
    c = pretraining.replaced("electra", ElectraConfig.preset("small"))
    c.update(data="toyworld", steps=9_000, batch_size=16, length=128, texts="documents", sequences=8)
    c.model.update(num_layers=2, hidden_size=128, num_heads=4, feed_forward_size=512, embedding_size=128)
    c.model.update(max_positions=128, initializer_range=0.05, dropout=0.0, attention_dropout=0.0, generator_size=0.5)
    c.optimizer.update(learning_rate=2e-3, warmup=0.05)
    c.toyworld.update(documents=20_000, vocab_size=8_192)
    c.update(log_every=20, eval_every=500, checkpoint_every=500)
    return c


def small() -> ConfigDict:
    r"""ELECTRA-small: 12 layers of 256, embeddings of 128, 14 M parameters, a generator a quarter as wide.

    Paper and expected score: Clark et al. 2020, https://arxiv.org/abs/2003.10555, table 1: GLUE 79.9 on average, dev
    (BERT-small 75.1). Cost: four days on one V100 GPU in the paper. Command:
      python -m experiments.pretrain --config=electra:small --config.data=data/wiki \
          --workdir=runs/electra_small
    """
    c = pretraining.replaced("electra", ElectraConfig.preset("small"))
    c.update(length=128, batch_size=128, steps=1_000_000)
    c.optimizer.learning_rate = 5e-4
    return c


def base() -> ConfigDict:
    r"""ELECTRA-base: 12 layers of 768, 110 M parameters, a generator a third as wide.

    Paper and expected score: Clark et al. 2020, https://arxiv.org/abs/2003.10555, table 1: GLUE 85.1 on average, dev
    (BERT-base 82.2). Cost: four days on 16 TPU v3 chips in the paper. Command:
      python -m experiments.pretrain --config=electra:base --config.data=data/wiki \
          --workdir=runs/electra_base
    """
    c = pretraining.replaced("electra", ElectraConfig.preset("base"))
    c.update(batch_size=256, steps=766_000)
    c.optimizer.learning_rate = 2e-4
    return c


get_config = choose_recipe(toy, small, base)
