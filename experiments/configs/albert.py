"""ALBERT: recipes for pretraining it on masked spans and the order of two texts."""

from ml_collections import ConfigDict

from bert_elmo_jax.families.albert.family import AlbertConfig
from bert_elmo_jax.runs.config_files import choose_recipe

from . import pretraining


def fields(preset: str) -> ConfigDict:
    """Return the paper's recipe: two texts in their order or swapped, and masked spans of words."""
    c = pretraining.masked("albert", AlbertConfig.preset(preset))
    c.update(objective="sop", short_share=0.1)  # nsp, sentences, documents
    c.coefficients.nsp = 1.0  # of the order of two texts
    c.masking.kind = "span"
    return c


def toy() -> ConfigDict:
    """An ALBERT for a laptop: two layers with the same parameters, the toy world in English and Korean.

    Expected score: not measured here; the best possible is shown by `experiments.benchmarks.toyworld`.
    Cost: not measured here, about as much per step as `bert:toy`.
    Command:
      python -m experiments.pretrain --config=albert:toy --workdir=runs/albert_toy
    """
    c = pretraining.laptop(fields("base"))
    c.update(objective="sop")
    c.model.embedding_size = 128
    c.masking.kind = "token"
    return c


def base() -> ConfigDict:
    r"""ALBERT-base: 12 layers of 768, 12 M parameters, rows of 512, batches of 4,096.

    Paper: Lan et al. 2019, https://arxiv.org/abs/1909.11942; batches, steps and LAMB's rate are from
    section 4.1. Here spans are longer than the paper's (up to 10 words instead of 3), rows have one length, and the
    activation is that of the second release, without dropout.
    Expected score: not measured here.
    Cost: 262 G pieces, so days on a small pod of accelerators.
    Command:
      python -m experiments.pretrain --config=albert:base --config.data=data/wiki \
          --workdir=runs/albert_base
    """
    c = fields("base")
    c.update(batch_size=4_096, accumulate=16, steps=125_000)
    c.optimizer.update(name="lamb", schedule="linear_after_warmup", learning_rate=1.76e-3, warmup=3_125.0)
    return c


get_config = choose_recipe(toy, base)
