"""Every command of README, docs/ and the docstrings of experiments/ starts and makes its first step, at toy size."""

import ast
import contextlib
import functools
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
from typing import NamedTuple

import pytest

from .campaigns.server import Server
from .command_files import DEEP, write_command_files
from .simulated_devices import program_environment
from .sweeps.toy_runs import one_device
from .test_pages import PAGES, ROOT, read

SPAN = re.compile(r"`([^`]+)`")
STARTED = re.compile(r"(?:echo [^|\n]*\| )?python -m experiments\..*")
# Placeholders that a reader fills in.
FILLED = {
    "--sweep=…": "--sweep=elmo_table2",
    "--train=… --dev=…": "--train=rte/train.tsv --dev=rte/dev.tsv",
    "=/shared/": "=shared/",
    "=s3://my-bucket/": "=",  # tests/buckets/test_s3.py has a server
}
UNFILLED = {"python -m experiments.pretrain …", "python -m experiments.pretrain --config=…"}


def find_commands(text):
    """Return the commands of a text: from code spans, which may have two lines, and from lines, with continuations."""
    commands = []
    text = re.sub(r"^```.*$", "", text, flags=re.M)
    for paragraph in text.split("\n\n"):
        commands += [" ".join(span.split()) for span in SPAN.findall(paragraph) if STARTED.search(span)]
        lines = re.sub(r"\s*\\\n\s*", " ", SPAN.sub("", paragraph)).splitlines()
        commands += [re.sub(r"\s#\s.*$", "", line) for line in lines]
    return [started[0].strip() for command in commands if (started := STARTED.search(command))]


def read_docstrings(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    nodes = [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef))]
    return "\n\n".join(filter(None, map(ast.get_docstring, nodes)))


def collect():
    """Return the places of each command."""
    texts = {str(page): read(page) for page in PAGES}
    files = sorted((ROOT / "experiments").rglob("*.py"))
    texts |= {str(file.relative_to(ROOT)): read_docstrings(file) for file in files}
    places = {}
    for place, text in texts.items():
        for command in find_commands(text):
            places.setdefault(command, []).append(place)
    return places


COMMANDS = {command: places for command, places in collect().items() if command not in UNFILLED}
TRAINING = {"log_every": 1, "batch_size": 2}
PRETRAINING = {**TRAINING, "steps": 2, "eval_every": 2, "checkpoint_every": 2, "eval_batches": 1,
               "toyworld.documents": 60}  # fmt: skip
BERT = {"length": 16, "long_length": 32, "long_batch_size": 2, "accumulate": 1}
BERT_SIZES = {"num_layers": 2, "hidden_size": 8, "num_heads": 2, "feed_forward_size": 8, "max_positions": 32}
ELMO = {"length": 4, "negatives": 8}
ELMO_SIZES = {"cell_size": 8, "projection_size": 4, "filters": "((1,4),(2,4))"}
AWD_LSTM = {"length": 8, "spread": 1}
AWD_LSTM_SIZES = {"embedding_size": 8, "cell_size": 8, "num_layers": 2}
PAIRS = {"length": 24, "target_length": 24, "translations": 2, "average": 1, "keep": 1, "toyworld.heldout": 0.3}
PAIR_SIZES = {"num_layers": 1, "hidden_size": 8, "num_heads": 2, "feed_forward_size": 8, "max_positions": 32}
FINETUNING = {**TRAINING, "batch_size": 8, "epochs": 1}
NETWORK = {"lstm_size": 4, "word_size": 4, "adapt.batch_size": 4}
PARSER = {"hidden_size": 4, "word_size": 4}
ULMFIT = {"preset": "toy", "lm.epochs": 1, "lm.batch_size": 2, "lm.length": 8, "lm.spread": 1}
READER = {"max_length": 32, "longest_answer": 4}
BENCHMARKS = {
    "attention": ["--steps=3"],
    "ceilings": ["--share=0.01", "--places=400", "--topics=4", "--words=4"],
    "packing": ["--preset=tiny", "--lengths=64", "--positions=128", "--repeats=1"],
    "pipeline": ["--documents=60", "--positions=512", "--batches=1", "--steps=tiny"],
    "predict": ["--preset=tiny", "--sentences=4", "--repeats=1"],
    "prepare": ["--megabytes=0.1", "--pairs=1", "--workers=1"],
    "sampled_softmax": ["--words=100", "--width=8", "--positions=4", "--negatives=8", "--repeats=1"],
    "speed": ["--tiny", "--turns=1", "--peak=1"],
    "versions": ["--tiny", "--turns=1", "--pairs=1", "--what=tagger", f"--base={ROOT}"],
}  # fmt: skip
# Words of commands that read upper layers of a BERT, which need a model of twelve.
UPPER_LAYERS = {"--layers=9,12", "--config=finetune:entities_features"}
WRITTEN = ("workdir", "output", "to", "new")  # flags that name a program's output
NO_FILES = ("onnx", "stablehlo", "my-name/reviews")  # formats of an export and repositories, which `--to` names, too
# Commands that cannot do here what they are for: their exit status, a part of their message, and why.
REFUSED = {
    "--peer_python=/path/to/python": (2, "No such file or directory: '/path/to/python'", "the peers are not installed"),
    "--fastai_python=/path/to/python": (2, "No such file or directory: '/path/to/python'", "fastai is not installed"),
    "--topology=h": (2, "pip install 'bert_elmo_jax[gpu]'", "XLA's compiler for GPUs is not installed"),
    "benchmarks.gpu_steps": (2, "--cases=tiny tries the program without a GPU", "there is no GPU"),
    "benchmarks.gpu_kernels --output": (2, "--interpret --rows=64 checks the values here", "there is no GPU"),
    "benchmarks.speed --gpu": (2, "lacks torch, transformers", "the peers are not installed"),
    "benchmarks.torch_gpu": (2, "torch", "torch is not installed"),
    "--tiny --turns=1$": (2, "no peer is there to compare with", "the peers are not installed"),
    "--topology=v5e:": (2, "pip install 'bert_elmo_jax[tpu]'", "libtpu is not installed"),
    "--config.model.attention=splash": (2, "a kernel for TPUs, but the platform is cpu", "there is no TPU"),
    "--what=words --model=minilm": (2, "give fewer words", "the stand-in takes few pieces"),
    "--what=words --model=runs/base": (2, "give fewer words", "the stand-in takes few pieces"),
    "--masked=runs/bert_writing": (2, "runs/bert_writing", "its runs are not trained here"),
    "--models=runs/transfer/bert": (2, "runs/transfer/bert", "its runs are not trained here"),
    "--license=apache-2.0": (2, "no token of the hub was found", "nothing is uploaded"),
    "experiments.plan$": (2, " is needed", "a sentence names the program"),
    "experiments.finetune$": (2, " is needed", "a sentence names the program"),
}


LIMIT = 600.0  # seconds that a command may take: on two busy cores, the ceilings need five minutes


class Done(NamedTuple):
    """The end of a command: its exit status, output, and the awaited file."""

    status: int
    out: str
    err: str
    awaited_file: str


class Start(NamedTuple):
    """The start of a command: its module, words, standard input and devices; it is stopped once `until` exists."""

    module: str
    words: list[str]
    stdin: str = ""
    devices: int = 1
    until: str = ""


def find_new(folder, pattern, begun):
    """Return a file of a pattern that has been written since, or ""."""
    for file in folder.glob(pattern):
        with contextlib.suppress(FileNotFoundError):
            if file.stat().st_mtime >= begun and file.stat().st_size:
                return str(file)
    return ""


def run(server, folder, start, *more):
    """Run a command in a folder; it gets a SIGTERM as soon as there is a new file of the pattern `start.until`."""
    log, begun, awaited_file = folder / "log", time.time(), ""
    log.with_suffix(".in").write_text(start.stdin, encoding="utf-8")
    environment = {"HF_HUB_CACHE": str(folder / "hub"), "XLA_FLAGS": program_environment(start.devices)["XLA_FLAGS"]}
    words = [start.module.removeprefix("experiments."), *start.words, *more]
    running = server.start(words, log, environment, folder=folder, stdin=str(log.with_suffix(".in")))
    while (status := running.wait(0.02)) is None:
        if start.until and not awaited_file and (awaited_file := find_new(folder, start.until, begun)):
            os.kill(running.number, signal.SIGTERM)
        if time.time() > begun + LIMIT:
            running.kill()
    out, err = (log.with_suffix(f".{name}").read_text(encoding="utf-8", errors="replace") for name in ("out", "err"))
    return Done(status, out, err, awaited_file)


def fill_in(command):
    """Return a command with the small inputs in place of what it names."""
    return functools.reduce(lambda text, place: text.replace(*place), FILLED.items(), command)


def fields(values, prefix=""):
    return [f"--config.{prefix}{name}={value}" for name, value in values.items()]


def start_of(command):
    """Return the start of a command as written, with flags appended that make it small."""
    command = fill_in(command)
    command = command.replace("host:port", f"localhost:{free_port()}")
    first, _, second = command.rpartition(" | ")
    stdin = shlex.split(first)[1] + "\n" if first else ""
    words = shlex.split(second)[2:]
    program = words[0].removeprefix("experiments.")
    if program.startswith("benchmarks."):
        words += small_benchmark(words)
        if "--steps=none" in words:
            words.remove("--steps=tiny")
    elif words[-1] != "--help" and program in SMALL:
        return SMALL[program](words, command)
    if program == "generate" and "--max_new=" not in command:
        words.append("--max_new=8")  # the stand-ins have few positions
    return Start(words[0], words[1:], stdin)


def small_benchmark(words):
    """Return the flags that make a benchmark small; the study of words reads others than those that train."""
    name = words[0].removeprefix("experiments.benchmarks.")
    if name == "attention" and "--what=words" in words:
        return ["--count=40"] if value_of(words, "language") else []
    return BENCHMARKS.get(name, [])


def value_of(words, flag, default=""):
    return next((word.partition("=")[2] for word in words if word.startswith(f"--{flag}=")), default)


def small_pretraining(words, command):
    kinds = {"elmo": (ELMO, ELMO_SIZES), "transformer": (PAIRS, PAIR_SIZES), "cove": (PAIRS, {"lstm_size": 8}),
             "awd_lstm": (AWD_LSTM, AWD_LSTM_SIZES), "bart": ({"length": 24}, PAIR_SIZES),
             "static": ({"length": 16, "min_count": 1}, {"hidden_size": 8})}  # fmt: skip
    values, sizes = next((kind for name, kind in kinds.items() if f"--config={name}:" in command), (BERT, BERT_SIZES))
    small = fields({**PRETRAINING, **values})
    if "--init" not in command:
        small += fields(sizes, "model.")
    if "elmo:toy" in command or "elmo:quickstart" in command:
        small.remove("--config.negatives=8")
    if "config=albert:" in command:
        small += fields({"eval_batches": 8})  # a pair of texts among so few rows is rare
    if "config=deberta:" in command:
        small += fields({"model.position_buckets": 16})
    if "config=bert_modern:" in command or "config=eurobert:base" in command:
        small += fields({"optimizer.cooldown": 1})
    if "config.teacher=google-bert/" in command:
        small += fields({"data": "corpora/law", "model.hidden_size": 16})  # of the stand-in's tokenizer and width
    if "cove:original" in command:
        small += fields({"model.vector_size": 2})  # of the stand-in for GloVe
    devices = 8 if "mesh" in command else 1
    if devices > 1:
        small += fields({"batch_size": 8})
    return Start(words[0], words[1:] + small, devices=devices)


def small_finetuning(words, command):
    config = value_of(words, "config")
    network = re.fullmatch(r"(tagger|taglm|window|bcn|bcn_cove|esim|bidaf)(:\w+)?", config)
    small = fields({**FINETUNING, **(NETWORK if network else PARSER if config == "parser" else {})})
    if "--config=ulmfit" in command:
        small += fields(ULMFIT)
    if "squad" in command:
        small += fields(READER if network else {**READER, "stride": 8, "question_length": 8})
    if "--config.max_length=" in command:
        small += fields({"max_length": 32})
    if "glove" in command or "window:linear" in command:
        small.remove("--config.word_size=4")
    if "bcn" in command:
        small += fields({"feed_size": 4})
    if "entities_features" in command or "features:" in command:
        small += fields({"features.lstm_size": 4})
    until = f"{value_of(words, 'workdir')}/runs/*/result.json" if "--grid" in command else ""
    return Start(words[0], words[1:] + small, until=until)


def small_plan(words, command):
    lengths = fields({"length": 16, "long_length": 32}) if "--config=bert:" in command else []
    return Start(words[0], [*words[1:], *fields(BERT_SIZES, "model."), *lengths, "--tries=0"], devices=8)


def small_sweep(words, command):
    if "--new=" in command:
        return Start(words[0], words[1:])
    if "--data=" in command:
        return Start(words[0], [*words[1:], "--runner=print"])
    return Start(words[0], words[1:], until="runs/sweeps/points/*/metrics.jsonl")


def small_search(words, command):
    small = small_pretraining if "--program=pretrain" in words else small_finetuning
    return Start(words[0], small(words, command).words, until=f"{value_of(words, 'workdir')}/*/*/report.html")


def small_server(words, command):
    # On any free port, until it has printed that it is ready.
    return Start(words[0], [*words[1:], "--port=0", "--warm_rows=1"], until="log.out")


def small_quickstart(words, command):
    return Start(words[0], words[1:], until="runs/quickstart/*/*.json*")  # a part, of a pretraining or a task, begins


SMALL = {"pretrain": small_pretraining, "finetune": small_finetuning, "plan": small_plan, "sweep": small_sweep,
         "search": small_search, "quickstart": small_quickstart, "serve": small_server}  # fmt: skip


# Run directories that commands read: the command that makes each, the flags added to it, and its copies.
INPUT_RUNS = [
    ("python -m experiments.pretrain --config=bert:toy --workdir=runs/bert_toy",
     fields({"toyworld.heldout": 0.2, "length": 64, "model.max_positions": 64, "batch_size": 8}),
     ("runs/quickstart/bert",)),
    ("python -m experiments.pretrain --config=elmo:toy --workdir=runs/elmo_toy",
     fields({"heldout": 0.2}, "toyworld."), ("runs/quickstart/elmo",)),
    ("python -m experiments.pretrain --config=bert:novels --config.data=corpora/novels "
     "--workdir=runs/bert_novels", fields({"steps": 3, "checkpoint_every": 1}),
     ("runs/base", "runs/bert", "runs/bert_tiny_novels", "runs/bert_reviews")),
    ("python -m experiments.pretrain --config=elmo:novels --config.data=corpora/novels_words "
     "--workdir=runs/elmo_novels", ["--config.eval_batches="], ("runs/elmo",)),
    ("python -m experiments.pretrain --config=gpt:toy --workdir=runs/gpt_toy",
     fields({"toyworld.heldout": 0.2, "length": 128, "long_length": 128, "model.max_positions": 128}),
     ("runs/gpt",)),
    ("python -m experiments.pretrain --config=gpt:novels --config.data=corpora/novels "
     "--workdir=runs/gpt_novels", ["--config.eval_batches="], ()),
    ("python -m experiments.pretrain --config=awd_lstm:original "
     "--config.data=corpora/wikitext103 --workdir=runs/lm", [], ("runs/awd_lstm_novels",)),
    ("python -m experiments.pretrain --config=awd_lstm:backward "
     "--config.data=corpora/wikitext103 --workdir=runs/lm_backward", [], ()),
    ("python -m experiments.pretrain --config=awd_lstm:original "
     "--config.data=corpora/reviews --workdir=runs/lm_ko", [], ()),
    ("python -m experiments.finetune --task=classification --train=my.csv --dev=dev.csv --text=review --label=stars "
     "--init=klue/bert-base --config.transfer=lora --workdir=runs/lora", [], ()),
]  # fmt: skip
READS_RUN = ("model", "from", "run", "adapter", "reranker", "init")  # flags that name a run directory or a folder of it


def write_inputs(root, server):
    """Write everything that commands read."""
    write_command_files(root)
    (root / DEEP / "runs").mkdir()
    (root / "runs" / "bert_toy").rename(root / DEEP / "runs" / "base")
    for command, more, copies in INPUT_RUNS:
        start = start_of(command)
        done = run(server, root, start, *more)
        assert done.status == 0, done.err
        for copy in copies:
            shutil.copytree(root / value_of(start.words, "workdir"), root / copy, dirs_exist_ok=True)
    shutil.copytree(root / "runs/lora/adapter", root / "my_adapter")


def copy_inputs(inputs, place, start):
    """Copy all inputs of a command, in the encoding that it names, but not its outputs."""
    shutil.copytree(inputs, place, symlinks=True, copy_function=os.link)
    if any(word in UPPER_LAYERS for word in start.words):
        for name in ("hub", "runs/base"):
            shutil.rmtree(place / name)
            (place / DEEP / name).rename(place / name)
    if "--verify" not in start.words:
        for flag in WRITTEN:
            if name := value_of(start.words, flag):
                shutil.rmtree(place / name, ignore_errors=True)
                (place / name).unlink(missing_ok=True)
    if value_of(start.words, "encoding") == "cp949":
        for file in (place / "my.csv", place / "new.csv"):
            text = file.read_text(encoding="utf-8")
            file.unlink()  # a hard link to the inputs, which must not change
            file.write_text(text, encoding="cp949")


def run_before(command, start, inputs):
    """Return the command on the same page that makes the run directory that a command reads, and its folder.

    Predictions need the labels of their page; others read a run directory of the inputs if there is one.
    """
    names = [value for flag in READS_RUN if (value := value_of(start.words, flag)).startswith("runs/")]
    for name in ("/".join(name.split("/")[:2]) for name in names):
        if start.module == "experiments.predict" or not (inputs / name).exists():
            for other in COMMANDS:
                programs = r"experiments\.(finetune|pretrain|convert) .*--(workdir|to)"
                writes = re.search(rf"{programs}={re.escape(name)}( |$)", fill_in(other))
                if writes and set(COMMANDS[other]) & set(COMMANDS[command]) and "--grid" not in other:
                    return other, name
    return "", ""


def shorten(command):
    """Return a command as the name of its test, for `-k`."""
    return re.sub(r"python -m experiments\.|experiments/(configs|sweeps)/|--", "", command)[:90]


def find_fault(command, start, done, place):
    """Return the problem with the end of a command, or "" if there is none."""
    for part, (status, message, _) in REFUSED.items():
        if part in f"{command}$":
            return "" if done.status == status and message in done.err else f"expected {status}, {message}"
    # Between two runs of a grid, no training catches the SIGTERM; the same command resumes all the same.
    stopped = (0, 75, -signal.SIGTERM) if "--grid" in command else (0, 75)
    if start.until and done.awaited_file and done.status in stopped:
        return ""
    if done.status != 0 or (start.until and not done.awaited_file):
        return f"status {done.status}, {done.awaited_file or 'nothing'} was seen"
    if "Traceback" in done.err:
        return "a traceback"
    written = [name for flag in WRITTEN if (name := value_of(start.words, flag)) not in ("", *NO_FILES)]
    if not (done.out.strip() or written):
        return "it has printed nothing"
    matches = [sorted(place.glob(name)) if "*" in name else [] for name in written]
    written = [file for name, files in zip(written, matches) for file in (files or [place / name])]
    lacking = [file for file in written if not file.exists() or (file.is_dir() and not any(file.iterdir()))]
    return f"it has not written {lacking}" if lacking and "--runner=print" not in start.words else ""


@contextlib.contextmanager
def other_host(start, place):
    """Start the second of two processes, for a command that is the first."""
    if "--process=0" not in start.words:
        yield
        return
    words = [sys.executable, "-m", start.module, *start.words, "--process=1"]
    environment = {**one_device(quick=True), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(words, cwd=place, env=environment, stdout=subprocess.DEVNULL) as process:
        yield
        assert process.wait(timeout=60) == 0


def free_port():
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


def run_command(command, server, inputs, place, all_runs):
    """Run a command; return its problem, or "", and its end. `all_runs` gets the run directories of fine-tuning."""
    start = start_of(command)
    copy_inputs(inputs, place, start)
    before, folder = run_before(command, start, inputs)
    if before:
        if before not in all_runs:
            run_command(before, server, inputs, place.with_name(f"{place.name}_before"), all_runs)
        shutil.rmtree(place / folder, ignore_errors=True)
        shutil.copytree(all_runs[before], place / folder)
    with other_host(start, place):
        done = run(server, place, start)
    if "--runner=print" in start.words and done.status == 0:  # and the first of the printed commands
        start = start_of(next(line for line in find_commands(done.out) if "experiments.sweep" not in line))
        done = run(server, place, start)
    fault = find_fault(command, start, done, place)
    flag = {"experiments.finetune": "workdir", "experiments.pretrain": "workdir", "experiments.convert": "to"}
    written = value_of(start.words, flag.get(start.module, "")) if done.status == 0 else ""
    if written.startswith("runs/"):
        all_runs[command] = shutil.move(place / written, inputs.with_name(f"made_{len(all_runs)}"))
    return fault, done


@pytest.fixture(scope="module")
def server():
    started = Server(one_device(quick=True))
    yield started
    started.close()


@pytest.fixture(scope="module")
def inputs(server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands") / "inputs"
    folder.mkdir()
    write_inputs(folder, server)
    return folder


@pytest.fixture(scope="module")
def all_runs():
    """Return a dictionary for the run directories of fine-tuning, which predictions on the same page read."""
    return {}


@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS, ids=shorten)
def test_commands_start(command, server, inputs, all_runs, tmp_path):
    fault, done = run_command(command, server, inputs, tmp_path / "place", all_runs)
    assert not fault, f"{fault}: {done.out[-1000:]} {done.err[-3000:]}"
    shutil.rmtree(tmp_path)  # thousands of files


def test_commands_are_found():
    text = """
    Use `python -m experiments.pretrain
    --init=a`, or:
    ```bash
    python -m experiments.plan --config=b \\
        --tries=0  # quickly
    echo 'c d' | python -m experiments.predict --model=e
    ```
    `timeout 9 python -m experiments.sweep …` and `python -c 1`"""
    assert find_commands(textwrap.dedent(text)) == [
        "python -m experiments.pretrain --init=a",
        "python -m experiments.plan --config=b --tries=0",
        "echo 'c d' | python -m experiments.predict --model=e",
        "python -m experiments.sweep …",
    ]


def test_there_are_commands():
    assert len(COMMANDS) > 180
    assert {place.split("/")[0] for places in COMMANDS.values() for place in places} == {
        "README.md", "README.ko.md", "docs", "experiments",
    }  # fmt: skip
    programs = {command.partition("experiments.")[2].split()[0] for command in COMMANDS}
    files = [
        file
        for file in (ROOT / "experiments").rglob("[a-z]*.py")
        if '__name__ == "__main__"' in file.read_text("utf-8")
    ]
    assert programs == {".".join(file.relative_to(ROOT / "experiments").with_suffix("").parts) for file in files}
    assert all(any(part in f"{command}$" for command in COMMANDS) for part in REFUSED)
    assert not [command for command in COMMANDS if "…" in fill_in(command)]
