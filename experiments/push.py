r"""Share a model on the hub: its files, a model card, and the hashes of all files.

  python -m experiments.push --model=runs/reviews --to=my-name/reviews --license=apache-2.0
  python -m experiments.push --model=runs/reviews --to=my-name/reviews --dry_run --output=reviews_hub

The card says what the files of the run know: data, scores with their interval, config, cost, limits, and how to load
the model. It says so where something is not known. --dry_run writes the folder and uploads nothing. Uploading needs a
token: run `hf auth login`, or set HF_TOKEN.
"""

from absl import flags

from bert_elmo_jax.report.language import LANGUAGES
from bert_elmo_jax.sharing.push_model import push_model

from .command_line.start import start

FLAGS = flags.FLAGS


def define() -> None:
    """Define the flags."""
    flags.DEFINE_string("model", None, "A run, a model, or a folder that export wrote.", required=True)
    flags.DEFINE_string("to", None, "The repository: OWNER/NAME.", required=True)
    flags.DEFINE_string("license", "", "The licence, as the hub names it, such as apache-2.0.")
    flags.DEFINE_enum("language", "en", LANGUAGES, "The language of the card.")
    flags.DEFINE_bool("private", False, "Make a repository that only you see.")
    flags.DEFINE_string("output", None, "Keep the folder that is uploaded here; it must be new or empty.")
    flags.DEFINE_bool("dry_run", False, "Write the folder, by default MODEL_hub, and upload nothing.")


def main() -> None:
    """Write the folder, and upload it."""
    push_model(
        FLAGS.model, FLAGS.to, license=FLAGS.license, language=FLAGS.language, private=FLAGS.private,
        output=FLAGS.output, dry_run=FLAGS.dry_run,
    )  # fmt: skip


if __name__ == "__main__":
    start("push", define, main, {"model": "From what to what", "license": "The card"}, stopped="stopped")
