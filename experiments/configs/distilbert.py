"""DistilBERT: recipes for pretraining it, on masked words alone or with a teacher."""

from ml_collections import ConfigDict

from bert_elmo_jax.families.distilbert.family import DistilBertConfig
from bert_elmo_jax.runs.config_files import choose_recipe

from . import pretraining


def toy() -> ConfigDict:
    """A DistilBERT for a laptop: two layers, the toy world in English and Korean, generated when the run starts.

    Expected score: not measured here; the best possible is shown by `experiments.benchmarks.toyworld`.
    Cost: about 17 minutes of processor time, as for `bert:toy`.
    Command:
      python -m experiments.pretrain --config=distilbert:toy --workdir=runs/distilbert_toy
    """
    return pretraining.laptop(pretraining.masked("distilbert", DistilBertConfig.preset("base")))


def base() -> ConfigDict:
    r"""DistilBERT-base: 6 layers of 768, 66 M parameters, masked words without a teacher.

    Paper and expected score: Sanh et al. 2019, https://arxiv.org/abs/1910.01108: GLUE 77.0 on average with a teacher
    (table 1), 0.31 to 2.96 points less without one of its three losses (table 4). Cost: 90 hours on eight V100 GPUs in
    the paper. Batches have 4,000 rows, by accumulation; the number of steps is ours. Command:
      python -m experiments.pretrain --config=distilbert:base --config.data=data/wiki \
          --workdir=runs/distilbert_base
    """
    c = pretraining.masked("distilbert", DistilBertConfig.preset("base"))
    c.update(batch_size=4_000, accumulate=50, steps=100_000)
    c.optimizer.update(name="adamw", schedule="linear_after_warmup", learning_rate=5e-4, warmup=0.05)
    return c


def distil_toy() -> ConfigDict:
    r"""A DistilBERT of one layer, which learns from the two of `bert:toy` on the same text.

    Expected score: not measured here at this length. Cost: a step takes about as long as one of `bert:toy`, which
    must be in `runs/bert_toy`. Command:
      python -m experiments.pretrain --config=distilbert:distil_toy \
          --config.teacher=runs/bert_toy --config.data=runs/bert_toy/toyworld --workdir=runs/distil_toy
    """
    c = pretraining.distil(toy())
    c.model.num_layers = 1
    return c


def distil() -> ConfigDict:
    r"""DistilBERT-base as in the paper: half of BERT-base's layers, every second one copied at the start.

    Paper and expected score: Sanh et al. 2019, https://arxiv.org/abs/1910.01108: GLUE 77.0 on average (table 1), 97 %
    of BERT-base. Temperature and coefficients are from its training script. Cost: 90 hours on eight V100 GPUs in
    the paper. Prepare the data with `--tokenizer=google-bert/bert-base-uncased`. Command:
      python -m experiments.pretrain --config=distilbert:distil --config.data=data/wiki \
          --config.teacher=google-bert/bert-base-uncased --workdir=runs/distil
    """
    return pretraining.distil(base())


get_config = choose_recipe(toy, base, distil_toy, distil)
