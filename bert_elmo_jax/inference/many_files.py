"""Several input files shared out over processes or a Ray cluster; each has an output file of its own."""

import os
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bert_elmo_jax.data.corpora.runners import Report, local_runner, ray_runner
from bert_elmo_jax.data.tasks.files import check_file, list_files
from bert_elmo_jax.inference.output_file import find_record
from bert_elmo_jax.progress_bars import progress_bar, replace_bars


@dataclass(frozen=True)
class FileJob:
    """One call for one input file of so many bytes: `call(model, source, target, **options)`."""

    call: Callable[..., int]
    model: str
    source: str
    target: str
    options: Mapping[str, Any]
    size: int


def share_files(
    call: Callable[..., int],
    model: str,
    source: str,
    target: str,
    options: Mapping[str, Any],
    *,
    workers: int = 1,
    runner: str = "local",
    ray_address: str | None = None,
    gpus: float = 0.0,
) -> None:
    """Call `predict_file` or `extract` for all files of `source`, or, with a `*` in `target`, for each alone.

    `*` stands for the name of the input without its ending. The files are then shared out over `workers` processes of
    this machine, or, with `runner="ray"`, over a cluster that shares its files and reserves `gpus` for each. Each file
    is written as by a call of its own: a file that is complete is left alone, and the same call continues those that
    were stopped. Outputs of an earlier call that `source` matches are no inputs.
    """
    if not check_shared(target, workers, runner, ray_address, gpus):
        call(model, source, target, **options)
        return
    target = os.path.expanduser(target)  # noqa: PTH111 -- keeps the spelling
    files = leave_out_outputs(list_files(source), target)
    jobs = [
        FileJob(call, model, file, output, options, Path(file).stat().st_size if check_file(file).is_file() else 0)
        for file, output in zip(files, name_outputs(files, target))
    ]
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    run = ray_runner(ray_address, gpus) if runner == "ray" else local_runner(workers)
    with progress_bar(sum(job.size for job in jobs), f"{len(jobs)} files", "B", unit_scale=True) as bar:
        run(work, jobs, bar.update)
    print(f"{target}: the outputs of {len(jobs)} files", file=sys.stderr)


def name_outputs(files: Sequence[str], target: str) -> list[str]:
    """Return the output of each file: the pattern with the file's name, without its ending, in place of `*`.

    >>> name_outputs(["may/a.csv", "june/b.csv"], "predictions/*.jsonl")
    ['predictions/a.jsonl', 'predictions/b.jsonl']
    """
    if "*" not in Path(target).name or target.count("*") > 1:
        raise ValueError(f"--output={target}: expected one * in the name of the file, such as predictions/*.csv")
    stems: dict[str, str] = {}
    for file in files:
        stem = Path(file).stem
        if stem in stems:
            raise ValueError(
                f"--output={target}: {stems[stem]} and {file} would both be written to {target.replace('*', stem)}; "
                "rename one, or predict them one after the other"
            )
        stems[stem] = file
    return [target.replace("*", stem) for stem in stems]


def leave_out_outputs(files: Sequence[str], target: str) -> list[str]:
    """Return the files that are not outputs of an earlier call; raise if an output would replace an input."""
    sources = defaultdict[str, list[str]](list)  # the files by the path of their output
    for file in files:
        sources[os.path.realpath(target.replace("*", Path(file).stem))].append(file)
    inputs = []
    for file in files:
        path = os.path.realpath(file)
        output = path.removesuffix(".skipped.jsonl").removesuffix(".partial")
        source = next((name for name in sources.get(output, ()) if name != file), None)
        if source is None:
            inputs.append(file)
        elif output == path and not find_record(Path(path)).is_file():
            raise ValueError(
                f"--output={target}: the output of {source} would replace {file}, another input: give another name, "
                "or leave one of the two out"
            )
    if len(inputs) < len(files):
        left_out = f"{len(files) - len(inputs)} of {len(files)} files"
        print(f"{left_out} left out of the input: an earlier run of this command wrote them", file=sys.stderr)
    return inputs


def check_shared(target: str, workers: int, runner: str, ray_address: str | None, gpus: float) -> bool:
    """Return True if `target` names an output for each file; raise for flags that mean nothing without one."""
    if "*" in target:
        if runner == "local" and (ray_address or gpus):
            raise ValueError("--ray_address and --gpus are for --runner=ray: add it, or leave them out")
        return True
    if workers > 1 or runner != "local" or ray_address or gpus:
        raise ValueError(
            f"--workers, --runner=ray and --gpus share out input files, and each needs an output of its own: in place "
            f"of --output={target}, give --output='predictions/*.csv', where * stands for the name of the input"
        )
    return False


def work(job: FileJob, report: Report) -> None:
    """Do a job; `report` takes the bytes that are done, and may raise to stop it."""
    with replace_bars(lambda: report(0)):
        job.call(job.model, job.source, job.target, **job.options)
    report(job.size)
