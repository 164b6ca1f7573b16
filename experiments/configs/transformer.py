"""The Transformer: recipes for training it on translation, from the paper's sizes to a small one for a laptop."""

from ml_collections import ConfigDict

from bert_elmo_jax.families.transformer.config import TransformerConfig
from bert_elmo_jax.runs.config_files import choose_recipe
from experiments.configs import pretraining


def fields(preset: str) -> ConfigDict:
    """Return the paper's recipe: Adam, its schedule, label smoothing, the mean of the last five checkpoints."""
    c = pretraining.fields("transformer", TransformerConfig.preset(preset))
    for name in ("start_id", "end_ids", "forbidden_ids", "forced_end_id"):  # from the data's vocabulary
        del c.model[name]
    pretraining.translate(c)
    c.update(average=5, keep=5)
    c.optimizer.update(name="adamw", schedule="noam", learning_rate=1.0, warmup=4_000.0)
    c.optimizer.update(b1=0.9, b2=0.98, eps=1e-9, decay=0.0, clip=1.0)
    return c


def toy() -> ConfigDict:
    """A Transformer for a laptop: English to Korean in the toy world, generated when the run starts.

    Command:
      python -m experiments.pretrain --config=experiments/configs/transformer.py:toy --workdir=runs/transformer_toy
    """
    c = fields("base")
    c.update(data="toyworld", steps=2_000, batch_size=16, length=64, target_length=64, sequences=8)
    c.model.update(num_layers=2, hidden_size=128, num_heads=4, feed_forward_size=256, max_positions=64, dropout=0.0)
    c.optimizer.update(schedule="linear_after_warmup", learning_rate=2e-3, warmup=0.05)
    c.toyworld.update(topics=4, words=3, documents=20_000, vocab_size=2_048)
    c.update(log_every=20, eval_every=250, checkpoint_every=100)
    return c


get_config = choose_recipe(toy)
