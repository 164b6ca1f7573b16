r"""Compare how a masked language model and a language model of the same size write, scored by the toy world.

Both continue the first sentence of a story with a second one. They are trained on the same text for the same steps:
  python -m experiments.pretrain --config=bert:quickstart --config.objective=documents \
      --config.toyworld.language=en --workdir=runs/bert_writing
  python -m experiments.pretrain --config=gpt:quickstart --config.toyworld.language=en \
      --workdir=runs/gpt_writing
  python -m experiments.benchmarks.writing --masked=runs/bert_writing --next=runs/gpt_writing
"""

from absl import flags

from bert_elmo_jax import load
from bert_elmo_jax.inference.toy_worlds import find_common_world
from bert_elmo_jax.report.results import format_table

from ..command_line.start import start
from ..studies.writing import compare_writing

FLAGS = flags.FLAGS


def define() -> None:
    """Define the flags."""
    flags.DEFINE_string("masked", None, "A run directory of a masked language model of the toy world.", required=True)
    flags.DEFINE_string("next", None, "A run directory of a language model of the toy world.", required=True)
    flags.DEFINE_enum("language", "en", ["en", "ko"], "Of the stories.")
    flags.DEFINE_integer("count", 200, "Sentences from each.", lower_bound=1)
    flags.DEFINE_integer("samples", 3, "Sentences to print.", lower_bound=0)
    flags.DEFINE_integer("seed", 0, "Of the words that are drawn.")


def main() -> None:
    """Print the table and some sentences."""
    world = find_common_world([FLAGS.masked, FLAGS.next], FLAGS.language)
    ways = compare_writing(load(FLAGS.masked), load(FLAGS.next), world, count=FLAGS.count, seed=FLAGS.seed)
    names = ["from", "possible", "true perplexity", "by the masked model", "by the language model", "distinct-2",
             "distinct-3", "words"]  # fmt: skip
    rows = [
        [row.way, f"{row.scores.possible:.3f}", f"{row.scores.true:.2f}", f"{row.by_masked:.2f}", f"{row.by_next:.2f}",
         *(f"{share:.3f}" for share in row.scores.distinct), f"{row.scores.length:.1f}"]
        for row in ways
    ]  # fmt: skip
    print(format_table([names, *rows]))
    for n in range(min(FLAGS.samples, FLAGS.count)):
        print(f"\n{ways[0].stories[n].opening}")
        print(format_table([[row.way, row.stories[n].following] for row in ways]))


if __name__ == "__main__":
    start("benchmarks.writing", define, main, stopped="stopped")
