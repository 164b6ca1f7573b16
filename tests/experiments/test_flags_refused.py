"""Flags that mean nothing are refused at once, in one line with status 2, and never ignored."""

import pytest

from .programs import run_program

PRETRAIN = ["--config=experiments/configs/bert.py:toy", "--workdir=x"]
SWEEP = ["--sweep=experiments/sweeps/own_heads.py", "--workdir=x"]
SEARCH = ["--over=batch_size=4,8", "--workdir=x"]
TASK = ["--", "--task=sst2", "--train=t.tsv", "--dev=d.tsv"]
PREPARE = ["--input=texts.txt", "--output=x"]
PLAN = ["--config=experiments/configs/bert.py:tiny", "--topology=cpu:1"]
PROBE = ["--what=toyworld", "--output=x"]
EXTRACT = ["--model=x", "--input=y.conll", "--output=z.h5"]
HUGE = "9" * 20
DIFFERENT = "expected different numbers of GPUs or TPU chips, such as 0,1"
REFUSED = [
    # Processes and devices.
    ("pretrain", [*PRETRAIN, "--processes=4", "--process=9"], "--processes=4, --process=9 without --coordinator"),
    ("pretrain", [*PRETRAIN, "--process=1"], "--process=1 without --coordinator: this process would train alone"),
    ("pretrain", [*PRETRAIN, "--processes=0"], "--processes=0: expected a whole number of at least 1"),
    (
        "pretrain",
        [*PRETRAIN, "--coordinator=localhost:1", "--processes=2", "--process=2"],
        "--processes=2, --process=2: processes are counted from 0, so expected --process=0 to 1",
    ),
    ("sweep", [*SWEEP, "--devices=a"], f"--devices=a: {DIFFERENT}"),
    ("sweep", [*SWEEP, "--devices=-1"], f"--devices=-1: {DIFFERENT}"),
    ("sweep", [*SWEEP, "--devices=0,0"], f"--devices=0,0: {DIFFERENT}"),
    ("sweep", [*SWEEP, "--devices=0,00"], f"--devices=0,00: {DIFFERENT}"),
    (
        "sweep",
        [*SWEEP, "--devices=0,1", "--jobs=3"],
        "some devices would have more jobs than others; use a multiple of 2",
    ),
    ("sweep", [*SWEEP, "--runner=ray", "--devices=0"], "--devices without effect: --runner=ray was given"),
    ("sweep", [*SWEEP, "--resources=GPU"], "--resources=GPU: expected a name and a number, such as GPU=1"),
    ("sweep", [*SWEEP, "--resources=GPU=nan"], "--resources=GPU=nan: expected a name and a number"),
    ("sweep", [*SWEEP, "--resources=GPU=1"], "--resources without effect: --runner=local was given; use --runner=ray"),
    ("sweep", [*SWEEP, "--devices="], "--devices= is empty: give a value, or leave it out"),
    ("search", [*SEARCH, "--device=-1", *TASK], f"--device=-1: {DIFFERENT}"),
    ("search", [*SEARCH, "--seed=-1", *TASK], "--seed=-1: expected a whole number of at least 0"),
    (
        "search",
        [*SEARCH, "--score=nosuch", *TASK],
        "--score=nosuch is no figure of these runs; expected one of dev/acc",
    ),
    (
        "search",
        ["--over=batch_size=-4..0", "--workdir=x", *TASK],
        "--over: batch_size=-4: expected a whole number from",
    ),
    ("search", [*SEARCH, *TASK, "--config.optimizer.clip=0"], "config.optimizer.clip=0.0: expected a number above 0"),
    # Text, vocabulary and shards.
    ("prepare_data", [*PREPARE, "--text_field="], "--text_field= is empty: give a value, or leave it out"),
    ("prepare_data", [*PREPARE, "--seed=-1"], "--seed=-1: expected a whole number of at least 0"),
    ("prepare_data", [*PREPARE, f"--seed={HUGE}"], f"--seed={HUGE}: expected a finite number, below 9.2e18"),
    ("prepare_data", [*PREPARE, "--workers=100000"], "--workers=100000: expected a whole number from 1 to 1,024"),
    ("prepare_data", [*PREPARE, "--shards=100000000"], "shards=100000000; use 1 to 16,384, or 0 to choose by size"),
    ("prepare_data", [*PREPARE, "--vocab_size=0"], "vocab_size=0; use 4"),
    ("prepare_data", [*PREPARE, "--heldout=nan"], "--heldout=nan: expected a finite number"),
    # Plans.
    ("plan", [*PLAN, "--memory=nan"], "--memory=nan: expected a finite number"),
    ("plan", [*PLAN, "--memory=0"], "--memory=0: expected GiB of a device, above 0"),
    ("plan", [*PLAN, "--memory=-1"], "--memory=-1: expected GiB of a device, above 0"),
    ("plan", [*PLAN, "--vocab_size=0"], "--vocab_size=0: expected a whole number of at least 1"),
    ("plan", [PLAN[0], "--topology=cpu:1000000"], "--topology=cpu:1000000: expected 1 to 1,024 simulated devices"),
    # Studies, vectors, predictions, weights.
    ("probe", [*PROBE, "--model=a", "--words="], "--words= is empty: give a value, or leave it out"),
    ("probe", [*PROBE, "--model=a,a"], "--model=a,a has a path twice: name each once"),
    ("probe", [*PROBE, "--model=a,./a"], "--model=a,./a has a path twice: name each once"),
    ("extract", [*EXTRACT, "--column=-5"], "--column=-5: expected a whole number of at least 0"),
    ("predict", ["--model=x", "--output="], "--output= is empty: give a value, or leave it out"),
    ("predict", ["--model=x", "--output=x.pdf"], "--output=x.pdf: predictions are no .pdf; end the name in .csv, .tsv"),
    (
        "convert",
        ["--from=tests/goldens/bert_tiny", "--to=x", "--classifier=tag"],
        "which has no classifier: leave it out",
    ),
    # Configs.
    (
        "finetune",
        [
            "--task=classification",
            "--text=label",
            "--label=label",
            "--train=LICENSE",
            "--dev=LICENSE",
            "--workdir=x",
            "--tokenizer=tests/goldens/bert_tiny",
        ],
        "one column for two things: text='label', label='label'; use different columns for text, pair and label",
    ),
    ("pretrain", ["--config=", "--workdir=x"], "--config= is empty: give a recipe, such as bert:base"),
    ("finetune", ["--config=", "--workdir=x"], "--config= is empty: give a recipe, such as bert:base"),
    ("finetune", ["--workdir="], "--workdir= is empty: give a value, or leave it out"),
    ("pretrain", ["--config=LICENSE", "--workdir=x"], "--config=LICENSE: it cannot be run: IndentationError"),
    (
        "pretrain",
        [*PRETRAIN, "--config.length=100000"],
        "config.length=100000, but the model has 128 positions: lower it",
    ),
    ("pretrain", [*PRETRAIN, "--config.model.max_positions=8"], "config.length=128, but the model has 8 positions"),
    ("pretrain", [*PRETRAIN, "--config.mesh.fsdp=64"], "a mesh of fsdp=64 × tensor=1 needs 64 devices or a multiple"),
]


@pytest.mark.parametrize(("program", "words", "message"), REFUSED, ids=[f"{p} {w[-1]}" for p, w, _ in REFUSED])
def test_refused_at_once(program, words, message, tmp_path):
    there = tmp_path / "x"
    words = [word.replace("--workdir=x", f"--workdir={there}").replace("--output=x", f"--output={there}") if
             word in ("--workdir=x", "--output=x") else word for word in words]  # fmt: skip
    status, _, err = run_program(program, *words)
    said = [line for line in err.splitlines() if line.startswith(f"{program}: ")]
    assert status == 2 and len(said) == 1 and message in said[0], err
    assert "Traceback" not in err
    assert not (there / "run.json").exists()
