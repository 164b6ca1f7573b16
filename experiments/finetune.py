r"""Fine-tune a model, or train a task's own network, on a named task or on your own csv, tsv, jsonl or CoNLL columns.

  python -m experiments.finetune --task=classification --train=my.csv --dev=dev.csv --text=review --label=stars \
      --init=google-bert/bert-base-cased --workdir=runs/reviews
  python -m experiments.finetune --task=sst2 --train=sst2/train.tsv --dev=sst2/dev.tsv --init=runs/bert \
      --workdir=runs/sst2 --seeds=0,1,2
  python -m experiments.finetune --task=rte --train=… --dev=… --init=runs/bert --workdir=runs/rte \
      --grid='batch_size=16,32 optimizer.learning_rate=5e-5,3e-5,2e-5 epochs=2,3,4'
  python -m experiments.finetune --config=tagger --config.encoder=runs/elmo_novels \
      --train=en_ewt-ud-train.iob2 --dev=en_ewt-ud-dev.iob2 --workdir=runs/tagger

Recipes have names: finetune:squad, esim, … With --grid or --seeds every combination is a run; the best on dev is kept.
The same command resumes a run that was stopped or killed. Exit status: 0 done, 2 refused, 75 saved, 76 diverged.
"""

from pathlib import Path

from absl import flags
from ml_collections import ConfigDict

from bert_elmo_jax.runs.config_files import NAMED
from bert_elmo_jax.runs.finetuning import finetune

from .command_line.start import read_values, show_command, start

FLAGS = flags.FLAGS
OPTIONS = ("init", "tokenizer", "grid", "seeds", "parallel", "track", "language")


def define() -> None:
    """Define the flags."""
    flags.DEFINE_string("config", None, "A recipe, such as finetune:squad or my_recipes.py:mine. Default: finetune.")
    flags.DEFINE_string("workdir", None, "The run directory, new or to be resumed.", required=True)
    flags.DEFINE_string("init", None, "Weights to start from: anything `load` understands. Without: from scratch.")
    flags.DEFINE_string("tokenizer", None, "Without --init: the tokenizer, its folder or a model that has it.")
    flags.DEFINE_string("task", None, "classification, regression, entities, tags, rank; or such as sst2, squad.")
    flags.DEFINE_string("train", None, "The file to train on; or several: 'part-*.parquet', or a.csv,b.csv.")
    flags.DEFINE_string("dev", None, "The file to choose the best model by; or a share of --train, held out: 0.1.")
    flags.DEFINE_string("test", None, "A file to score the best model on at the end.")
    flags.DEFINE_string("encoding", None, "Of these files: cp949, …; utf-8 unless given.")
    flags.DEFINE_string("text", None, "In your own files: the column of the text or word, by name or number.")
    flags.DEFINE_string("pair", None, "In your own files: the column of the second text.")
    flags.DEFINE_string("label", None, "In your own files: the column of the label, number or tag.")
    flags.DEFINE_enum("on_bad", None, ["stop", "skip"], "skip: rows that cannot be read, listed in skipped.jsonl.")
    flags.DEFINE_string("grid", None, "Fields and their values: 'batch_size=16,32 optimizer.learning_rate=5e-5,3e-5'.")
    flags.DEFINE_list("seeds", None, "Numbers: every setting runs with each of these seeds.")
    flags.DEFINE_enum("language", None, ["en", "ko"], "Of the report. Default: the locale's.")
    flags.DEFINE_list("track", [], "Trackers that get the figures and the report: mlflow, wandb.")
    flags.DEFINE_enum("parallel", "jit", ["jit", "pmap"], "How several devices share the work.")


def main(config: ConfigDict) -> int:
    """Run or continue the fine-tuning."""
    config.update({name: value for name, value in read_values(NAMED).items() if value is not None})
    return finetune(config, Path(FLAGS.workdir), command=show_command("finetune"), **read_values(OPTIONS))


if __name__ == "__main__":
    headings = {"config": "The run", "task": "Task and files", "grid": "Many runs", "language": "Report, devices"}
    start("finetune", define, main, headings, config="finetune")
