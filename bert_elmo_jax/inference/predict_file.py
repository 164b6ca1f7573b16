"""Predictions for the examples of a file or of standard input, as a table or JSON lines."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from tqdm import tqdm

from bert_elmo_jax.data.tasks.files import BadRow, read_lines
from bert_elmo_jax.data.tasks.task import Task, read_examples
from bert_elmo_jax.files import open_atomically, read_json
from bert_elmo_jax.inference.load_model import load
from bert_elmo_jax.inference.prediction_files import choose_writer
from bert_elmo_jax.inference.task_model import TaskModel, to_example
from bert_elmo_jax.inference.task_network import TaskNetwork
from bert_elmo_jax.train.devices import describe_devices

AHEAD = 64  # batches that are sorted together


def predict_file(
    model: str,
    source: str = "-",
    target: str = "-",
    *,
    n_best: int = 20,
    batch_size: int = 32,
    encoding: str | None = None,
    dtype: Literal["float32", "bfloat16"] = "float32",
) -> int:
    """Predict each example of `source`, write the predictions to `target`, and return their number.

    "-" is standard input or output. A file appears under its name only when it is complete. `encoding` is the
    source's; by default the encoding of the run's own files.
    """
    loaded = load(model, dtype=dtype)
    if not isinstance(loaded, TaskModel | TaskNetwork):
        raise ValueError(f"--model={model} was not fine-tuned for a task: give a run of experiments.finetune")
    encoding = encoding or _run_encoding(model)
    names = "standard input" if source == "-" else source, "standard output" if target == "-" else target
    print(f"{model} ({loaded.task.name}): {' -> '.join(names)}, on {describe_devices()}", file=sys.stderr)
    lines = choose_writer(loaded.task, source, encoding, target)

    def write(out: Any) -> int:
        count = 0
        with tqdm(desc="predicting", unit="examples", disable=target == "-") as bar:
            for some in _read_examples(loaded.task, source, encoding, AHEAD * batch_size):
                found = loaded.predict_examples(some, batch_size=batch_size, n_best=n_best, progress=False)
                out.writelines(f"{line}\n" for line in lines(some, found))
                out.flush()
                bar.update(len(some))
                count += len(some)
        return count

    try:
        if target == "-":
            return write(sys.stdout)
        marked = Path(target).suffix.lower() == ".csv"  # the mark tells Excel that it is UTF-8
        with open_atomically(target, encoding="utf-8-sig" if marked else "utf-8") as out:
            count = write(out)
        print(f"{count:,} predictions in {target}", file=sys.stderr)
        return count
    except UnicodeDecodeError as error:  # of standard input; files report the line themselves
        raise ValueError(f"standard input is not {error.encoding}: {error}; convert it first") from error


def _run_encoding(run: str) -> str:
    return str(read_json(Path(run, "run.json"), default={}).get("encoding", "utf-8"))


def _read_examples(task: Task, source: str, encoding: str, size: int) -> Iterator[Sequence[Any]]:
    """Yield the examples, `size` at a time; from a terminal one at a time."""
    if source != "-" and Path(source).suffix != ".txt":
        whole = read_examples(source, task, labelled=False, encoding=encoding)
        yield from (whole[at : at + size] for at in range(0, len(whole), size))
        return
    size = 1 if source == "-" and sys.stdin.isatty() else size
    some: list[Any] = []
    for number, line in enumerate(sys.stdin if source == "-" else read_lines(source, encoding), start=1):
        some.append(_read_line(task, line.rstrip("\n"), source, number))
        if len(some) == size:
            yield some
            some = []
    if some:
        yield some


def _read_line(task: Task, line: str, source: str, number: int) -> Any:
    value: Any = line
    if task.kind == "choice":
        first, *choices = line.split("\t")
        value = (first, choices)
    elif task.kind == "questions" or task.pairs:
        value = tuple(line.split("\t"))
    try:
        return to_example(task, value, number)
    except ValueError as error:
        name = "standard input" if source == "-" else source
        problem = str(error).partition(f"input {number} ")[2] or str(error)
        raise BadRow(name, number, problem, "fix or delete the line") from None
