r"""Small studies of attention: print their tables and write their figures as SVG.

Each takes seconds to two minutes on two cores:
  python -m experiments.benchmarks.attention --what=scaling --output=attention
  python -m experiments.benchmarks.attention --what=heads --output=attention
  python -m experiments.benchmarks.attention --what=length --output=attention
  python -m experiments.benchmarks.attention --what=crosstalk --output=attention
  python -m experiments.benchmarks.attention --what=warmup --output=attention

Heads that link two words, in the paper's sentences; and in the toy world, where a model can be scored exactly:
  python -m experiments.benchmarks.attention --what=words --model=runs/base --output=attention
  python -m experiments.benchmarks.attention --what=words --model=runs/bert_toy --language=en --output=attention
The words that a pronoun of your own sentence attends to, in the head that links `its` with `Law` in the paper's:
  python -m experiments.benchmarks.attention --what=words --model=runs/base --output=attention \
      --sentence='The dog did not cross the street because it was tired .'
"""

from pathlib import Path

from absl import flags

from bert_elmo_jax import load
from bert_elmo_jax.inference.toy_worlds import find_common_world

from ..command_line.start import start
from ..studies.why_attention.studies import TRAINED, study_sentence, study_words, write_findings

FLAGS = flags.FLAGS


def define() -> None:
    """Define the flags."""
    flags.DEFINE_enum("what", None, [*TRAINED, "words"], "The study.", required=True)
    flags.DEFINE_string("output", None, "The folder for figures.", required=True)
    flags.DEFINE_integer("seed", 0, "Of data and parameters.")
    flags.DEFINE_integer("steps", None, "Of each training; of length: how many lengths. Without it as on the pages.",
                         lower_bound=1)  # fmt: skip
    flags.DEFINE_string("model", None, "For words: a Transformer, anything `load` understands.")
    flags.DEFINE_string("sentence", None, "For words: your own, with spaces between words and punctuation.")
    flags.DEFINE_string("word", None, "Of this sentence; without it its last pronoun.")
    flags.DEFINE_enum("language", None, ["en", "ko"], "For words: score links in the toy world of this language.")
    flags.DEFINE_integer("count", 400, "For words: texts of the toy world for each kind of link.", lower_bound=40)
    flags.DEFINE_bool("png", False, "Write each figure as PNG, too (pip install 'bert_elmo_jax[figures]').")
    flags.DEFINE_bool("stage", False, "For a projector: larger figures with larger type.")


def unread_flags() -> list[str]:
    """Return the flags that were set and that the study does not read."""
    if FLAGS.what != "words":
        unread = ["model", "sentence", "word", "language", "count"]
    elif FLAGS.sentence:
        unread = ["language", "count", "seed", "steps"]
    else:
        unread = ["word", "seed", "steps", *["count"] * (FLAGS.language is None)]
    return [f"--{name}" for name in unread if FLAGS[name].present]


def main() -> None:
    """Run the study."""
    if unread := unread_flags():
        study = f"--what={FLAGS.what}{' with --sentence' * bool(FLAGS.sentence)}"
        raise ValueError(f"{study} does not read {', '.join(unread)}: leave it out")
    if FLAGS.what == "words":
        if FLAGS.model is None:
            raise ValueError("--what=words needs --model=…, a trained Transformer")
        name = Path(FLAGS.model).name
        if FLAGS.sentence:
            findings = study_sentence(load(FLAGS.model), name, FLAGS.sentence, FLAGS.word)
        else:
            world = None if FLAGS.language is None else find_common_world([FLAGS.model], FLAGS.language)
            findings = study_words(load(FLAGS.model), name, world, FLAGS.count)
    else:
        findings = TRAINED[FLAGS.what](FLAGS.steps, FLAGS.seed)
    for path in write_findings(findings, FLAGS.output, png=FLAGS.png, stage=FLAGS.stage):
        print(path)


if __name__ == "__main__":
    start("benchmarks.attention", define, main, {"what": "The study", "model": "Of words"}, stopped="stopped")
