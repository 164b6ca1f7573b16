"""EuroBERT: recipes for pretraining it on masked words."""

from ml_collections import ConfigDict

from bert_elmo_jax.families.eurobert.family import EuroBertConfig
from bert_elmo_jax.runs.config_files import choose_recipe

from . import pretraining


def toy() -> ConfigDict:
    """A EuroBERT for a laptop: two layers, the toy world in English and Korean, generated when the run starts.

    Expected score: not measured here; the best possible is shown by `experiments.benchmarks.toyworld`.
    Cost: not measured here, more than `bert:toy`.
    Command:
      python -m experiments.pretrain --config=eurobert:toy --workdir=runs/eurobert_toy
    """
    c = pretraining.laptop(pretraining.masked("eurobert", EuroBertConfig.preset("210m")))
    c.model.key_value_heads = 2
    return c


def base() -> ConfigDict:
    r"""EuroBERT-210m: 12 layers of 768, 210 M parameters, rows of 2,048, half of the words masked.

    Paper: Boizard et al. 2025, https://arxiv.org/abs/2503.05500; its schedule, warm-up, stable, decay, is named there.
    Expected score: not measured here. The number of steps and the rate are this project's.
    Cost: not measured here; the paper trains on 5 T pieces.
    Command:
      python -m experiments.pretrain --config=eurobert:base --config.data=data/web \
          --workdir=runs/eurobert_base
    """
    c = pretraining.masked("eurobert", EuroBertConfig.preset("210m"))
    c.update(objective="documents", length=2048, long_length=2048, sequences=32, batch_size=512, accumulate=16)
    c.update(steps=500_000)
    c.masking.rate = 0.5
    c.model.update(remat=True, scan=True)
    c.optimizer.update(name="adamw", schedule="warmup_stable_decay", learning_rate=1e-4, warmup=0.004)
    return c


get_config = choose_recipe(toy, base)
