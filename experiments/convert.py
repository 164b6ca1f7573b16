r"""Convert weights from one format into another, and report the mapped, omitted and initialised parts.

  python -m experiments.convert --from=uncased_L-12_H-768_A-12 --to=bert-base-hf       # Google's -> Hugging Face's
  python -m experiments.convert --from=google-bert/bert-base-uncased --to=runs/base --to_format=run
  python -m experiments.convert --from=runs/base --to=bert-base-for-transformers
  python -m experiments.convert --from=runs/elmo --to=elmo-for-allennlp                # options.json and weights.hdf5
  python -m experiments.convert --from=runs/base --to=runs/mean --to_format=run --average=3  # of its last checkpoints
  python -m experiments.convert --from=klue/bert-base --adapter=my_adapter --to=merged # with an adapter of peft
  python -m experiments.convert --from=runs/lora --to=merged                           # of --config.transfer=lora
  python -m experiments.convert --from=runs/reviews --to=runs/small --dtype=int8       # a third of the size, faster

The output folder must be new or empty; the hashes of its files are in SHA256SUMS. The printed digest is the same for
the same numbers in any format. `load` reads every format.
"""

from pathlib import Path

from absl import flags

from bert_elmo_jax.inference.convert import convert
from bert_elmo_jax.inference.read_model import list_formats

from .command_line.start import read_values, start

FLAGS = flags.FLAGS
OPTIONS = ("to_format", "average", "format", "classifier", "lowercase", "verify", "untrusted", "adapter", "dtype")


def define() -> None:
    """Define the flags."""
    formats = list_formats()
    writable = [*(name for name, form in formats.items() if form.write), "run"]
    classifiers = sorted({name for form in formats.values() for name in form.classifiers})
    source = "A folder in any format, a checkpoint's prefix, a file of ELMo's weights, or a hub name."
    flags.DEFINE_string("from", None, source, required=True)
    flags.DEFINE_string("to", None, "The folder to write.", required=True)
    flags.DEFINE_enum("to_format", None, writable, "run: a run directory. Default: the family's own format.")
    flags.DEFINE_integer("average", 1, "For a run directory: the number of newest checkpoints to average.")
    flags.DEFINE_string("adapter", None, "A folder of peft with an adapter (LoRA), which is added to the weights.")
    flags.DEFINE_enum("dtype", None, ["int8"], "int8: a run directory with the layers' kernels in 8 bits.")
    flags.DEFINE_enum("format", None, [*formats], "The format of --from if the folder holds two.")
    flags.DEFINE_enum("classifier", None, classifiers, "The head that a nameless classifier is.")
    flags.DEFINE_bool("lowercase", None, "True for an uncased vocabulary, if its files do not say.")
    flags.DEFINE_bool("verify", False, "First check the hashes of --from's files; refuse a folder without any.")
    flags.DEFINE_bool("untrusted", False, "First read the model in a process that may open no other file; see load.")


def main() -> None:
    """Convert, and print the report."""
    source, target = str(FLAGS["from"].value), FLAGS.to
    print(f"Converting {source} -> {target}, on this machine's processor")
    format, report = convert(source, target, **read_values(OPTIONS))
    print(report)
    print(f"Written as {format}: {', '.join(sorted(path.name for path in Path(target).iterdir()))}")


if __name__ == "__main__":
    headings = {"from": "From what to what", "format": "If the source does not say"}
    start("convert", define, main, headings, stopped="stopped")
