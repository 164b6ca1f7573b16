r"""The scores of a run on the toy world, compared with the best possible ones on the same held-out predictions.

  python -m experiments.benchmarks.toyworld --run=runs/bert_toy
  python -m experiments.benchmarks.toyworld --run=runs/elmo_toy
  python -m experiments.benchmarks.toyworld --run=runs/gpt_toy

The toy world is finite-state, so the expectations of an ideal reader are computed exactly (`bert_elmo_jax.toyworld`).
`best_masked`, `best_stream` and `best_next` in `experiments/studies/ceilings` describe what it sees of the rows.
"""

from pathlib import Path

from absl import flags

from bert_elmo_jax.families import get_family
from bert_elmo_jax.inference.read_model import read_model

from ..command_line.start import start
from ..studies.ceilings.best_masked import MaskedScores, masked_scores
from ..studies.ceilings.best_next import NextScores, next_scores
from ..studies.ceilings.best_stream import StreamScores, stream_scores
from ..studies.ceilings.held_out import read_asked

FLAGS = flags.FLAGS


def define() -> None:
    """Define the flags."""
    flags.DEFINE_string("run", None, "A run directory of pretrain with data=toyworld.", required=True)


def print_masked(scores: MaskedScores) -> None:
    """Print the table of a masked language model."""
    print(f"{scores.source}: {scores.batches} held-out batches")
    print(f"{'':24}{'model':>8}{'best':>8}{'expected':>10}{'share':>8}{'of':>10}")
    for name, model, best, expected, count in scores.lines:
        print(f"{name:24}{model:8.4f}{best:8.4f}{expected:10.4f}{model / best:8.1%}{count:10,}")
    print(f"\nall {scores.predictions:,} predictions, including cut examples and pieces of words: ", end="")
    names = [name for name in ("mlm_accuracy", "nsp_accuracy") if name in scores.of_all]
    print(", ".join(f"{name} {scores.of_all[name]:.4f}" for name in names))


def print_stream(scores: StreamScores) -> None:
    """Print the table of a bidirectional language model."""
    print(f"{scores.source}: perplexity of the held-out text, {scores.batches} batches")
    print(f"{'':12}{'forward':>10}{'backward':>10}{'mean':>10}{'true':>10}{'mean/true':>11}{'of':>10}")
    for name, forward, backward, mean, true, count in scores.lines:
        print(f"{name:12}{forward:10.3f}{backward:10.3f}{mean:10.3f}{true:10.3f}{mean / true:11.3f}{count:10,}")


def print_next(scores: NextScores) -> None:
    """Print the table of a decoder."""
    print(f"{scores.source}: perplexity per piece of held-out documents, {scores.batches} batches")
    print(f"{'':12}{'model':>10}{'true':>10}{'model/true':>12}{'of':>10}")
    for name, model, true, count in scores.lines:
        print(f"{name:12}{model:10.3f}{true:10.3f}{model / true:12.3f}{count:10,}")
    print(f"left out: {scores.left_out:,} pieces of documents that were split")


def main() -> None:
    """Print the table of a run."""
    run = Path(FLAGS.run)
    config = read_asked(run)
    if config.data != "toyworld":
        raise ValueError(f"{run} was trained on {config.data}; the best possible scores are known only for toyworld")
    family = get_family(config.get("family") or read_model(run).kind)
    if "masking" not in config:
        print_stream(stream_scores(run, config, run / "toyworld"))
    elif family.decoder is not None:
        print_next(next_scores(run, config, run / "toyworld"))
    else:
        print_masked(masked_scores(run, config, run / "toyworld"))


if __name__ == "__main__":
    start("benchmarks.toyworld", define, main, stopped="stopped")
