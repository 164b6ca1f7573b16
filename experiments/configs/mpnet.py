"""MPNet: recipes for pretraining it on masked words."""

from ml_collections import ConfigDict

from bert_elmo_jax.families.mpnet.family import MPNetConfig
from bert_elmo_jax.runs.config_files import choose_recipe

from . import pretraining


def toy() -> ConfigDict:
    """An MPNet for a laptop: two layers, the toy world in English and Korean, generated when the run starts.

    Expected score: not measured here; the best possible is shown by `experiments.benchmarks.toyworld`.
    Cost: not measured here, about as much as `roberta:toy`.
    Command:
      python -m experiments.pretrain --config=mpnet:toy --workdir=runs/mpnet_toy
    """
    return pretraining.laptop(pretraining.masked("mpnet", MPNetConfig.preset("base")))


def base() -> ConfigDict:
    r"""MPNet-base: 12 layers of 768, 110 M parameters, on masked words instead of the paper's permuted ones.

    Paper: Song et al. 2020, https://arxiv.org/abs/2004.09297, which trains with RoBERTa's batches, rate and warm-up.
    Expected score: not measured; the paper's objective, permuted words, is not here.
    Cost: 2.1 T pieces, so a pod of accelerators for weeks.
    Command:
      python -m experiments.pretrain --config=mpnet:base --config.data=data/wiki \
          --workdir=runs/mpnet_base
    """
    c = pretraining.masked("mpnet", MPNetConfig.preset("base"))
    c.update(batch_size=8_192, accumulate=64, steps=500_000)
    c.optimizer.update(name="adamw", schedule="linear_after_warmup", learning_rate=6e-4, warmup=0.048)
    return c


get_config = choose_recipe(toy, base)
