"""Records the results that a redesign must not change, as the code at ec2d226 computes them.

    python tests/goldens/before/record.py                          # all records
    python tests/goldens/before/record.py tasks sweeps/tiny        # these kinds, or these records
    python tests/goldens/before/record.py --compare streams        # only compare, and print the differences

`commands.toml` lists the commands and their inputs. `records.json` holds the results, `vectors/` the arrays that `load`
computes. `run_directories/` holds runs that ec2d226 made. This program never overwrites them: their purpose is that
later code still reads them. `--keep` copies a run directory there if it is missing.

The results agree bit for bit on a computer like the one that recorded them. On other computers, or with another JAX,
the comparison allows the differences that the constants below name.
"""

import argparse
import csv
import hashlib
import io
import json
import math
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import tomllib
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
RECORDS = HERE / "records.json"
VECTORS = HERE / "vectors"
RUN_DIRECTORIES = HERE / "run_directories"
TABLE = tomllib.loads((HERE / "commands.toml").read_text(encoding="utf-8"))
KINDS = ("streams", "tasks", "prepared", "sweeps", "loaded")

# Files of a run directory that no later program reads, and that name times or folders.
LEFT_OUT = ("report.html", "events", "lock", "toyworld", "vectors", "compiled", "device.txt", "unheard.jsonl")

# Allowed differences on another computer, relative unless they are called absolute.
VECTOR = 1e-4
PREDICTION = 1e-3
EARLY_LOSS, EARLY_STEPS = 1e-4, 10
LATE_LOSS = 2e-2
SHARE = 0.15  # absolute, of accuracies and other scores from 0 to 1: some held-out examples more or fewer
PARAMETERS = 2e-2  # of an array's norm, after training
PERCENT = 10.0  # absolute, of the figures of a sweep


def names(kinds=KINDS):
    """The names of records, such as `streams/bert_jit`."""
    return [f"{kind}/{name}" for kind in kinds for name in TABLE[kind]]


def machine():
    """The properties of a computer and its software that decide about the last bits of a result."""
    facts = {"system": platform.system(), "machine": platform.machine(), "cpu": platform.processor()}
    information = Path("/proc/cpuinfo")
    if information.is_file():
        lines = [line.partition(":") for line in information.read_text().split("\n\n")[0].splitlines()]
        cpu = {name.strip(): value.strip() for name, _, value in lines}
        facts["cpu"] = " ".join(cpu.get(name, "?") for name in ("vendor_id", "cpu family", "model"))
        prefixes = ("sse", "avx", "amx", "fma", "f16c", "bmi")
        flags = cpu.get("flags", cpu.get("Features", "")).split()
        facts["flags"] = " ".join(sorted(flag for flag in flags if flag.startswith(prefixes)))
    packages = ("jax", "jaxlib", "flax", "optax", "numpy", "sentencepiece")
    return facts | {"python": platform.python_version()} | {name: version(name) for name in packages}


def environment(devices, cache):
    """The variables of a program that is started here: the caller's own settings of JAX have no effect."""
    fixed = dict(TABLE["environment"])
    xla = [fixed.pop("XLA_FLAGS"), f"--xla_force_host_platform_device_count={devices}"]
    older = fixed.pop("XLA_FLAGS_OF_JAX_0_10")
    if version("jaxlib").startswith("0.10."):
        xla.append(older)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_"))}
    return {
        **kept, **fixed, "XLA_FLAGS": " ".join(xla), "JAX_COMPILATION_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT),
        "PYTHONIOENCODING": "utf-8",
    }  # fmt: skip


class Recorder:
    """Runs the commands of records, and keeps a process that loads models (see `measure.py`)."""

    def __init__(self, folder, cache=None):
        self.folder = Path(folder)
        self.cache = Path(cache) if cache else self.folder / "compiled"
        self._turn = threading.Lock()
        self._loader = None

    def close(self):
        """End the process that loads models."""
        if self._loader is not None:
            self._loader.stdin.close()
            self._loader.wait()
            self._loader.stdout.close()
            self._loader = None

    def load(self, asked):
        """The answer of the process that loads models; it answers one request after the other."""
        with self._turn:
            if self._loader is None:
                self._loader = subprocess.Popen(
                    [sys.executable, HERE / "measure.py"], cwd=ROOT, env=environment(1, self.cache),
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8",
                )  # fmt: skip
            self._loader.stdin.write(json.dumps(asked) + "\n")
            self._loader.stdin.flush()
            line = self._loader.stdout.readline()
        reply = json.loads(line) if line else {"error": "the process ended"}
        if "error" in reply:
            raise RuntimeError(f"load({asked['path']}): {reply['error']}")
        return reply["found"]

    def run(self, name):
        """Run the command of a record; the folder of its results."""
        kind, _, short = name.partition("/")
        fields = TABLE[kind][short]
        out = self.folder / kind / short
        out.parent.mkdir(parents=True, exist_ok=True)
        places = TABLE["options"] | {"out": shlex.quote(str(out))}
        module, *options = shlex.split(fields["command"].format_map(places))
        done = subprocess.run(
            [sys.executable, "-m", module, *options], cwd=ROOT, env=environment(fields.get("devices", 1), self.cache),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, encoding="utf-8", check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{name} ended with status {done.returncode}:\n{done.stderr[-3000:]}")
        return out

    def found(self, name):
        """The results of a record, computed now."""
        kind, _, short = name.partition("/")
        fields = TABLE[kind][short]
        if kind == "loaded":
            given = {}
            if fields.keys() & {"encode", "tokens", "sentences"}:
                file = self.folder / "vectors" / f"{short}.npz"
                file.parent.mkdir(parents=True, exist_ok=True)
                given = {"vectors": str(file)}
            return self.load(fields | given)
        out = self.run(name)
        if kind == "prepared":
            files = sorted(file for file in out.rglob("*") if file.suffix == ".npy" or file.parent.name == "tokenizer")
            return {"files": {file.relative_to(out).as_posix(): digest(file) for file in files}}
        if kind == "sweeps":
            return {"table": (out / fields["table"]).read_text(encoding="utf-8")}
        lines = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        found = {"metrics": lines, "params": self.load({"path": str(out)})["params"]}
        if kind == "tasks":
            found["result"] = json.loads((out / "result.json").read_text(encoding="utf-8"))
        return found


def digest(file):
    """The digest of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def read_records():
    """The records: `machines` by number, and `records` by name, each with the number of its machine."""
    if not RECORDS.is_file():
        return {"machines": [], "records": {}}
    return json.loads(RECORDS.read_text(encoding="utf-8"))


def differences(name, found, folder, records=None):
    """A line for each difference between a record and the results found now; `folder` is the recorder's."""
    records = records or read_records()
    kind, _, short = name.partition("/")
    if name not in records["records"]:
        return [f"{name} has no record"]
    known = records["records"][name]
    same = records["machines"][known["machine"]] == machine()
    if same or kind == "prepared":
        return list(_unequal(known["found"], found, name))
    if kind == "sweeps":
        return list(_other_table(known["found"]["table"], found["table"], name))
    lines = list(_far(known["found"], found, name, trained=kind != "loaded"))
    file = VECTORS / f"{short}.npz"
    if kind == "loaded" and file.is_file():
        lines += _far_vectors(file, Path(folder) / "vectors" / file.name, name)
    return lines


def _unequal(known, found, place):
    """Differences of plain values, bit for bit."""
    if isinstance(known, dict) and isinstance(found, dict):
        for key in sorted(known.keys() | found.keys()):
            if key not in found or key not in known:
                yield f"{place}/{key}: {'no longer there' if key in known else 'new'}"
            else:
                yield from _unequal(known[key], found[key], f"{place}/{key}")
    elif isinstance(known, list) and isinstance(found, list) and len(known) == len(found):
        for n, (one, other) in enumerate(zip(known, found)):
            yield from _unequal(one, other, f"{place}/{n}")
    elif known != found and not (known != known and found != found):
        yield f"{place}: {known!r} was recorded, and {found!r} is found"


def _far(known, found, place, trained):
    """Differences of plain values beyond those that another computer may have."""
    if isinstance(known, dict) and isinstance(found, dict):
        if "sha256" in known and "l2" in known:
            yield from _far_array(known, found, place, PARAMETERS if trained else VECTOR)
            return
        for key in sorted(known.keys() | found.keys()):
            if key not in found or key not in known:
                yield f"{place}/{key}: {'no longer there' if key in known else 'new'}"
            elif key == "metrics":
                yield from _far_metrics(known[key], found[key], f"{place}/{key}")
            else:
                yield from _far(known[key], found[key], f"{place}/{key}", trained)
    elif isinstance(known, list) and isinstance(found, list) and len(known) == len(found):
        for n, (one, other) in enumerate(zip(known, found)):
            yield from _far(one, other, f"{place}/{n}", trained)
    elif isinstance(known, float) and isinstance(found, float | int):
        allowed = SHARE if trained else PREDICTION
        if not (math.isclose(known, found, rel_tol=allowed, abs_tol=allowed) or (known != known and found != found)):
            yield f"{place}: {known!r} was recorded, and {found!r} is found"
    elif known != found and not trained:
        yield f"{place}: {known!r} was recorded, and {found!r} is found"


def _far_array(known, found, place, allowed):
    """Differences of two summaries of arrays."""
    for field in ("shape", "dtype"):
        if known[field] != found[field]:
            yield f"{place}: {field} {known[field]} was recorded, and {found[field]} is found"
            return
    scale = known["l2"] * max(1.0, math.sqrt(math.prod(known["shape"])))
    for field, size in (("l2", known["l2"]), ("sum", scale)):
        if abs(known[field] - found[field]) > allowed * size + 1e-6:
            yield f"{place}: {field} {known[field]!r} was recorded, and {found[field]!r} is found"


def _far_metrics(known, found, place):
    """Differences of two files of metrics, line by line: the first steps are near, later ones drift apart."""
    if len(known) != len(found):
        yield f"{place}: {len(known)} lines were recorded, and {len(found)} are found"
        return
    for one, other in zip(map(json.loads, known), map(json.loads, found)):
        if one.keys() != other.keys() or one.get("step") != other.get("step"):
            yield f"{place}: {one} was recorded, and {other} is found"
            continue
        allowed = EARLY_LOSS if one.get("step", 0) <= EARLY_STEPS else LATE_LOSS
        for key, value in one.items():
            if not isinstance(value, float) or not isinstance(other[key], float):
                near = value == other[key]
            elif "loss" in key or "perplexity" in key or "rate" in key:
                near = math.isclose(value, other[key], rel_tol=allowed, abs_tol=1e-6)
            elif "norm" in key:
                near = math.isclose(value, other[key], rel_tol=10 * allowed, abs_tol=1e-6)
            else:
                near = math.isclose(value, other[key], rel_tol=allowed, abs_tol=SHARE)
            if not near:
                yield f"{place}, step {one.get('step')}: {key} {value!r} was recorded, and {other[key]!r} is found"


def _far_vectors(file, other, place):
    """Differences of the numbers of two files of arrays."""
    with np.load(file) as known, np.load(other) as found:
        for name in known.files:
            if name not in found.files or known[name].shape != found[name].shape:
                yield f"{place}/{name}: its shape differs, or it is no longer there"
                continue
            one, two = known[name].astype(np.float64), found[name].astype(np.float64)
            far = float(np.abs(one - two).max(initial=0.0))
            if far > VECTOR * max(1.0, float(np.abs(one).max(initial=0.0))):
                yield f"{place}/{name}: numbers are up to {far:.3g} apart"


def _other_table(known, found, place):
    """Differences of two tables of comma-separated values, beyond those that another computer may have."""
    lines, others = (list(csv.reader(io.StringIO(text))) for text in (known, found))
    if [len(line) for line in lines] != [len(line) for line in others]:
        yield f"{place}: the tables have other lines or columns:\n{known}\n{found}"
        return
    for line, other in zip(lines, others):
        for one, two in zip(line, other):
            try:
                near = abs(float(one) - float(two)) <= PERCENT
            except ValueError:
                near = one == two
            if not near:
                yield f"{place}: {one!r} was recorded, and {two!r} is found, in {', '.join(line)}"


def keep(name, out):
    """Copy a run directory to those that later code must read, if it is missing there."""
    kind, _, short = name.partition("/")
    kept = TABLE[kind][short].get("keep")
    if kept and not (RUN_DIRECTORIES / kept).exists():
        shutil.copytree(out, RUN_DIRECTORIES / kept, ignore=shutil.ignore_patterns(*LEFT_OUT))


def write(name, found, folder):
    """Write a record, and leave the others unchanged."""
    records = read_records()
    here = machine()
    if here not in records["machines"]:
        records["machines"].append(here)
    records["records"][name] = {"machine": records["machines"].index(here), "found": found}
    used = sorted({record["machine"] for record in records["records"].values()})
    records["machines"] = [records["machines"][n] for n in used]
    for record in records["records"].values():
        record["machine"] = used.index(record["machine"])
    records["records"] = dict(sorted(records["records"].items()))
    text = json.dumps(records, ensure_ascii=False, indent=1, sort_keys=True)
    RECORDS.write_text(text + "\n", encoding="utf-8")
    kind, _, short = name.partition("/")
    made = Path(folder) / "vectors" / f"{short}.npz"
    if kind == "loaded" and made.is_file():
        VECTORS.mkdir(exist_ok=True)
        shutil.copyfile(made, VECTORS / made.name)


def main():
    """Record, or compare; the exit status is 1 if a comparison finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="kinds (streams, …) or records (streams/bert_jit); all if none")
    parser.add_argument("--compare", action="store_true", help="compare with the records, and write nothing")
    parser.add_argument("--keep", action="store_true", help="copy run directories that are missing")
    options = parser.parse_args()
    chosen = [name for name in names() if not options.names or {name, name.partition("/")[0]} & set(options.names)]
    if unknown := set(options.names) - set(names()) - set(KINDS):
        parser.error(f"there is no record {', '.join(sorted(unknown))}; there are: {', '.join(names())}")
    different = False
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as threads:
        recorder = Recorder(folder)
        try:
            # A fine-tuning begins with the run directories of the streams, so a kind waits for the one before it.
            for kind in KINDS:
                now = [name for name in chosen if name.startswith(f"{kind}/")]
                for name, found in zip(now, threads.map(recorder.found, now)):
                    if options.keep:
                        keep(name, Path(folder, *name.split("/")))
                    if options.compare:
                        lines = differences(name, found, folder)
                        different = different or bool(lines)
                        print("\n".join([f"{name}: {len(lines)} differences", *lines[:10]]), flush=True)
                    else:
                        write(name, found, folder)
                        print(f"{name}: recorded", flush=True)
        finally:
            recorder.close()
    return int(different)


if __name__ == "__main__":
    sys.exit(main())
