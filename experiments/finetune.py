r"""Fine-tune a BERT, or train a task's own network: your own csv, tsv, jsonl or CoNLL columns, or a task by name.

  python -m experiments.finetune --task=classification --train=my.csv --dev=dev.csv --text=review --label=stars \
      --init=google-bert/bert-base-cased --workdir=runs/reviews
  python -m experiments.finetune --task=sst2 --train=sst2/train.tsv --dev=sst2/dev.tsv --init=runs/bert \
      --workdir=runs/sst2 --seeds=0,1,2
  python -m experiments.finetune --config=experiments/configs/finetune_squad.py --train=squad/train-v1.1.json \
      --dev=squad/dev-v1.1.json --init=runs/bert --workdir=runs/squad
  python -m experiments.finetune --task=rte --train=… --dev=… --init=runs/bert --workdir=runs/rte \
      --grid='batch_size=16,32 optimizer.learning_rate=5e-5,3e-5,2e-5 epochs=2,3,4'
  python -m experiments.finetune --config=experiments/configs/tagger.py --config.encoder=runs/elmo_novels \
      --train=en_ewt-ud-train.iob2 --dev=en_ewt-ud-dev.iob2 --workdir=runs/tagger
  python -m experiments.finetune --config=experiments/configs/esim.py --config.encoder=runs/elmo_novels \
      --train=snli_1.0_train.txt --dev=snli_1.0_dev.txt --workdir=runs/esim

Fields of the config are set by `--config.…=`; experiments/configs/finetune.py and network.py say what they mean. With
--grid or --seeds every combination is a run in a folder of its own, and the best on dev becomes the model of the run
directory. The same command goes on where a stopped or killed run was. Exit status: 0 done, 2 refused, 75 asked to stop
and saved, 76 diverged. `load("runs/sst2").predict([…])` and `experiments.predict` use what comes out.
"""

import sys
from pathlib import Path

from absl import flags
from ml_collections import config_flags

from bert_elmo_jax.runs.config_files import NAMED
from bert_elmo_jax.runs.finetuning import finetune
from experiments.command_line.endings import endings
from experiments.command_line.start import start

USUAL = Path(__file__).parent / "configs" / "finetune.py"

CONFIG = config_flags.DEFINE_config_file("config", None, "A file of experiments/configs; finetune.py unless given.")
flags.DEFINE_string("workdir", None, "The run directory: made where it is missing, gone on with where it is there.")
flags.DEFINE_string("init", None, "Weights to begin with: anything `load` understands. Without: from scratch.")
flags.DEFINE_string("tokenizer", None, "Without --init: the tokenizer, a folder or the model that has it.")
flags.DEFINE_string("task", None, "classification, regression, entities or tags; or one by name, such as sst2, squad.")
flags.DEFINE_string("train", None, "The file to train on.")
flags.DEFINE_string("dev", None, "The file that the best model is chosen by; or a share of --train, kept aside: 0.1.")
flags.DEFINE_string("test", None, "A file that the best model is scored on in the end.")
flags.DEFINE_string("encoding", None, "Of these files: cp949, …; utf-8 unless given.")
flags.DEFINE_string("text", None, "Of your own files the column of the text, or of the word, by name or number.")
flags.DEFINE_string("pair", None, "Of your own files the column of the second text.")
flags.DEFINE_string("label", None, "Of your own files the column of the label, number or tag.")
flags.DEFINE_string("grid", None, "Fields and their values: 'batch_size=16,32 optimizer.learning_rate=5e-5,3e-5'.")
flags.DEFINE_list("seeds", None, "Numbers: each setting is run with each of these seeds.")
FLAGS = flags.FLAGS
HEADINGS = {"config": "The run", "task": "The task and its files", "grid": "Many runs"}


def run() -> int:
    """Fine-tune as the flags say; the exit status."""
    if not FLAGS.workdir:
        raise ValueError("--workdir=… is needed: the run directory to make, or to go on with")
    config = FLAGS.config
    for name in NAMED:
        if FLAGS[name].value is not None:
            config[name] = FLAGS[name].value
    return finetune(
        config, Path(FLAGS.workdir), init=FLAGS.init, tokenizer=FLAGS.tokenizer, grid=FLAGS.grid, seeds=FLAGS.seeds
    )


def main(argv: list[str]) -> None:
    """The program: every expected trouble ends in one message and a status of its own."""
    usage, stopped = (
        "--task=… --train=… --dev=… --workdir=…",
        "stopped; the same command goes on from the last checkpoint",
    )
    with endings("finetune", argv, usage, stopped):
        sys.exit(run())


if __name__ == "__main__":
    start(main, "finetune", HEADINGS, USUAL)
