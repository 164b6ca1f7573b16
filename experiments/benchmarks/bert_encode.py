r"""Encoding 1,000 sentences of mixed length, compared with the usual loop in PyTorch.

  python -m experiments.benchmarks.bert_encode --peers=/path/to/python
  python -m experiments.benchmarks.bert_encode --peers=/path/to/python --sentences=sentences.txt

The same weights (random, BERT-base) and the same sentences in their given order. The other side tokenises 32 at a time,
pads to the longest of them and runs the model without gradients. The two run in turn; medians, and the median of the
pairs' ratios (aim: 0.7). Both sides run once beforehand: ours compiles then, and that time is printed too. Without
--sentences they come from the toy world, with lengths spread as in running text.
"""

import json
import tempfile
from functools import partial
from itertools import islice
from pathlib import Path

import jax
import numpy as np
from absl import flags

from bert_elmo_jax import load
from bert_elmo_jax.data.corpora.text_files import read_lines
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.text import train_wordpiece
from bert_elmo_jax.toyworld import ToyWorld
from experiments.benchmarks._paired import in_turn, median_seconds, peer, seconds
from experiments.benchmarks.bert import FAMILY, make_config, write_huggingface
from experiments.command_line.start import start

FLAGS = flags.FLAGS


def define() -> None:
    """Define the flags."""
    flags.DEFINE_string("peers", None, "A Python interpreter with torch and transformers; without it ours runs alone.")
    flags.DEFINE_string("sentences", None, "A file of sentences, one per line; the first --count are used.")
    flags.DEFINE_integer("count", 1000, "The number of sentences.")
    flags.DEFINE_string("preset", "base", "Size of the model.")
    flags.DEFINE_integer("batch_size", 32, "Of both sides.")
    flags.DEFINE_integer("repeats", 3, "Timed runs of each side.")


def mixed_sentences(count: int) -> list[str]:
    """Return sentences of 5 to about 100 words: the toy world's, joined to log-normal lengths."""
    random, world = np.random.default_rng(0), ToyWorld("en")
    words = (word for number in range(count) for word in world.document(number).text.split())
    return [" ".join(islice(words, int(n))) for n in np.clip(random.lognormal(2.8, 0.6, count), 5, 100)]


def main() -> None:
    """Make the folder that both sides load, and measure in turn."""
    sentences = read_lines(FLAGS.sentences)[: FLAGS.count] if FLAGS.sentences else mixed_sentences(FLAGS.count)
    with tempfile.TemporaryDirectory() as folder:
        config = make_config(FLAGS.preset)
        write_huggingface(folder, init_params(FAMILY, config, jax.random.key(0)), config)
        train_wordpiece(sentences, 8192).save(folder)
        asked = {"sentences": sentences, "batch_size": FLAGS.batch_size}
        Path(folder, "sentences.json").write_text(json.dumps(asked), encoding="utf-8")
        encoder = load(folder)
        ours = partial(encoder.encode, sentences, batch_size=FLAGS.batch_size, progress=False)
        first = seconds(ours)
        longest = max(len(sentence.split()) for sentence in sentences)
        print(f"{len(sentences)} sentences of up to {longest} words, BERT-{FLAGS.preset}, {FLAGS.batch_size} at a time")
        if not FLAGS.peers:
            print(f"ours {median_seconds(ours, FLAGS.repeats):.2f} s (the first, with compilation, {first:.2f} s)")
            return
        with peer(FLAGS.peers, "encode", "PyTorch", folder) as (theirs, about):
            mine = encoder.encode(sentences[:4]).last[:, 0, :4]
            assert np.allclose(about["vectors"], mine, atol=1e-4), "the two sides do not compute the same"
            found = in_turn(partial(theirs, "encode"), ours, FLAGS.repeats)
        print(
            f"PyTorch {found.theirs:.2f} s, ours {found.ours:.2f} s, ratio {found.ratio:.3f}   ({about['about']})\n"
            f"  our first run, with compilation: {first:.2f} s"
        )


if __name__ == "__main__":
    start("benchmarks.bert_encode", define, main, stopped="stopped")
