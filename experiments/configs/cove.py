"""CoVe: recipes for pretraining it by translation, from the paper's sizes to small ones for a laptop."""

from ml_collections import ConfigDict

from bert_elmo_jax.families.cove.config import CoveConfig
from bert_elmo_jax.runs.config_files import choose_recipe

from . import pretraining


def fields(preset: str) -> ConfigDict:
    """Return the fields of a run that translates."""
    c = pretraining.fields("cove", CoveConfig.preset(preset))
    for name in ("bos_id", "eos_id", "unk_id"):  # from the data's vocabulary
        del c.model[name]
    pretraining.translate(c)
    c.update(smoothing=0.0, beams=1)
    c.vectors = ""  # a file in the format of GloVe, word2vec or fastText; empty: random vectors
    return c


def toy() -> ConfigDict:
    """A CoVe for a laptop: English to Korean in a small toy world, generated when the run starts.

    The word vectors are random and frozen. No sentence returns in the data, so a held-out sentence is new.

    Expected score: 98 of 100 translations of held-out sentences are right, and 92 are the reference, because a sentence
    may have several right ones; BLEU 94.7, perplexity 1.04 per word. A linear probe tells the senses of *bank* apart in
    88 of 100 cases in layer 1 and 84 in layer 2 (a reader who knows the world exactly: 96), not at all in layer 0
    (`experiments.probe --what=toyworld --model=runs/cove_toy --words=bank`). Cost: five minutes of processor time.
    Command:
      python -m experiments.pretrain --config=cove:toy --workdir=runs/cove_toy
    """
    c = fields("toy")
    c.update(data="toyworld", steps=3_000, batch_size=64, length=24, target_length=24)
    c.optimizer.update(name="adamw", schedule="linear_after_warmup", learning_rate=5e-3, warmup=0.05)
    c.toyworld.update(topics=4, words=4, documents=20_000, vocab_size=8_192)
    c.update(log_every=20, eval_every=500, checkpoint_every=500)
    return c


def original() -> ConfigDict:
    r"""CoVe, the paper's sizes: a two-layer biLSTM of 300, GloVe 840B, a two-layer decoder.

    Paper and expected score: McCann et al. 2017, https://arxiv.org/abs/1708.00107: trained on 7 million English-German
    pairs (WMT 2017); BCN with GloVe, characters and these vectors gives the rows of the
    sweep `cove_table2`. The paper used stochastic gradient descent, whose rate began at 1 and was halved after each
    epoch from the first whose perplexity rose; here it is Adam with a cosine. Prepared by:
      python -m experiments.prepare_data --source=wmt.en --target=wmt.de --tokenizer=words --vocab_size=100000 \
          --output=data/wmt_words
    Cost: not measured here. Command:
      python -m experiments.pretrain --config=cove:original --config.data=data/wmt_words \
          --config.vectors=glove.840B.300d.txt --workdir=runs/cove
    """
    c = fields("original")
    c.update(steps=7 * 7_000_000 // 64, batch_size=64, length=75, target_length=75)
    c.optimizer.update(name="adamw", schedule="cosine", learning_rate=1e-3, warmup=0.01, decay=0.0, clip=5.0)
    return c


get_config = choose_recipe(toy, original)
