"""Where the runs of a sweep and their data lie, and the command and the job of each run."""

import contextlib
import hashlib
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from bert_elmo_jax.files import lock, read_json, write_json
from bert_elmo_jax.programs import show_program
from bert_elmo_jax.runs.config_files import NAMED, override, show_value
from bert_elmo_jax.runs.finetuning import finetune
from bert_elmo_jax.runs.language_model import TUNED
from bert_elmo_jax.runs.pretraining import pretrain
from bert_elmo_jax.runs.start_run import Call
from bert_elmo_jax.sweeps.definition import Sweep
from bert_elmo_jax.sweeps.points import FLAGS, PATHS, Adapted, File, Point, Step, identify, record_name
from bert_elmo_jax.sweeps.runners import Job

DONE = {"pretrain": "report.html", "finetune": "result.json"}  # written last
HASHES = "data.json"  # in the working directory: hashes of the data that its runs have read
# The fields that decide which vectors a run reads.
TEXTS = ("network", "encoder", "task", "text", "pair", "label", "encoding", "train", "dev", "share", "max_length")
CALLS: Mapping[str, Call] = {"pretrain": pretrain, "finetune": finetune}
ABOUT = """\
# {title}{scale}: {left} commands that are not done, of {all}, in {stages} stages.
# The commands of a stage may run side by side, on any machines that share this file system; a stage needs those before
# it. Run them in the folder of the checkout. With Slurm, stage N as an array (its commands are the lines of the file):
#   grep -v '^#' stage_N.sh > commands.txt
#   sbatch --array=1-$(wc -l < commands.txt) --gres=gpu:1 --dependency=afterok:JOB_OF_STAGE_BEFORE \\
#       --wrap='eval "$(sed -n "${{SLURM_ARRAY_TASK_ID}}p" commands.txt)"'
# Start a command again after it was stopped or killed, and it continues. The sweep finds finished runs and what they
# cost; when all are done, this writes the table:
#   {command}"""


@dataclass(frozen=True)
class Folders:
    """The folders of one working directory, and of the data given with `--data`."""

    workdir: Path
    data: Path | None = None
    calls: Mapping[str, Call] = field(default_factory=lambda: CALLS)
    track: tuple[str, ...] = ()  # trackers that have records of the runs
    _runs: dict[str, Path] = field(default_factory=dict, repr=False)  # those that exist
    _listed: dict[int, dict[str, list[Path]]] = field(default_factory=dict, repr=False)

    def run(self, point: Point) -> Path:
        """Return the run directory of a point: an existing one of the same identity, or a new one."""
        if point.identity not in self._runs:
            existing = self._list_runs().get(point.identity)
            if not existing:
                name = re.sub(r"[^\w.+=]+", "-", point.name).strip("-")
                name = name.encode()[:160].decode(errors="ignore")  # a file's name may have 255 bytes
                return self.workdir / "points" / f"{name}-{point.identity}"
            self._runs[point.identity] = min(existing, key=lambda run: (not (run / DONE[point.program]).is_file(), run))
        return self._runs[point.identity]

    def claim(self, point: Point) -> Path:
        """Make the run directory of a point; sweeps that start the same point at once agree on its name."""
        with self.locked():
            self._listed.clear()
            run = self.run(point)
            run.mkdir(parents=True, exist_ok=True)
            self._move_records(point)
        return run

    def locked(self) -> contextlib.AbstractContextManager[None]:
        """Wait for, and then keep out, other sweeps in the working directory."""
        self.workdir.mkdir(parents=True, exist_ok=True)
        return lock(self.workdir / "points.lock", wait=True)

    def file(self, file: File) -> Path:
        """Return the path of a data file."""
        root = self.workdir / "tasks" if file.made else self.data
        return (root or Path("DATA")) / file.name

    def is_done(self, point: Point) -> bool:
        """Return whether a point needs no more work: the last file that its program writes is there."""
        return (self.run(point) / DONE[point.program]).is_file()

    def job(self, point: Point) -> Job:
        """Return the job that runs a point."""
        fields, options = {}, {}
        for name, value in point.settings.items():
            if name in FLAGS[point.program]:
                options[name] = self.locate(value)
            elif name in PATHS and isinstance(value, list | tuple):
                fields[name] = ",".join(str(self.locate(each)) for each in value)
            else:
                fields[name] = show_value(self.locate(value))
        if self.track and point.program in ("pretrain", "finetune"):
            options["track"] = self.track
        if cache := self.cache(point):
            fields["cache"] = str(cache)
        return Job(point.identity, self.calls[point.program], point.config, fields, str(self.run(point)), options)

    def config(self, point: Point) -> ConfigDict:
        """Return the config of a point, with the paths of files and runs."""
        config = point.resolved.copy_and_resolve_references()
        override(config, [f"{name}={text}" for name, text in self.job(point).fields.items()])
        return config

    def cache(self, point: Point) -> Path | None:
        """Return the folder of vectors that runs share if they read the same texts with one frozen encoder."""
        if not isinstance(point.settings.get("encoder"), Point) or point.resolved.adapt.epochs:
            return None  # an adapted encoder is the run's own
        fields = [str(point.resolved[name]) for name in TEXTS if name in point.resolved]
        # Also the hashes of what it and the encoder have read: vectors of earlier contents stay in their own folder.
        hashes = read_json(self.workdir / HASHES, default={}).get("runs", {})
        texts = map(record_name, point.sources("train", "dev"))
        fields += [str(hashes.get(point.identity, {}).get(name)) for name in texts]
        fields += map(str, sorted(hashes.get(point.beginnings["encoder"].identity, {}).items()))
        return self.workdir / "vectors" / hashlib.sha256("\n".join(fields).encode()).hexdigest()[:12]

    def command(self, point: Point) -> str:
        """Return the shell command that makes a point."""
        return write_command(point.program, self.job(point))

    def locate(self, value: Any) -> Any:
        """Return a setting's value with points and files replaced by their paths."""
        if isinstance(value, Point):
            return str(self.run(value))
        if isinstance(value, Step):
            return str(self.run(value.point) / "checkpoints" / str(value.step))
        if isinstance(value, Adapted):
            return str(self.run(value.point) / TUNED)
        return str(self.file(value)) if isinstance(value, File) else identify(value)

    def _move_records(self, point: Point) -> None:
        """Correct the paths of runs in the records of a begun point: the working directory may have been elsewhere."""
        runs = [self.run(each).relative_to(self.workdir).as_posix() for each in (point, *point.needs)]
        recorded_path = re.compile(rf".*/({'|'.join(map(re.escape, runs))})((?:/.*)?)")

        def correct(value: Any) -> Any:
            if isinstance(value, Mapping):
                return {name: correct(field_value) for name, field_value in value.items()}
            if not isinstance(value, str) or not Path(value).is_absolute():
                return value
            match = recorded_path.fullmatch(value)
            return value if match is None else f"{self.workdir / match[1]}{match[2]}"

        # A worker that outlives a killed sweep for a moment may still remove folders, which `rglob` would not bear.
        for folder, _, names in os.walk(self.run(point)):
            if "run.json" in names:
                file = Path(folder, "run.json")
                with contextlib.suppress(OSError, ValueError):  # the run itself refuses a damaged record
                    record = read_json(file)
                    if (corrected := correct(record)) != record:
                        write_json(file, corrected)

    def _list_runs(self) -> dict[str, list[Path]]:
        """Return all run directories by identity; the folder is read again when it has changed."""
        folder = self.workdir / "points"
        stamp = folder.stat().st_mtime_ns if folder.is_dir() else 0
        if stamp not in self._listed:
            self._listed.clear()
            runs = self._listed[stamp] = {}
            for run in folder.iterdir() if stamp else ():
                runs.setdefault(run.name.rpartition("-")[2], []).append(run)
        return self._listed[stamp]


def write_command(program: str, job: Job) -> str:
    """Return the shell command that does the same as a job."""
    flags = NAMED if program == "finetune" else ()
    words = [f"--config={job.config}"]
    words += [f"--{'' if name in flags else 'config.'}{name}={text}" for name, text in job.fields.items()]
    words += [f"--{name}={','.join(text) if isinstance(text, tuple) else text}" for name, text in job.options.items()]
    return f"{show_program(program)} {shlex.join([*words, f'--workdir={job.workdir}'])}"


def write_commands(sweep: Sweep, folders: Folders, command: str) -> str:
    """Return the commands of all points that are not done, one per line, with comments on how to run them."""
    depth: dict[str, int] = {}  # the length of the chain of points that each needs
    for point in sweep.points:  # needs come first
        depth[point.identity] = 1 + max((depth[need.identity] for need in point.needs), default=-1)
    levels = range(max(depth.values()) + 1)
    stages = [[point for point in sweep.points if depth[point.identity] == level] for level in levels]
    left = [[point for point in stage if not folders.is_done(point)] for stage in stages]
    local, number = re.sub(r"--?runner[= ]print", "--runner=local", command), sum(map(len, left))
    counts = {"left": number, "all": len(sweep.points), "stages": len(stages)}
    lines = [
        ABOUT.format(title=sweep.title, scale=f", scale {sweep.scale}" if sweep.scale else "", command=local, **counts)
    ]
    for stage_number, stage in enumerate(left, start=1):
        lines += [f"\n# stage {stage_number}: {len(stage)} commands", *map(folders.command, stage)]
    return "\n".join(lines)
