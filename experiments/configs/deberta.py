"""DeBERTa: recipes for pretraining it on replaced pieces, as version 3; other objectives mask words."""

from ml_collections import ConfigDict

from bert_elmo_jax.families.deberta.config import DebertaConfig
from bert_elmo_jax.runs.config_files import choose_recipe

from . import pretraining


def fields(preset: str) -> ConfigDict:
    """Return the recipe of version 3: the discriminator adds a table of its own to the generator's embeddings."""
    c = pretraining.replaced("deberta", DebertaConfig.preset(preset, embedding_difference=True))
    c.update(batch_size=8_192, accumulate=64, steps=500_000)
    c.optimizer.update(learning_rate=6e-4, b2=0.98)
    return c


def toy() -> ConfigDict:
    """A DeBERTa for a laptop: two layers, the toy world in English and Korean, generated when the run starts.

    Its generator has one layer. For masked words without a generator: `--config.objective=documents
    --config.model.embedding_difference=False`.

    Expected score: not measured here; `held_out/mlm_accuracy` is the generator's, and the best possible one is shown by
    `experiments.benchmarks.toyworld`. Cost: not measured here, about twice `bert:toy` per step.
    Command:
      python -m experiments.pretrain --config=deberta:toy --workdir=runs/deberta_toy
    """
    c = pretraining.laptop(fields("base"))
    c.update(objective="replaced", texts="documents", accumulate=1)
    c.model.position_buckets = 32
    return c


def xsmall() -> ConfigDict:
    r"""DeBERTa-v3-xsmall: 12 layers of 384, 22 M parameters and 49 M of word embeddings, a generator of 6 layers.

    Paper: He et al. 2023, https://arxiv.org/abs/2111.09543. Expected score: the released model has MNLI-m 88.1, SQuAD
    2.0 F1 84.8.
    Cost: 2.1 T pieces, so a pod of accelerators for weeks. Command:
      python -m experiments.pretrain --config=deberta:xsmall --config.data=data/wiki \
          --workdir=runs/deberta_xsmall
    """
    return fields("xsmall")


def small() -> ConfigDict:
    r"""DeBERTa-v3-small: 6 layers of 768, 44 M parameters and 98 M of word embeddings, a generator of 3 layers.

    Paper: He et al. 2023, https://arxiv.org/abs/2111.09543. Expected score: the released model has MNLI-m 88.3, SQuAD
    2.0 F1 82.8.
    Cost: 2.1 T pieces, so a pod of accelerators for weeks. Command:
      python -m experiments.pretrain --config=deberta:small --config.data=data/wiki \
          --workdir=runs/deberta_small
    """
    return fields("small")


def base() -> ConfigDict:
    r"""DeBERTa-v3-base: 12 layers of 768, 86 M parameters and 98 M of word embeddings, a generator of 6 layers.

    Paper: He et al. 2023, https://arxiv.org/abs/2111.09543. Expected score: the released model has MNLI-m 90.6, SQuAD
    2.0 F1 88.4.
    Cost: 2.1 T pieces, so a pod of accelerators for weeks. Command:
      python -m experiments.pretrain --config=deberta:base --config.data=data/wiki \
          --workdir=runs/deberta_base
    """
    return fields("base")


get_config = choose_recipe(toy, xsmall, small, base)
