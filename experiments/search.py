r"""Search over the fields of a config, at random or guided by earlier trials; bad trials end early.

  python -m experiments.search --over='optimizer.learning_rate=1e-5..1e-3,log;batch_size=16,32' --trials=20 \
      --workdir=runs/search -- --task=sst2 --train=sst2/train.tsv --dev=sst2/dev.tsv --init=runs/bert
  python -m experiments.search --program=pretrain --over='optimizer.learning_rate=1e-4..1e-2,log' --trials=12 \
      --score=held_out/mlm_perplexity --lowest --workdir=runs/rates -- --config=bert:toy

The program's own flags follow `--`, without --workdir. Each trial is an ordinary run with the fields of --over set: to
a number of a range (`low..high`; with `,log` every power of ten is equally likely) or to one of several values
separated by commas; quotes and parentheses protect the commas inside a value. The same command resumes a search that
was stopped or killed and draws the values that it would have drawn; until a trial has a score, the command and its
files may change, afterwards a search on other data is refused. WORKDIR has table.md, table.csv and report.html with all
trials, the best first. Needs the extra `search` (optuna). Exit status: 0 done, 2 refused, 75 stopped on request and
saved.
"""

import shlex
import sys

from absl import flags

from bert_elmo_jax.programs import show_program
from bert_elmo_jax.runs.config_files import PROGRAMS
from bert_elmo_jax.sweeps.search.run_search import run_search
from bert_elmo_jax.sweeps.search.trials import SAMPLERS

from .command_line.start import read_values, start

FLAGS = flags.FLAGS
NAMES = ("workdir", "over", "program", "trials", "sampler", "score", "lowest", "end_bad", "seed", "device", "language")


def define() -> None:
    """Define the flags."""
    flags.DEFINE_enum("program", "finetune", list(PROGRAMS), "The program of the trials.")
    flags.DEFINE_string("over", "", "Fields and their values: 'epochs=2..4;optimizer.learning_rate=1e-5..1e-3,log'.")
    flags.DEFINE_integer("trials", 20, "How many runs; a larger number later adds to them.", lower_bound=1)
    flags.DEFINE_string("workdir", None, "The folder of the trials and the results.", required=True)
    flags.DEFINE_enum("sampler", "bayesian", SAMPLERS, "How values are drawn: guided by earlier trials, or at random.")
    flags.DEFINE_string("score", None, "The figure to raise; by default the one that selects the program's best model.")
    flags.DEFINE_bool("lowest", False, "Lower the figure instead.")
    flags.DEFINE_bool("end_bad", True, "End a trial early if its score is below the others' median at that evaluation.")
    flags.DEFINE_enum("language", None, ["en", "ko"], "Of the report. Default: the locale's.")
    flags.DEFINE_integer("seed", 0, "Of the drawn values.", lower_bound=0)
    flags.DEFINE_string("device", "", "The number of a GPU or TPU chip; none for a CPU.")


def main(words: list[str]) -> int:
    """Run or resume the search over a program's flags."""
    command = f"{show_program('search')} {shlex.join(sys.argv[1:])}"
    return run_search(words, command=command, **read_values(NAMES))


if __name__ == "__main__":
    headings = {"program": "The search", "workdir": "The trials"}
    start("search", define, main, headings, words=True, stopped="stopped; the same command resumes")
