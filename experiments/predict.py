r"""Predictions of a fine-tuned model for a file, or for lines from standard input: a table, or JSON lines.

  python -m experiments.predict --model=runs/reviews --input=new.csv --output=predictions.csv
  echo 'so good' | python -m experiments.predict --model=runs/sst2
  python -m experiments.predict --model=runs/squad --input=dev-v1.1.json --n_best=5
  python -m experiments.predict --model=dslim/bert-base-NER --input=news.txt --aggregation=simple
  python -m experiments.predict --model=runs/reviews --input='new/*.csv' --output='predictions/*.csv' --workers=2

A file is read like the files of the task; its labels are ignored. A .txt file and standard input have one example per
line: a text, or words with spaces; pairs, questions (question, context) and choices (text, choice, choice …) have tabs
between their parts. Tables (.csv, .tsv, .parquet) have the columns of the input, or its text, and then `predicted` and
`probability`; dates of a .parquet become texts. Other files have JSON lines: id, text, and the label and probabilities,
a number, tags, the choice, or the answer with its characters and the n best. With a * in --output, each input has an
output, and --workers or --runner=ray share them out. A stopped prediction is continued by the same command, unless it
read standard input. Texts that are longer than the model reads are cut, and the end says how many; with --stride=32,
classes and numbers of single texts are the mean over parts that overlap.
"""

from absl import flags

from bert_elmo_jax.inference.entities import AGGREGATIONS
from bert_elmo_jax.inference.predict_file import predict_file
from bert_elmo_jax.inference.predictions import check_ending

from .command_line.sharing import call_for_files, define_sharing
from .command_line.start import read_values, start

FLAGS = flags.FLAGS


def define() -> None:
    """Define the flags."""
    flags.DEFINE_string("model", None, "A run, or a released model with a head: a folder or a hub name.", required=True)
    flags.DEFINE_string("input", "-", "Files like the task's (or .parquet), a .txt of one example per line, or -.")
    flags.DEFINE_string("output", "-", "The file to write: .csv, .tsv, .jsonl, .parquet; - for JSON lines to stdout.")
    flags.DEFINE_bool("overwrite", False, "Replace --output if it exists.")
    flags.DEFINE_bool("guard_formulas", False, "Put a ' before cells of a table that a spreadsheet would compute.")
    flags.DEFINE_string("encoding", None, "Of the input. Default: the run's files'; of standard input the locale's.")
    flags.DEFINE_string("text", None, "The column of texts, questions or words; default: the training data's, or text.")
    flags.DEFINE_string("pair", None, "The column of second texts, or of contexts.")
    flags.DEFINE_integer("n_best", None, "Candidates for each question; 20, or 1 of a released reader.", lower_bound=1)
    flags.DEFINE_enum("aggregation", None, AGGREGATIONS, "The entities of raw texts, from the labels of their pieces.")
    flags.DEFINE_integer("stride", None, "Long texts are read in parts that overlap by so many pieces, not cut.", 0)
    flags.DEFINE_integer("batch_size", 32, "Rows per batch.", lower_bound=1)
    flags.DEFINE_enum("dtype", "float32", ["float32", "bfloat16", "int8"], "The type that the model computes in.")
    flags.DEFINE_enum("on_bad", "stop", ["stop", "skip"], "skip: rows that cannot be read, listed in a file.")
    define_sharing()
    flags.DEFINE_bool("untrusted", False, "First read the model in a process that may open no other file; see load.")


def main() -> None:
    """Write the predictions."""
    check_ending(FLAGS.output)
    names = "n_best batch_size aggregation stride text pair encoding dtype overwrite guard_formulas on_bad untrusted"
    call_for_files(predict_file, read_values(names.split()))


if __name__ == "__main__":
    headings = {"model": "Files", "n_best": "Predictions", "batch_size": "Computation"}
    start("predict", define, main, headings, stopped="stopped; from a file to a file, the same command resumes")
