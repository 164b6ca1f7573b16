r"""Search the fields of a config: by chance, or by what earlier runs came to; bad runs are ended early.

  python -m experiments.search --over='optimizer.learning_rate=1e-5..1e-3,log;batch_size=16,32' --trials=20 \
      --workdir=runs/search -- --task=sst2 --train=sst2/train.tsv --dev=sst2/dev.tsv --init=runs/bert
  python -m experiments.search --program=pretrain_bert --over='optimizer.learning_rate=1e-4..1e-2,log' --trials=12 \
      --score=held_out/mlm_perplexity --lowest --workdir=runs/rates -- --config=experiments/configs/bert_toy.py

Behind `--` stands the program's own command, without --workdir; each trial is an ordinary run of it, with the fields of
--over added: a range of numbers (`low..high`, with `,log` each tenfold counts alike) or values with commas between
them, in quotes or parentheses where they have some of their own. What is done is kept in WORKDIR/search.journal: the
same command goes on where a stopped or killed search was, and draws what it would have drawn; until a trial has come to
something, the command may still be changed. table.md, table.csv and report.html have all trials, the best first. Needs
the extra `search` (optuna). Exit status: 0 done, 2 refused, 75 asked to stop and saved.
"""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from absl import flags
from ml_collections import ConfigDict

from bert_elmo_jax import train
from bert_elmo_jax.data.tasks.task import task_named
from bert_elmo_jax.runs.config_files import (
    CONFIGS,
    NAMED,
    PROGRAMS,
    check_program,
    config_file,
    config_of,
    unknown_field,
)
from bert_elmo_jax.runs.starting_weights import say
from bert_elmo_jax.runs.task_scores import score_name
from bert_elmo_jax.sweeps.forks import Forks
from bert_elmo_jax.sweeps.search.results import write_results
from bert_elmo_jax.sweeps.search.space import space_of
from bert_elmo_jax.sweeps.search.study import SAMPLERS, library, study_of
from bert_elmo_jax.sweeps.search.trials import Search, run_search
from bert_elmo_jax.sweeps.stop_signals import stop_asked
from experiments.command_line.endings import endings
from experiments.command_line.start import start

flags.DEFINE_enum("program", "finetune", list(PROGRAMS), "Whose runs they are.")
flags.DEFINE_string("over", "", "Fields and what they may be: 'epochs=2..4;optimizer.learning_rate=1e-5..1e-3,log'.")
flags.DEFINE_integer("trials", 20, "How many runs; a larger number later goes on from there.")
flags.DEFINE_string("workdir", None, "Where the trials and what they come to lie.")
flags.DEFINE_enum("sampler", "bayesian", SAMPLERS, "How values are drawn: by what earlier runs came to, or by chance.")
flags.DEFINE_string("score", None, "The figure that is to be high; that of the task (dev/…) or of the pretraining.")
flags.DEFINE_bool("lowest", False, "The figure is to be low.")
flags.DEFINE_bool("end_bad", True, "End a run early whose score is worse than the others' median by then.")
flags.DEFINE_integer("seed", 0, "Of what is drawn.", lower_bound=0)
flags.DEFINE_string("device", "", "The number of a GPU or TPU chip; none for a CPU.")
FLAGS = flags.FLAGS
HEADINGS = {"program": "What is searched", "workdir": "How"}
SCORES = {"pretrain_bert": "held_out/mlm_accuracy", "pretrain_elmo": "held_out/score"}


def search_of_flags(words: Sequence[str]) -> int:
    """Run the search that the flags ask for over a program's words; the exit status."""
    if not FLAGS.workdir:
        raise ValueError("--workdir=… is needed: where the trials come to lie")
    if FLAGS.trials < 1:
        raise ValueError(f"--trials={FLAGS.trials}: expected 1 or more")
    config = config_behind(words)
    space = space_of(FLAGS.over, config)
    score = FLAGS.score or score_of(config)
    if not FLAGS.lowest and any(part in score.rpartition("/")[2] for part in ("perplexity", "loss")):
        raise ValueError(f"--score={score} is better the lower it is: add --lowest")
    search = Search(FLAGS.program, tuple(words), space, score, FLAGS.lowest, Path(FLAGS.workdir))
    library()  # or say what is missing
    asked = {"program": FLAGS.program, "words": list(words), "over": FLAGS.over, "score": search.score}
    asked |= {"lowest": FLAGS.lowest, "sampler": FLAGS.sampler, "end_bad": FLAGS.end_bad, "seed": FLAGS.seed}
    command = shlex.join(["python", "-m", "experiments.search", *sys.argv[1:]])
    with train.only_process(search.workdir):
        study = study_of(search.workdir, asked, FLAGS.trials)
        runner = Forks(1, [FLAGS.device] if FLAGS.device else [], search.workdir.absolute() / "compiled")
        with stop_asked() as stop:
            try:
                whole = run_search(
                    search, study, runner, trials=FLAGS.trials, sampler=FLAGS.sampler, seed=FLAGS.seed, say=say,
                    changed=lambda: write_results(search, study, command), stop=stop,
                )  # fmt: skip
            finally:
                runner.close()
        if not whole:
            say("stopped; the same command goes on from there")
            return train.STOPPED
        say(write_results(search, study, command))
        say(f"{search.workdir / 'report.html'}: all trials, each with its command")
    return 0


def config_behind(words: Sequence[str]) -> ConfigDict:
    """The config that a program's words name, with the task's flags in it; what cannot be meant is refused."""
    given = flags_of(words)
    if "workdir" in given:
        raise ValueError("behind -- there is a --workdir, but each trial has its own: give the search's before --")
    file = config_file(words) or (str(CONFIGS / "finetune.py") if FLAGS.program == "finetune" else None)
    if file is None:
        raise ValueError(f"behind -- there is no --config=…, which {FLAGS.program} needs")
    config, _ = config_of(file)
    check_program(file, config, FLAGS.program)
    if told := unknown_field(words, config):
        raise ValueError(told)
    if FLAGS.program == "finetune":
        config.update({name: given[name] for name in NAMED if given.get(name) is not None})
    return config


def flags_of(words: Sequence[str]) -> dict[str, str | None]:
    """The flags among a program's words, whose value may be a word of its own.

    >>> flags_of(["--task", "sst2", "--train=t.tsv"])
    {'task': 'sst2', 'train': 't.tsv'}
    """
    found: dict[str, str | None] = {}
    for word, after in zip(words, [*words[1:], None]):
        name, given, value = word.lstrip("-").partition("=")
        if word.startswith("-"):
            found[name] = value if given else after
    return found


def score_of(config: ConfigDict) -> str:
    """The figure by which the program itself keeps its best model."""
    if FLAGS.program != "finetune":
        return SCORES[FLAGS.program]
    if not config.task:
        raise ValueError("behind -- there is no --task=…, which finetune needs")
    names = {name: config[name] or None for name in ("text", "pair", "label")}
    return f"dev/{score_name(task_named(config.task, **names, file=config.train))}"


def main(argv: list[str]) -> None:
    """The program: every expected trouble ends in one message and a status of its own."""
    with endings("search", argv[:1], "", "stopped; the same command goes on from there"):
        sys.exit(search_of_flags(argv[1:]))


if __name__ == "__main__":
    start(main, "search", HEADINGS)
