r"""A run on the toy world beside the best that anyone could do: the same held-out text, the same predictions.

  python -m experiments.benchmarks.toyworld --run=runs/bert_toy
  python -m experiments.benchmarks.toyworld --run=runs/elmo_toy

The toy world is finite-state, so what an ideal reader expects is computed exactly (`bert_elmo_jax.toyworld`); what
it is told of a BERT's rows and of a biLM's, `best_masked` and `best_stream` in `bert_elmo_jax/runs/ideal` say.
"""

import json
from pathlib import Path

from absl import app, flags, logging
from ml_collections import ConfigDict

from bert_elmo_jax.runs.ideal.best_masked import MaskedScores, masked_scores
from bert_elmo_jax.runs.ideal.best_stream import StreamScores, stream_scores
from experiments.command_line.start import start

flags.DEFINE_string("run", None, "A run directory of pretrain_bert or pretrain_elmo with data=toyworld.", required=True)
FLAGS = flags.FLAGS


def print_masked(found: MaskedScores) -> None:
    """A BERT's table."""
    print(f"{found.source}: {found.batches} held-out batches")
    print(f"{'':24}{'model':>8}{'best':>8}{'expected':>10}{'share':>8}{'of':>10}")
    for name, model, best, expected, count in found.lines:
        print(f"{name:24}{model:8.4f}{best:8.4f}{expected:10.4f}{model / best:8.1%}{count:10,}")
    print(f"\nall {found.predictions:,} predictions, cut examples and pieces of words among them: ", end="")
    names = [name for name in ("mlm_accuracy", "nsp_accuracy") if name in found.of_all]
    print(", ".join(f"{name} {found.of_all[name]:.4f}" for name in names))


def print_stream(found: StreamScores) -> None:
    """A biLM's table."""
    print(f"{found.source}: perplexity of the held-out text, {found.batches} batches")
    print(f"{'':12}{'forward':>10}{'backward':>10}{'mean':>10}{'true':>10}{'mean/true':>11}{'of':>10}")
    for name, forward, backward, mean, true, count in found.lines:
        print(f"{name:12}{forward:10.3f}{backward:10.3f}{mean:10.3f}{true:10.3f}{mean / true:11.3f}{count:10,}")


def main(_: list[str]) -> None:
    """Print the table of a run."""
    logging.set_verbosity(logging.WARNING)  # the checkpointing library tells every file it reads
    run = Path(FLAGS.run)
    if not (run / "run.json").is_file():
        raise app.UsageError(f"{run} is no run directory: it has no run.json")
    asked = ConfigDict(json.loads((run / "run.json").read_text(encoding="utf-8")))
    if asked.data != "toyworld":
        raise app.UsageError(f"{run} was trained on {asked.data}; the best possible is known of data=toyworld alone")
    try:
        if asked.program == "pretrain_bert":
            print_masked(masked_scores(run, asked, run / "toyworld"))
        else:
            print_stream(stream_scores(run, asked, run / "toyworld"))
    except ValueError as error:
        raise app.UsageError(str(error)) from None


if __name__ == "__main__":
    start(main, "benchmarks.toyworld")
