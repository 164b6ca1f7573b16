"""The program as people run it: processes, requests to stop, bad files, a full disk.

tests/campaigns/test_kills.py kills it.
"""

import gzip
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bert_elmo_jax.data.corpora.run_preparation import print_report
from bert_elmo_jax.data.corpora.runners import ray_runner
from bert_elmo_jax.data.corpora.store import open_store

from .programs import Done, run_program

ROOT = Path(__file__).parents[2]


def run(*flags):
    """Run the program in this process; with several workers in its own, because a fork of JAX's threads may hang."""
    if "--workers=1" in flags:
        return run_program("prepare_data", *flags)
    done = subprocess.run(command(*flags), cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def command(*flags):
    return [sys.executable, "-m", "experiments.prepare_data", *map(str, flags)]


def start(*flags, **options):
    return subprocess.Popen(command(*flags), cwd=ROOT, stdout=subprocess.DEVNULL, text=True, **options)


def test_many_unknown_words_are_remarked_on(capsys):
    counts = {"documents": 9, "sentences": 90, "words": 900, "tokens": 1000, "unknown": 172}
    manifest = {
        "sources": [{"bytes": 1_200_000}], "shards": [{}], "skipped": {},
        "tokenizer": {"kind": "words", "vocab_size": 20_000}, "counts": {"train": counts, "heldout": counts},
    }  # fmt: skip
    print_report(manifest, "corpora/novel", 3.0, expects_heldout=True)
    output = capsys.readouterr().out
    assert (
        "17% of the text is words outside the vocabulary of 20,000: a model of characters reads them, but predicts"
        in output
    )
    assert "a larger --vocab_size" in output
    assert "no text is held out" not in output
    counts["unknown"] = 99
    print_report(manifest, "corpora/novel", 3.0, expects_heldout=True)
    assert "outside the vocabulary" not in capsys.readouterr().out


def test_words_of_a_given_vocabulary_are_split_by_its_rule(tmp_path):
    (tmp_path / "a.txt").write_text("It's dog-eared, isn't it?\n\n" * 3)
    flags = [f"--input={tmp_path}/a.txt", "--heldout=0", "--workers=1"]
    first = run(*flags, "--tokenizer=words", "--word_rule=whitespace", f"--output={tmp_path}/first")
    again = [*flags, f"--tokenizer={tmp_path}/first", f"--output={tmp_path}/second"]  # or its tokenizer/
    refused = run(*again, "--word_rule=punctuation")
    assert refused.status == 2 and "were split by whitespace; leave --word_rule out" in refused.err
    second = run(*again)
    assert (first.status, second.status) == (0, 0), second.err
    stores = [open_store(tmp_path / name) for name in ("first", "second")]
    assert [len(store[0][0]) for store in stores] == [4, 4] and stores[1].counts["unknown"] == 0
    assert json.loads((tmp_path / "second" / "tokenizer" / "words.json").read_text()) == {"rule": "whitespace"}


def tree(folder):
    """Return every file of a store with the hash of its bytes."""
    paths = (p for p in folder.rglob("*") if p.is_file() and p.name != ".lock")
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in paths}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Write 2 MB of English and Korean documents in three kinds of file."""
    coins = random.Random(5)
    words = ["".join(coins.choices("abcdefgh", k=coins.randint(1, 7))) for _ in range(800)]
    words += ["".join(coins.choices("가나다라마바사아자차카타파하강산", k=coins.randint(1, 4))) for _ in range(800)]
    folder = tmp_path_factory.mktemp("text")

    def document():
        return "\n".join(" ".join(coins.choices(words, k=coins.randint(3, 20))) + "." for _ in range(20))

    (folder / "a.txt").write_text("\n\n".join(document() for _ in range(400)), encoding="utf-8")
    (folder / "b.txt.gz").write_bytes(gzip.compress("\n\n".join(document() for _ in range(200)).encode()))
    records = "".join(json.dumps({"text": document()}, ensure_ascii=False) + "\n" for _ in range(200))
    (folder / "c.jsonl").write_text(records, encoding="utf-8")
    return folder


def flags_for(text, output, tokenizer, *more):
    inputs = [f"--input={text / name}" for name in ("a.txt", "b.txt.gz", "c.jsonl")]
    sizes = ["--vocab_size=600", "--shards=6", "--heldout=0.05"]
    return [*inputs, f"--output={output}", f"--tokenizer={tokenizer}", *sizes, *more]


@pytest.fixture(scope="module", params=["wordpiece", "words"])
def undisturbed(request, text, tmp_path_factory):
    """Return the kind and the files of an undisturbed run."""
    output = tmp_path_factory.mktemp("undisturbed") / request.param
    done = run(*flags_for(text, output, request.param, "--workers=1"))
    assert done.status == 0, done.err
    inputs = " ".join(str(text / name) for name in ("a.txt", "b.txt.gz", "c.jsonl"))
    assert done.out.startswith(f"Preparing {inputs} -> {output}, on 1 process of this machine\n")
    assert "train" in done.out and "MB/s" in done.out
    return request.param, tree(output)


@pytest.mark.parametrize("way", ["--workers=2", pytest.param("--runner=ray", marks=pytest.mark.long)])
def test_the_number_and_kind_of_workers_changes_no_byte(text, tmp_path, undisturbed, way):
    if "ray" in way:
        pytest.importorskip("ray", reason="needs the extra `cluster`")
    kind, expected = undisturbed
    done = run(*flags_for(text, tmp_path / "out", kind, way))
    assert done.status == 0, done.err
    assert tree(tmp_path / "out") == expected


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*JAX is multithreaded:RuntimeWarning")  # where a test before this one used it
def test_on_ray_a_stop_is_still_the_callers_to_answer():
    pytest.importorskip("ray", reason="needs the extra `cluster`")

    def answer(*_):
        """The caller's answer to a request to stop."""

    heard, before = [], signal.signal(signal.SIGTERM, answer)
    try:
        ray_runner()(print, ["a job"], lambda size: heard.append(signal.getsignal(signal.SIGTERM)))
        heard.append(signal.getsignal(signal.SIGTERM))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert len(heard) > 1
    assert set(heard) == {answer}


BAD = {
    "nul": ("a.txt", b"fine\nx\0y\n", "a.txt, line 2: a NUL byte"),
    "bytes": ("a.txt", b"fine\n\xff\xfe\n", "a.txt, line 2: invalid UTF-8"),
    "truncated": ("a.txt.gz", gzip.compress(os.urandom(5000).hex().encode())[:-900], "a.txt.gz, line 1: a damaged"),
    "record": ("a.jsonl", b'{"text": "a"}\n{"txt": "a"}\n', "a.jsonl, line 2: no field 'text'"),
    "empty": ("a.txt", b"", "a.txt: an empty file"),
    "blank": ("a.txt", b"\n \n\n", "a.txt: only blank lines"),
    "columns": ("a.csv", "후기,평가\n좋다,1\n".encode(), "a.csv, line 1: no column 'text' among '후기', '평가'"),
    "return": ("a.txt", b"one\rtwo\n", "a.txt, line 1: a carriage return inside a line"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_ends_in_one_line_and_status_2(tmp_path, name):
    file, data, message = BAD[name]
    (tmp_path / file).write_bytes(data)
    paths = [f"--input={tmp_path / file}", f"--output={tmp_path / 'out'}"]
    done = run(*paths, "--tokenizer=words", "--workers=1", "--vocab_size=10")
    assert done.status == 2
    last = done.err.splitlines()[-1]
    assert message in last
    assert "; " in last.split(message)[1]  # a remedy
    assert "Traceback" not in done.err
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.long
@pytest.mark.parametrize("undisturbed", ["words"], indirect=True)
def test_a_full_disk_is_one_line_and_later_it_goes_on(text, tmp_path, undisturbed):
    kind, expected = undisturbed
    flags = flags_for(text, tmp_path / "out", kind, "--workers=1")
    little_room = ["sh", "-c", 'ulimit -f 50 && exec "$@"', "sh", *command(*flags)]  # 25 or 50 kB a file
    done = subprocess.run(little_room, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 2
    assert "File too large" in last and "the same command resumes from here" in last
    assert run(*flags).status == 0
    assert tree(tmp_path / "out") == expected


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.long), signal.SIGTERM])
def test_two_at_once_are_refused_and_a_stop_says_how_to_go_on(text, tmp_path, number):
    flags = flags_for(text, tmp_path / "out", "wordpiece", "--workers=1")
    first = start(*flags, stderr=subprocess.PIPE)
    while not (tmp_path / "out" / "plan.json").exists():
        assert first.poll() is None
        time.sleep(0.01)
    second = run(*flags)
    assert second.status == 2 and "another preparation is writing" in second.err
    while not (tmp_path / "out" / "tokenizer").exists():
        assert first.poll() is None
        time.sleep(0.01)
    first.send_signal(number)
    _, errors = first.communicate()
    assert first.returncode == 130
    assert "the same command resumes from here" in errors and "Traceback" not in errors


@pytest.mark.long
def test_memory_does_not_grow_with_the_corpus(tmp_path):
    """With 1 GB in one file and two workers, all processes together stay under 1.5 GB."""
    coins = random.Random(1)
    words = ["".join(coins.choices("abcdefghijklmnop", k=coins.randint(2, 9))) for _ in range(50_000)]
    phrases = [" ".join(coins.choices(words, k=14)) for _ in range(20_000)]
    size, number = 0, 0
    with open(tmp_path / "a.txt", "w") as out:
        while size < 1 << 30:  # each line with a word of its own, so that counting them has no end
            numbers = range(number, number := number + 30)
            lines = (f"{phrases[n * 7919 % 20_000]} {n * 2_654_435_761 % 10**9}\n" for n in numbers)
            size += out.write("".join(lines) + "\n")
    paths = [f"--input={tmp_path / 'a.txt'}", f"--output={tmp_path / 'out'}"]
    process = start(*paths, "--tokenizer=words", "--workers=2", "--vocab_size=50000", stderr=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        peak = max(peak, family_memory(process.pid))
        time.sleep(0.3)
    print(f"peak of all processes together: {peak / 1e9:.2f} GB")
    assert process.returncode == 0
    assert 5e7 < peak < 1.5e9


def family_memory(pid):
    """Return the bytes held by a process and its descendants, with shared pages counted once (PSS)."""
    total = 0
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    total += sum(int(line.split()[1]) * 1024 for line in rollup if line.startswith("Pss:"))
    return total + sum(family_memory(int(child)) for child in children)
