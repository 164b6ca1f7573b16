"""BART: recipes for its pretraining, from the paper's sizes to a small one for a laptop."""

import dataclasses

from ml_collections import ConfigDict

from bert_elmo_jax.data.rows.denoising import Noise
from bert_elmo_jax.families.bart.config import BartConfig
from bert_elmo_jax.runs.config_files import choose_recipe

from . import pretraining


def fields(preset: str) -> ConfigDict:
    """Return the paper's recipe: spans of 30 % of the pieces become masks, and sentences are shuffled."""
    c = pretraining.fields("bart", BartConfig.preset(preset))
    for name in ("start_id", "end_ids", "forbidden_ids", "forced_start_id", "forced_end_id"):
        del c.model[name]  # from the data's vocabulary
    c.length = 512  # positions of a damaged text, and of the text
    c.sequences = 1  # the largest number of texts that share a row
    c.smoothing = 0.0  # of the targets of the loss
    c.noise = ConfigDict(dataclasses.asdict(Noise()))
    c.update(steps=500_000, batch_size=8_000, checkpoint_every=1_000)
    c.optimizer.update(name="adamw", schedule="linear_after_warmup", learning_rate=4e-4, warmup=10_000.0, clip=0.1)
    c.optimizer.update(b1=0.9, b2=0.98, eps=1e-6)
    return c


def toy() -> ConfigDict:
    r"""A BART for a laptop, on sentences of the toy world in English and Korean.

    The model repairs a damaged sentence: `load(run).generate(["The [MASK] ."])`.

    Expected score: 84 % of the pieces of held-out texts, perplexity 1.8; many masked spans have several right
    texts. Cost: five minutes of processor time. Command:
      python -m experiments.pretrain --config=bart:toy --workdir=runs/bart_toy
    """
    c = fields("base")
    c.update(data="toyworld", steps=1_000, batch_size=16, length=64, sequences=4)
    c.model.update(num_layers=2, hidden_size=128, num_heads=4, feed_forward_size=256, max_positions=64)
    c.model.update(dropout=0.0, attention_dropout=0.0, activation_dropout=0.0)
    c.model.initializer_range = 0.09  # Glorot's for this width; with 0.02 it takes far longer to learn to copy
    c.optimizer.update(learning_rate=2e-3, warmup=0.05, clip=1.0)
    c.noise.update(permute=False)
    c.toyworld.update(topics=4, words=3, documents=10_000, vocab_size=2_048)
    c.update(log_every=20, eval_every=250, checkpoint_every=100)
    return c


def base() -> ConfigDict:
    r"""BART base: 6 + 6 layers of 768, 139 M parameters.

    Paper and expected score: Lewis et al. 2020, https://aclanthology.org/2020.acl-main.703; table 1 has SQuAD 1.1 F1
    90.8 and MNLI 84.0 for a base model trained on books and Wikipedia for a million steps, with infilling. Cost: not
    published. Command:
      python -m experiments.pretrain --config=bart:base --config.data=data/wiki --workdir=runs/bart_base
    """
    return fields("base")


def large() -> ConfigDict:
    r"""BART large: 12 + 12 layers of 1024, 406 M parameters.

    Paper and expected score: Lewis et al. 2020, https://aclanthology.org/2020.acl-main.703, tables 2 and 3: SQuAD 1.1
    F1 94.6, MNLI 89.9, ROUGE-L 40.90 on CNN/DailyMail. The paper turns dropout off for the last tenth of the steps.
    Cost: not published. Command:
      python -m experiments.pretrain --config=bart:large --config.data=data/web --workdir=runs/bart_large
    """
    return fields("large")


get_config = choose_recipe(toy, base, large)
