r"""Weights from one format into another, telling what was mapped, left and initialised.

  python -m experiments.convert --from=uncased_L-12_H-768_A-12 --to=bert-base-hf       # Google's -> Hugging Face's
  python -m experiments.convert --from=google-bert/bert-base-uncased --to=runs/base --to_format=run
  python -m experiments.convert --from=runs/base --to=bert-base-for-transformers
  python -m experiments.convert --from=runs/elmo --to=elmo-for-allennlp                # options.json and weights.hdf5
  python -m experiments.convert --from=runs/base --to=runs/mean --to_format=run --average=3  # of its last checkpoints

The folder to write is a new one, or empty. `load` reads what comes out, whatever its format.
"""

import dataclasses
from pathlib import Path
from typing import Any

from absl import flags

from bert_elmo_jax.families.bert import huggingface as huggingface_bert
from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.elmo import hdf5_weights as elmo_hdf5
from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.inference import write_run_directory
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.inference.stored_families import FAMILIES, family_of
from bert_elmo_jax.runs.average_checkpoints import average_checkpoints
from bert_elmo_jax.weights.report import Report
from experiments.command_line.endings import endings
from experiments.command_line.start import start

FORMATS = {"bert": ["huggingface", "run"], "elmo": ["elmo", "run"]}  # what each family can be written as
flags.DEFINE_string(
    "from", None, "A folder in any format, a checkpoint's prefix, an ELMo's .hdf5, or a hub name.", required=True
)
flags.DEFINE_string("to", None, "The folder to write.", required=True)
flags.DEFINE_enum(
    "to_format",
    None,
    ["huggingface", "elmo", "run"],
    "For transformers (a BERT), for AllenNLP and bilm-tf (an ELMo), or a run directory. Default: one of the first two.",
)
flags.DEFINE_integer("average", 1, "Of a run directory: the mean of so many of its newest checkpoints.")
flags.DEFINE_enum("format", None, ["huggingface", "google", "elmo"], "Of --from, where the folder holds two.")
flags.DEFINE_enum("classifier", None, ["classify", "choice", "tag"], "Which head a nameless classifier is.")
flags.DEFINE_bool("lowercase", None, "Whether the vocabulary is uncased, where it does not say.")
FLAGS = flags.FLAGS


def convert(source: str, target: str) -> tuple[str, Report]:
    """Read one format and write the other; which that was, and what became of every tensor."""
    model = read_model(source, format=FLAGS.format, classifier=FLAGS.classifier, lowercase=FLAGS.lowercase)
    if FLAGS.average != 1:
        steps, params = average_checkpoints(source, FLAGS.average)
        report = dataclasses.replace(model.report, source=f"{source}, mean of steps {', '.join(map(str, steps))}")
        model = dataclasses.replace(model, params=params, report=report)
    family = family_of(model.config)
    if family not in FORMATS:
        raise ValueError(
            f"{source} holds {FAMILIES[family].called}, which is in no format but its own: copy the folder"
        )
    format = FLAGS.to_format or FORMATS[family][0]
    if format not in FORMATS[family]:
        raise ValueError(
            f"{source} holds {FAMILIES[family].called}, which cannot be written as --to_format={format}; use "
            f"{' or '.join(FORMATS[family])}"
        )
    task: dict[str, Any] = {"labels": model.labels, "problem_type": model.problem_type}
    if format == "run":
        asked = {"program": "convert", "from": source, "average": FLAGS.average}
        write_run_directory(target, model.config, model.params, model.tokenizer, run=asked, **task)
        return format, model.report
    if isinstance(model.config, BertConfig):
        huggingface_bert.write(target, model.params, model.config, **task)
    elif isinstance(model.config, ElmoConfig):
        elmo_hdf5.write(target, model.params, model.config)
    if model.tokenizer is not None:
        model.tokenizer.save(target)  # vocab.txt and tokenizer_config.json, as transformers reads them; or words.txt
    return format, model.report


def main(argv: list[str]) -> None:
    """Convert, and end every expected trouble in one message and status 2."""
    with endings("convert", argv, "--from=… --to=…"):
        source, target = str(FLAGS["from"].value), FLAGS.to
        if Path(target).exists() and any(Path(target).iterdir()):
            raise ValueError(f"{target} is not empty; give another --to")
        print(f"Converting {source} -> {target}, on this machine's processor")
        format, report = convert(source, target)
        print(report)
        print(f"Written as {format}: {', '.join(sorted(p.name for p in Path(target).iterdir()))}")


if __name__ == "__main__":
    start(main, "convert", {"from": "From what to what", "format": "Where the source does not say"})
