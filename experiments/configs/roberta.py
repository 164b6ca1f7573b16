"""RoBERTa: recipes for pretraining it on masked words."""

from ml_collections import ConfigDict

from bert_elmo_jax.families.roberta.family import RobertaConfig
from bert_elmo_jax.runs.config_files import choose_recipe

from . import pretraining


def toy() -> ConfigDict:
    """A RoBERTa for a laptop: two layers, the toy world in English and Korean, generated when the run starts.

    Expected score: not measured here; the best possible is shown by `experiments.benchmarks.toyworld`.
    Cost: about 17 minutes of processor time, as for `bert:toy`.
    Command:
      python -m experiments.pretrain --config=roberta:toy --workdir=runs/roberta_toy
    """
    return pretraining.laptop(pretraining.masked("roberta", RobertaConfig.preset("base")))


def base() -> ConfigDict:
    r"""RoBERTa-base: 12 layers of 768, 125 M parameters, rows of whole sentences, batches of 8,192 rows.

    Paper: Liu et al. 2019, https://arxiv.org/abs/1907.11692; batches, rate and warm-up are from table 9.
    Expected score: better than in table 2, with a sixteenth of the rows and BERT's corpus (full sentences: SQuAD 2.0
    79.1, MNLI 84.7, SST-2 92.5). Adam's betas, decay and clipping are this project's.
    Cost: 2.1 T pieces, so a pod of accelerators for weeks; 25,000 steps cost a twentieth.
    Command:
      python -m experiments.pretrain --config=roberta:base --config.data=data/wiki \
          --workdir=runs/roberta_base
    """
    c = pretraining.masked("roberta", RobertaConfig.preset("base"))
    c.update(batch_size=8_192, accumulate=64, steps=500_000)
    c.optimizer.update(name="adamw", schedule="linear_after_warmup", learning_rate=6e-4, warmup=0.048)
    return c


get_config = choose_recipe(toy, base)
