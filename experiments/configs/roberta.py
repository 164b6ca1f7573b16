"""RoBERTa: recipes for pretraining it on masked words."""

from ml_collections import ConfigDict, config_dict

from bert_elmo_jax.families.roberta.family import RobertaConfig
from bert_elmo_jax.runs.config_files import choose_recipe

from . import pretraining


def fields(preset: str) -> ConfigDict:
    """Return a recipe with full rows of whole sentences that cross documents, masked words and no pairs."""
    c = pretraining.fields("roberta", RobertaConfig.preset(preset))
    c.update(length=512, long_share=0.0, long_length=512)
    c.long_batch_size = 0  # 0: as in the first phase
    c.objective = "sentences"  # documents
    c.coefficients = ConfigDict({"mlm": 1.0})  # of the terms of the loss
    c.short_share = 0.0
    c.short_per = "document"  # chunk
    c.sequences = 1  # the largest number of examples that share a row
    c.copies = 0  # 0: new examples in every epoch; n: the same n epochs over and over
    c.masking = ConfigDict({"kind": "token", "rate": 0.15, "split": (0.8, 0.1, 0.1)})  # word, span, next
    c.masking.predictions = config_dict.placeholder(int)  # per row; empty: rate · length
    return c


def toy() -> ConfigDict:
    """A RoBERTa for a laptop: two layers, the toy world in English and Korean, generated when the run starts.

    Expected score: not measured here; the best possible is shown by `experiments.benchmarks.toyworld`.
    Cost: about 17 minutes of processor time, as for `bert:toy`.
    Command:
      python -m experiments.pretrain --config=roberta:toy --workdir=runs/roberta_toy
    """
    c = fields("base")
    c.update(data="toyworld", steps=9_000, batch_size=16, length=128, objective="documents", sequences=8)
    c.model.update(num_layers=2, hidden_size=128, num_heads=4, feed_forward_size=512, max_positions=128)
    c.model.update(initializer_range=0.05, dropout=0.0, attention_dropout=0.0)
    c.optimizer.update(name="adamw", schedule="linear_after_warmup", learning_rate=2e-3, warmup=0.05)
    c.toyworld.update(documents=20_000, vocab_size=8_192)
    c.update(log_every=20, eval_every=500, checkpoint_every=500)
    return c


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
    c = fields("base")
    c.update(batch_size=8_192, accumulate=64, steps=500_000)
    c.optimizer.update(name="adamw", schedule="linear_after_warmup", learning_rate=6e-4, warmup=0.048)
    return c


get_config = choose_recipe(toy, base)
