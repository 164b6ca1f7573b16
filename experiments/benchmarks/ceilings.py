r"""Small systems of the toy world compared with the best possible score of a reader who sees as much as they do.

Static vectors, GPT, ELMo and BERT are pretrained with half the steps of the sweep own_three_encoders; a linear probe
reads their frozen layers. The command continues where it was stopped:
  python -m experiments.benchmarks.ceilings --workdir=runs/ceilings --output=ceilings

Only the ceilings of a world, in seconds; any size, in English or Korean:
  python -m experiments.benchmarks.ceilings --only_ceilings --topics=24 --words=6 --language=ko
"""

from pathlib import Path

from absl import flags

from bert_elmo_jax.toyworld import VIEWS, ToyWorld, exact_ceiling
from bert_elmo_jax.toyworld.readers import TASKS, open_words

from ..command_line.start import start
from ..studies.ceilings.toy_systems import PLACES, SHARE, study_systems
from ..studies.why_attention.studies import Findings, write_findings
from ..sweeps._scales import TOY_DATA

FLAGS = flags.FLAGS


def define() -> None:
    """Define the flags."""
    flags.DEFINE_string("output", None, "The folder for figures; --only_ceilings has none.")
    flags.DEFINE_string("workdir", None, "The folder of the trained systems.")
    flags.DEFINE_float("share", SHARE, "The steps, as a share of those of own_three_encoders.", lower_bound=0.0)
    flags.DEFINE_integer("places", PLACES, "Labelled words to train a probe.", lower_bound=40)
    flags.DEFINE_bool("only_ceilings", False, "Train nothing.")
    flags.DEFINE_enum("language", "en", ["en", "ko"], "With --only_ceilings: the language of the world.")
    flags.DEFINE_integer("topics", TOY_DATA.topics, "With --only_ceilings: the topics of the world.")
    flags.DEFINE_integer("words", TOY_DATA.words, "With --only_ceilings: the longest word list of a topic.")


def list_ceilings(world: ToyWorld) -> Findings:
    """Return the exact ceilings of all readers for the tasks that have words with several labels."""
    rows = []
    for task in TASKS:
        if task != "words" and open_words(world, task).any():
            rows.append([task, *(f"{exact_ceiling(world, task, view):.3f}" for view in VIEWS.values())])
    return Findings({f"best possible accuracy, all sentences ({world.language})": [["task", *VIEWS], *rows]}, {})


def main() -> None:
    """Print the tables and write the figures."""
    world = ToyWorld(FLAGS.language, topics=FLAGS.topics, words=FLAGS.words)
    if FLAGS.only_ceilings:
        if FLAGS.output is not None:
            raise ValueError("--only_ceilings prints tables and draws nothing: leave out --output")
        findings = list_ceilings(world)
    elif FLAGS.workdir is None or FLAGS.output is None:
        raise ValueError("give --workdir=…, where the trained systems stay, and --output=…, or --only_ceilings")
    elif (world.language, world.topics, world.words) != (TOY_DATA.language, TOY_DATA.topics, TOY_DATA.words):
        raise ValueError("the systems are trained on one world: --language, --topics and --words need --only_ceilings")
    else:
        findings = study_systems(Path(FLAGS.workdir), world, FLAGS.share, FLAGS.places)
    for path in write_findings(findings, FLAGS.output or ""):
        print(path)


if __name__ == "__main__":
    start("benchmarks.ceilings", define, main, {"output": "The study"}, stopped="stopped")
