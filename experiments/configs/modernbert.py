"""ModernBERT: recipes for pretraining it, from the sizes of the paper to a small one for a laptop."""

from ml_collections import ConfigDict

from bert_elmo_jax.families.modernbert.config import ModernBertConfig
from bert_elmo_jax.runs.config_files import choose_recipe

from . import pretraining


def fields(preset: str) -> ConfigDict:
    """Return the paper's recipe as far as a run has it: one phase of rows of 1,024, 30 percent masked.

    The paper's other phases are 250 billion tokens at 8,192 with a global theta of 160,000 (the first phase has 10,000
    in all layers), and 50 billion with a rate that decays to 0. It also raises the batch from 768 rows in the first 50
    billion tokens, trains by StableAdamW, and has a dropout of 0.1 on the outputs of attention. Here the rate warms up
    over 3 billion tokens and stays, and nothing is dropped.
    """
    c = pretraining.masked("modernbert", ModernBertConfig.preset(preset, max_positions=1024, global_theta=10_000.0))
    c.update(length=1024, long_length=8192, sequences=16)
    c.objective = "documents"  # sentences
    c.masking.rate = 0.3
    c.optimizer.update(name="adamw", schedule="constant", learning_rate=8e-4, warmup=640.0, b2=0.98)
    c.optimizer.decay = 1e-5 / 8e-4  # in the paper weights shrink by 1e-5 in each step; here, by the rate times this
    c.model.update(remat=True, scan=True)
    return c


def toy() -> ConfigDict:
    """A ModernBERT for a laptop: the toy world in English and Korean, generated when the run starts.

    Four layers of 128, every third global, a window of 16 pieces to each side. Data, vocabulary, number of steps, and
    so the best possible scores, are as in `bert:toy`.

    Expected score: not measured; the best possible for masked words at a rate of 15 percent is 0.654. Cost: not
    measured, above the 17 minutes of processor time of `bert:toy`. Command:
      python -m experiments.pretrain --config=modernbert:toy --workdir=runs/modernbert_toy
    """
    c = fields("base")
    c.update(data="toyworld", steps=9_000, batch_size=16, length=128, sequences=8)
    c.model.update(num_layers=4, hidden_size=128, num_heads=4, feed_forward_size=256, max_positions=128)
    c.model.update(local_attention=32, initializer_range=0.05, remat=False, scan=False)
    c.optimizer.update(schedule="linear_after_warmup", learning_rate=2e-3, warmup=0.05)
    c.toyworld.update(documents=20_000, vocab_size=8_192)
    c.update(log_every=20, eval_every=500, checkpoint_every=500)
    return c


def base() -> ConfigDict:
    r"""ModernBERT-base: 22 layers of 768, 149 M parameters, the first phase of the paper.

    Paper and expected score: Warner et al. 2024, https://arxiv.org/abs/2412.13663: GLUE 88.4 on average (table 1, after
    all phases). Cost: 194 hours on 8 H100 for all phases in the paper; the first has 1.7 trillion tokens.
    Command:
      python -m experiments.pretrain --config=modernbert:base --config.data=data/web \
          --workdir=runs/modernbert_base
    """
    c = fields("base")
    c.update(batch_size=4_608, steps=364_000)  # 1.7 trillion tokens
    return c


def large() -> ConfigDict:
    r"""ModernBERT-large: 28 layers of 1024, 395 M parameters, the first phase of the paper.

    Paper and expected score: Warner et al. 2024, https://arxiv.org/abs/2412.13663: GLUE 90.4 on average (table 1, after
    all phases). Cost: 425 hours on 8 H100 for all phases in the paper, which lowers the rate to 5e-5 after 900 billion
    tokens of the first; here it stays. Command:
      python -m experiments.pretrain --config=modernbert:large --config.data=data/web \
          --workdir=runs/modernbert_large
    """
    c = fields("large")
    c.update(batch_size=4_928, steps=340_600)
    c.optimizer.update(learning_rate=5e-4, warmup=400.0, decay=1e-5 / 5e-4)
    return c


get_config = choose_recipe(toy, base, large)
