"""The campaigns themselves: outcomes, resuming, broken files, the fuzzer, and the files that fuzzing has found."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from .coverage import Coverage, function_lines
from .damage import draw_file
from .faults import build, judge
from .fuzz import Fuzzer, mutate
from .inputs import judge as judge_input
from .readers import GOLDENS, Reader, list_targets
from .reading import try_reading
from .records import BEGIN, END, LOST, REFUSED, SURVIVED, UNCLEAR, Record, Records, fuzz_rows, render, rows_of, summed

FINDINGS_FOLDER = Path(__file__).parent / "kept"
FINDINGS = sorted(file for file in FINDINGS_FOLDER.rglob("*") if file.is_file())


def slug(name):
    return name.replace(" ", "_").replace(",", "")


@pytest.fixture(scope="module")
def targets(tmp_path_factory):
    return {slug(target.name): target for target in list_targets(tmp_path_factory.mktemp("targets"))}


@pytest.mark.parametrize("file", FINDINGS, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_files_that_fuzzing_found_are_refused_clearly(targets, tmp_path, file):
    target = targets[file.parent.name]
    shutil.copytree(target.folder, tmp_path / "case")
    shutil.copy(file, tmp_path / "case" / target.file)
    kind, message = try_reading(target.read, tmp_path / "case" / target.file)
    assert kind in ("read", "refused"), (kind, message)
    assert kind == "read" or message


def test_results_are_kept_and_counted(tmp_path):
    records = Records(tmp_path / "results.jsonl")
    records.add(Record("kills", "pretrain bert", 0, SURVIVED, figures={"kills": 3}))
    records.add(Record("kills", "pretrain elmo", 0, LOST, "differs"))
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write('{"kind": "kills", "na')  # the campaign was killed here
    again = Records(tmp_path / "results.jsonl")
    assert again.done == {("kills", "pretrain bert", 0), ("kills", "pretrain elmo", 0)}
    again.add(Record("kills", "pretrain bert", 1, "missed"))
    again.add(Record("faults", "full disk: predict bert", 0, UNCLEAR))
    figures = {"executions": 90, "seconds": 3.0, "lines": 4, "of": 5, "kept": 2, "crashes": 1}
    again.add(Record("fuzz", "snappy", 0, LOST, figures=figures))
    rows = rows_of(Records(tmp_path / "results.jsonl").all)
    assert rows[1:] == [["kills", "pretrain bert", "1", "1", "0", "0"], ["kills", "pretrain elmo", "1", "0", "1", "0"]]
    assert summed(rows) == [["faults", "`full disk`", "1", "1", "0", "1"], ["kills", "`pretrain`", "2", "1", "1", "0"]]
    assert fuzz_rows(again.all) == [["`snappy`", "90", "30", "4 / 5", "2", "1"]]
    page = tmp_path / "trust.md"
    page.write_text(f"# T\n\n{BEGIN}\nold\n{END}\n\nand\n\n{BEGIN}\n{END}\n", encoding="utf-8")
    render(page, again.all, "en")
    text = page.read_text(encoding="utf-8")
    assert "| kills | `pretrain` | 2 | 1 | 1 | 0 |" in text and "\n\nSIGKILLs in all: 3.\n\n" in text
    assert "| `snappy` | 90 |" in text and "old" not in text
    render(page, again.all, "en")
    assert page.read_text(encoding="utf-8") == text


def test_a_second_start_goes_on(tmp_path, monkeypatch):
    from . import run

    tried = []

    def cases(kind, folder, seconds):
        names = iter([("a", 0), ("b", 0), ("refused", 0), ("a", 1), ("refused", 1), ("b", 1), ("a", 2)])

        def run_case(name, seed):
            tried.append((name, seed))
            broken = (name, seed) == ("b", 0) and tried.count(("b", 0)) == 1
            return Record(kind, name, seed, REFUSED if name == "refused" else LOST if broken else SURVIVED)

        return names, run_case

    monkeypatch.setattr(run, "campaign", cases)
    for count in (2, 4):
        run.run("kills", tmp_path, count, time.monotonic() + 60, 1.0)
    assert tried == [("a", 0), ("b", 0), ("refused", 0), ("a", 1), ("b", 1)]
    assert rows_of(Records(tmp_path / "results.jsonl").all)[1] == ["kills", "b", "2", "1", "1", "0"]
    for _ in range(2):
        run.run("kills", tmp_path, 4, time.monotonic() + 60, 1.0, again=True)
    assert tried[5:] == [("b", 0)], "what was lost is tried again until it is not"
    assert rows_of(Records(tmp_path / "results.jsonl").all)[1] == ["kills", "b", "2", "2", "0", "0"]


def is_json(data):
    with contextlib.suppress(ValueError):
        json.loads(data)
        return True
    return False


def test_broken_files_are_broken_and_always_the_same():
    valid = {
        "a.json": json.dumps({"sizes": [1, 2, {"deep": None}], "name": "가"}).encode(),
        "a.tsv": "text\tlabel\n좋다\t1\n싫다\t0\n".encode(),
        "a.bin": bytes(range(200)),
    }
    for name, data in valid.items():
        drawn = [draw_file(data, name, number) for number in range(6)]
        assert data not in drawn and len(set(drawn)) > 3
        assert drawn[:3] == [draw_file(data, name, number) for number in range(3)]
        if name == "a.json":
            assert sum(map(is_json, drawn)) > 1, "a grammar keeps the syntax, and changes what it means"


TOY = """
def read(path):
    data = path.read_bytes()
    if data[:1] == b"A":
        if data[1:2] == b"B":
            raise KeyError("here")
        raise ValueError(f"{path}: an A and no B")
    return data
"""


def test_the_fuzzer_reaches_what_is_behind_conditions(tmp_path):
    file = tmp_path / "bert_elmo_jax_toy.py"
    file.write_text(TOY, encoding="utf-8")
    names = {}
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), names)
    (tmp_path / "seed").mkdir()
    (tmp_path / "seed" / "a.bin").write_bytes(b"xx")
    target = Reader("toy", tmp_path / "seed", "a.bin", names["read"], (str(file),), tokens=(b"A", b"B"))
    before = signal.signal(signal.SIGPROF, signal.SIG_DFL)
    try:
        fuzzer = Fuzzer(target, tmp_path / "fuzz", 0)
        figures = fuzzer.run(0.5)
        while not fuzzer.kinds and figures["seconds"] < 20:
            figures = fuzzer.run(0.5)
    finally:
        signal.signal(signal.SIGPROF, before)
    assert figures["lines"] == figures["of"] == len(function_lines(file)) == 6
    assert figures["kinds"] == ["KeyError bert_elmo_jax_toy.py:6"]
    [crash] = [path for path in (tmp_path / "fuzz" / "crashes").iterdir() if path.suffix != ".txt"]
    assert crash.read_bytes().startswith(b"AB")
    assert mutate(b"", b"", random.Random(0), ()) is not None


def test_lines_of_other_files_do_not_count(tmp_path):
    watched = Coverage([Path(__file__)])
    with watched.watching():
        function_lines(Path(__file__))
    assert watched.reached == 0


def test_ends_of_programs_are_judged():
    assert judge("predict: [Errno 28] No space left on device: '/x/out.csv'\n", 2, "/x") == ""
    assert judge("predict: the checkpoint could not be written\n", 2, "/x") == ""
    assert judge("predict: [Errno 28] No space left on device\n", 2, "/x").startswith("no file named")
    assert judge("Traceback (most recent call last):\nKeyError: 3\n", 1, "/x").startswith("1 tracebacks")
    assert judge("", -9, "/x").startswith("ended by signal 9")
    assert judge("some words\n", 1, "/x").startswith("no message")


def test_ends_of_readers_are_judged(tmp_path):
    file = tmp_path / "config.json"
    assert judge_input("read", "", file, "model") == SURVIVED
    assert judge_input("refused", f"{file} is not JSON", file, "model") == SURVIVED
    assert judge_input("refused", "is not JSON", file, "model") == UNCLEAR
    assert judge_input("json", "Expecting value", file, "model") == UNCLEAR
    assert judge_input("KeyError", "config.json: 'a'", file, "model") == LOST
    assert judge_input("hang", "no end", file, "model") == LOST


CALLS = """
import os, time
from pathlib import Path
place = Path({folder!r})
def told(what, call):
    try:
        call()
        print(what, "fine")
    except OSError as error:
        print(what, error.errno)
for number in range(3):
    file = os.open(place / f"{{number}}.txt", os.O_CREAT | os.O_WRONLY)
    told("write", lambda: os.write(file, b"x"))
    told("fsync", lambda: os.fsync(file))
    os.close(file)
told("rename", lambda: os.rename(place / "0.txt", place / "3.txt"))
told("elsewhere", lambda: Path({other!r}).write_text("x"))
told("clock", lambda: None if time.time() < 2e9 else os.close(-1))
"""


@pytest.mark.skipif(shutil.which("cc") is None or sys.platform != "linux", reason="needs a C compiler and LD_PRELOAD")
@pytest.mark.parametrize(
    ("fault", "failing"),
    [
        ({"FAULT_CALL": "write", "FAULT_FIRST": "2", "FAULT_ERRNO": "28"}, {1: "write 28", 2: "write 28"}),
        ({"FAULT_CALL": "fsync", "FAULT_FIRST": "1", "FAULT_COUNT": "1", "FAULT_ERRNO": "5"}, {0: "fsync 5"}),
        ({"FAULT_CALL": "rename", "FAULT_ERRNO": "30"}, {0: "rename 30"}),
        ({"FAULT_CALL": "clock", "FAULT_SHIFT": "1000000000"}, {0: "clock 9"}),
    ],
    ids=lambda value: value.get("FAULT_CALL") if isinstance(value, dict) else None,
)
def test_calls_fail_below_a_folder_only(tmp_path, fault, failing):
    library = build(tmp_path / "built")
    (tmp_path / "inside").mkdir()
    code = textwrap.dedent(CALLS).format(folder=str(tmp_path / "inside"), other=str(tmp_path / "other.txt"))
    environment = {**os.environ, "LD_PRELOAD": str(library), "FAULT_PATH": str(tmp_path / "inside"), **fault}
    environment |= {"FAULT_TALLY": str(tmp_path / "tally")}
    done = subprocess.run([sys.executable, "-S", "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    call = fault["FAULT_CALL"]
    call_lines = [line for line in lines if line.startswith(call)]
    expected = [failing.get(number, f"{call} fine") for number in range(len(call_lines))]
    assert call_lines == expected
    assert all(line.endswith(" fine") for line in lines if not line.startswith(call))
    assert int((tmp_path / "tally").read_text()) >= len(call_lines)


def test_goldens_of_the_readers_are_there():
    assert (GOLDENS / "bert_tiny" / "model.safetensors").is_file()
