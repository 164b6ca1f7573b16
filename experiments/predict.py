r"""What a fine-tuned model says of a file's examples, or of lines from standard input: a table, or JSON lines.

  python -m experiments.predict --model=runs/reviews --input=new.csv --output=predictions.csv
  python -m experiments.predict --model=runs/sst2 --input=sst2/test.tsv --output=predictions.jsonl
  echo 'so good' | python -m experiments.predict --model=runs/sst2
  python -m experiments.predict --model=runs/squad --input=dev-v1.1.json --n_best=5

A file is read as those of the task were (its labels are not looked at), .txt and standard input line by line: a text;
of pairs, questions (question, context) and choices (text, choice, choice …) with a tab between; of tags words with
spaces. The output is in the order of the input. A .csv or .tsv has the columns of the input, or its text, and behind
them `predicted` and its `probability`. Any other file has JSON lines: the id, the text, and label and probabilities, a
number, tags and their probabilities, the choice, or the answer with the characters where it stands and the n best.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from absl import flags
from tqdm import tqdm

from bert_elmo_jax import load
from bert_elmo_jax.data.tasks.files import BadRow, read_lines
from bert_elmo_jax.data.tasks.task import Task, read_examples
from bert_elmo_jax.files import open_atomically
from bert_elmo_jax.inference import TaskModel
from bert_elmo_jax.inference.prediction_files import lines_of
from bert_elmo_jax.inference.task_model import to_example
from bert_elmo_jax.inference.task_network import TaskNetwork
from bert_elmo_jax.runs.starting_weights import devices, say
from experiments.command_line.endings import endings
from experiments.command_line.start import refuse, start

flags.DEFINE_string("model", None, "The run directory of a fine-tuning run.", required=True)
flags.DEFINE_string("input", "-", "A file like those of the task, a .txt with an example a line, or - for such lines.")
flags.DEFINE_string("output", "-", "The file to write, .csv, .tsv or .jsonl; - for JSON lines on standard output.")
flags.DEFINE_integer("n_best", 20, "Candidates of each question.", lower_bound=1)
flags.DEFINE_integer("batch_size", 32, "Rows a batch.", lower_bound=1)
flags.DEFINE_string("encoding", None, "Of the input file; without it that of the run's files.")
flags.DEFINE_enum("dtype", "float32", ["float32", "bfloat16"], "What the model computes in.")
FLAGS = flags.FLAGS
AHEAD = 64  # batches that are sorted together


def encoding_of(run: str) -> str:
    """The encoding of a run's files."""
    file = Path(run, "run.json")
    return str(json.loads(file.read_text(encoding="utf-8")).get("encoding", "utf-8")) if file.is_file() else "utf-8"


def examples_of(task: Task, source: str, encoding: str) -> Iterator[Sequence[Any]]:
    """The examples, some at a time: of standard input each line as it comes, where nobody waits for the end."""
    if source != "-" and Path(source).suffix != ".txt":
        whole = read_examples(source, task, labelled=False, encoding=encoding)
        size = AHEAD * FLAGS.batch_size
        yield from (whole[at : at + size] for at in range(0, len(whole), size))
        return
    some = []
    for number, line in enumerate(sys.stdin if source == "-" else read_lines(source, encoding), start=1):
        some.append(from_line(task, line.rstrip("\n"), source, number))
        if (source == "-" and sys.stdin.isatty()) or len(some) == AHEAD * FLAGS.batch_size:
            yield some
            some = []
    if some:
        yield some


def from_line(task: Task, line: str, source: str, number: int) -> Any:
    """The example of a line of text."""
    cells: Any = line.split("\t")
    if task.kind == "choice":
        value: Any = (cells[0], cells[1:])
    elif task.kind == "questions" or task.pairs:
        value = tuple(cells)
    else:
        value = line
    try:
        return to_example(task, value, number)
    except ValueError as error:
        name = "standard input" if source == "-" else source
        what = str(error).partition(f"input {number} ")[2] or str(error)
        raise BadRow(name, number, what, "mend or remove the line") from None


def predict(out: TextIO) -> int:
    """Write what is predicted; of how many examples."""
    model = load(FLAGS.model, dtype=FLAGS.dtype)
    if not isinstance(model, TaskModel | TaskNetwork):
        raise ValueError(f"--model={FLAGS.model} was not fine-tuned for a task: give a run of experiments.finetune")
    source = "standard input" if FLAGS.input == "-" else FLAGS.input
    target = "standard output" if FLAGS.output == "-" else FLAGS.output
    say(f"{FLAGS.model} ({model.task.name}): {source} -> {target}, on {devices()}")
    encoding, count = FLAGS.encoding or encoding_of(FLAGS.model), 0
    lines = lines_of(model.task, FLAGS.input, encoding, FLAGS.output)
    with tqdm(desc="predicting", unit="examples", disable=FLAGS.output == "-") as bar:
        for some in examples_of(model.task, FLAGS.input, encoding):
            found = model.predict_examples(some, batch_size=FLAGS.batch_size, n_best=FLAGS.n_best, progress=False)
            out.writelines(f"{line}\n" for line in lines(some, found))
            out.flush()
            bar.update(len(some))
            count += len(some)
    return count


def main(argv: list[str]) -> None:
    """Predict, and end every expected trouble in one message and status 2."""
    with endings("predict", argv, "--input=…"):
        try:
            to_file(Path(FLAGS.output)) if FLAGS.output != "-" else predict(sys.stdout)
        except UnicodeDecodeError as error:  # files say themselves which of their lines it is
            refuse("predict", f"standard input is not {error.encoding}: {error}; convert it first")
        except BrokenPipeError:
            sys.stderr.close()  # whoever read has enough


def to_file(target: Path) -> None:
    """All predictions, or no file of that name."""
    marked = target.suffix.lower() == ".csv"  # by the mark Excel knows that it is UTF-8
    with open_atomically(target, encoding="utf-8-sig" if marked else "utf-8") as out:
        count = predict(out)
    print(f"{count:,} predictions in {target}", file=sys.stderr)


if __name__ == "__main__":
    start(main, "predict")
