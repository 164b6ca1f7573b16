"""The Transformer: recipes for training it on translation, from the paper's sizes to a small one for a laptop."""

from ml_collections import ConfigDict

from bert_elmo_jax.families.transformer.config import TransformerConfig
from bert_elmo_jax.runs.config_files import choose_recipe

from . import pretraining


def fields(preset: str) -> ConfigDict:
    """Return the paper's recipe: its schedule, label smoothing, the mean of the last five checkpoints."""
    c = pretraining.fields("transformer", TransformerConfig.preset(preset))
    for name in ("start_id", "end_ids", "forbidden_ids", "forced_end_id"):  # from the data's vocabulary
        del c.model[name]
    pretraining.translate(c)
    c.update(average=5, keep=5)
    # The paper's batches have about 25,000 pieces on each side; a row holds 256.
    c.update(steps=100_000, batch_size=98, length=256, target_length=256, sequences=16, checkpoint_every=1_000)
    c.optimizer.update(name="adamw", schedule="noam", learning_rate=1.0, warmup=4_000.0)
    c.optimizer.update(b1=0.9, b2=0.98, eps=1e-9, decay=0.0, clip=1e9)  # the paper does not clip
    return c


def toy() -> ConfigDict:
    r"""A Transformer for a laptop: English to Korean in the toy world, generated when the run starts.

    No sentence returns in the data, so a held-out sentence is new. A sentence may have several right translations
    (`toyworld.translations`): from Korean to English, a third of the references differ from the translation in number.

    Expected score: of 400 held-out sentences 99.8 % are translated right, 93 % like the reference, BLEU 95.8; Korean to
    English (`--config.reverse=true`) 100 %, 66 %, BLEU 86.7. Cost: two minutes of processor time. Command:
      python -m experiments.pretrain --config=transformer:toy --workdir=runs/transformer_toy
    """
    c = fields("base")
    c.update(data="toyworld", steps=1_000, batch_size=16, length=64, target_length=64, sequences=8)
    c.model.update(num_layers=2, hidden_size=128, num_heads=4, feed_forward_size=256, max_positions=64, dropout=0.0)
    c.optimizer.update(schedule="linear_after_warmup", learning_rate=2e-3, warmup=0.05, clip=1.0)
    c.toyworld.update(topics=4, words=3, documents=20_000, vocab_size=2_048)
    c.update(log_every=20, eval_every=250, checkpoint_every=50, translations=400)
    return c


def sts() -> ConfigDict:
    r"""A small Transformer for ten thousand real pairs: the rows of STS-B and KorSTS, English to Korean.

    Prepared as docs/guides/translate.md says. Expected score: BLEU 6.1 and chrF 15.3 on 505 held-out pairs: too few
    to learn to translate. Cost: about a quarter of an hour of processor time. Command:
      python -m experiments.pretrain --config=transformer:sts --config.data=corpora/sts \
          --workdir=runs/sts
    """
    c = fields("base")
    c.update(steps=1_500, batch_size=16, length=128, target_length=128, sequences=16)
    c.model.update(num_layers=2, hidden_size=128, num_heads=4, feed_forward_size=512, max_positions=128, dropout=0.2)
    c.optimizer.update(schedule="linear_after_warmup", learning_rate=2e-3, warmup=0.1, clip=1.0)
    c.update(log_every=20, eval_every=250, checkpoint_every=50, translations=1_000)
    return c


def base() -> ConfigDict:
    r"""The base Transformer: 6 + 6 layers of 512, 65 M parameters with the paper's vocabulary.

    Paper and expected score: Vaswani et al. 2017, https://arxiv.org/abs/1706.03762: BLEU 27.3 on WMT 2014 English to
    German (table 2). Cost: 12 hours on eight P100 GPUs in the paper. The paper's vocabulary has about 37,000 pieces.
    Prepare the data with `prepare_data --source=wmt.en --target=wmt.de --vocab_size=37000`. Command:
      python -m experiments.pretrain --config=transformer:base --config.data=data/wmt \
          --workdir=runs/transformer_base
    """
    return fields("base")


def big() -> ConfigDict:
    r"""The big Transformer: 6 + 6 layers of 1024, 213 M parameters with the paper's vocabulary.

    Paper and expected score: Vaswani et al. 2017, https://arxiv.org/abs/1706.03762: BLEU 28.4 on WMT 2014 English to
    German (table 2); the mean of the last 20 checkpoints. Cost: 3.5 days on eight P100 GPUs in the paper. Command:
      python -m experiments.pretrain --config=transformer:big --config.data=data/wmt \
          --workdir=runs/transformer_big
    """
    c = fields("big")
    c.update(steps=300_000, average=20, keep=20)
    return c


get_config = choose_recipe(toy, sts, base, big)
