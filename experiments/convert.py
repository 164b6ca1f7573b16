r"""Weights from one format into another, telling what was mapped, left and initialised.

python -m experiments.convert --from=uncased_L-12_H-768_A-12 --to=bert-base-hf           # Google's -> Hugging Face's
python -m experiments.convert --from=google-bert/bert-base-uncased --to=runs/base --to_format=run
python -m experiments.convert --from=runs/base --to=bert-base-for-transformers
"""

import sys
from pathlib import Path
from typing import Any

from absl import app, flags

from bert_elmo_jax.api import write_run_directory
from bert_elmo_jax.api.read_model import read_model
from bert_elmo_jax.interop import Report, huggingface_bert

flags.DEFINE_string("from", None, "A folder in any format, a checkpoint's prefix, or a hub name.", required=True)
flags.DEFINE_string("to", None, "The folder to write.", required=True)
flags.DEFINE_enum("to_format", "huggingface", ["huggingface", "run"], "What transformers loads, or a run directory.")
flags.DEFINE_enum("format", None, ["huggingface", "google"], "Of --from, where the folder holds two.")
flags.DEFINE_enum("classifier", None, ["classify", "choice", "tag"], "Which head a nameless classifier is.")
flags.DEFINE_bool("lowercase", None, "Whether the vocabulary is uncased, where it does not say.")
FLAGS = flags.FLAGS


def convert(source: str, target: str) -> Report:
    """Read one format and write the other; what became of every tensor."""
    model = read_model(source, format=FLAGS.format, classifier=FLAGS.classifier, lowercase=FLAGS.lowercase)
    task: dict[str, Any] = {"labels": model.labels, "problem_type": model.problem_type}
    if FLAGS.to_format == "run":
        asked = {"program": "convert", "from": source}
        write_run_directory(target, model.config, model.params, model.tokenizer, run=asked, **task)
        return model.report
    huggingface_bert.write(target, model.params, model.config, **task)
    if model.tokenizer is not None:
        model.tokenizer.save(target)  # vocab.txt and tokenizer_config.json, as transformers reads them
    return model.report


def main(argv: list[str]) -> None:
    """Convert, and end every expected trouble in one message and status 2."""
    if len(argv) > 1:
        sys.exit(_refuse(f"unexpected argument {argv[1]!r}; use --from=… --to=…"))
    source, target = str(FLAGS["from"].value), FLAGS.to
    try:
        if Path(target).exists() and any(Path(target).iterdir()):
            sys.exit(_refuse(f"{target} is not empty; give another --to"))
        print(f"Converting {source} -> {target} ({FLAGS.to_format})")
        print(convert(source, target))
        print(f"Written: {', '.join(sorted(p.name for p in Path(target).iterdir()))}")
    except (ValueError, OSError, ImportError) as error:
        sys.exit(_refuse(str(error)))


def _refuse(message: str) -> int:
    print(f"convert: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    app.run(main)
