"""Whole sweeps: mistakes, printed commands, and real trainings from the definition to the table."""

import csv
import re
import shlex
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bert_elmo_jax.runs.config_files import read_config
from bert_elmo_jax.runs.start_run import sum_costs
from bert_elmo_jax.runs.task_data import read_data
from bert_elmo_jax.sweeps.run_sweep import run_sweep

from .toy_runs import ROOT, one_device, run_toy

TABLE8 = "experiments/sweeps/bert_table8.py"


REFUSED = [
    ({"scale": "paper"}, "needs --data=FOLDER with these files"),
    ({"scale": "laptop", "data": "."}, "lacks"),
    ({"file": "bert_tabl8"}, "did you mean bert_table8?"),
    ({"runner": "ray", "resources": ["GPU"]}, "--resources=GPU: expected a name and a number"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[message[:30] for _, message in REFUSED])
def test_refused_before_anything_runs(options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    with pytest.raises((ValueError, FileNotFoundError), match=re.escape(message)):
        run_sweep(**{"file": TABLE8, "workdir": str(tmp_path / "w"), **options})
    assert not (tmp_path / "w" / "points").exists()


@pytest.mark.long
def test_commands_for_others(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)

    def write_commands():
        command = "python -m experiments.sweep --runner=print"
        assert run_sweep(TABLE8, str(tmp_path), runner="print", command=command) == 0
        out = capsys.readouterr().out
        return out, [shlex.split(line) for line in out.splitlines() if line and not line.startswith("#")]

    out, lines = write_commands()
    assert len(lines) == 6 + 36 and out.index("# stage 2") > out.index("# stage 1")
    assert "sbatch --array" in out and "--runner=local" in out
    flags = ROOT.joinpath("experiments", "finetune.py").read_text(encoding="utf-8")
    for words in lines:
        assert words[:2] == ["python", "-m"]
        options = dict(word.removeprefix("--").split("=", 1) for word in words[3:])
        assert all(f'("{name}", ' in flags for name in options if not name.startswith("config."))
    config, _ = read_config(options["config"])
    config.update({name: options[name] for name in ("task", "train", "dev", "text", "label")})
    assert len(read_data(config).train) >= 120, "its data are there"
    # One is run elsewhere: the sweep finds it done.
    run = Path(options["workdir"])
    run.mkdir(parents=True)
    (run / "result.json").write_text("{}")
    assert len(write_commands()[1]) == 41


@pytest.mark.long
def test_a_sweep_of_real_trainings(write_toy, tmp_path):
    """A pretraining, and a task with and without it, use all features of a sweep."""
    output = run_toy(write_toy(), tmp_path, quick=True)
    folder = tmp_path / "tiny-toy"
    text = (folder / "table.md").read_text(encoding="utf-8")
    assert re.search(r"\| from nothing \(reference\) \| \d+\.\d\d ± \d+\.\d\d \| 70.5 \|", text)
    assert text in output and "order of rows" in text
    lines = list(csv.DictReader((folder / "costs.csv").read_text(encoding="utf-8-sig").splitlines()))
    assert {line["device"] for line in lines} == {"1 × cpu"} and all(float(line["seconds"]) > 0 for line in lines)
    assert [line["row"] for line in lines if line["column"] == "shared"] == ["BERT"]
    page = (folder / "report.html").read_text(encoding="utf-8")
    for link in re.findall(r'href="([^"]+)"', page):
        assert (folder / link).is_file()
    before = {file: file.stat().st_mtime_ns for file in tmp_path.glob("points/*/result.json")}
    run_toy(write_toy(), tmp_path, "--jobs=2")
    assert before == {file: file.stat().st_mtime_ns for file in tmp_path.glob("points/*/result.json")}


@pytest.mark.long
def test_a_sweep_of_elmo_and_its_layers(write_toy, tmp_path):
    """A pretraining that networks read, and figures besides their scores."""
    run_toy(write_toy((0,), write_toy.elmo), tmp_path, quick=True)
    text = (tmp_path / "tiny-toy" / "table.md").read_text(encoding="utf-8")
    lines = csv.DictReader((tmp_path / "tiny-toy" / "table.csv").read_text(encoding="utf-8-sig").splitlines())
    shares = [float(line["mean"]) for line in lines if line["column"] == "words, %"]
    assert len(shares) == 2 and all(20 < share < 50 and share != 100 / 3 for share in shares), "they begin with a third"
    assert "- NER: " in text and "–" not in text
    assert len(list(tmp_path.glob("vectors/*"))) == 1, "vectors of the same texts are computed once"


@pytest.mark.long
def test_runs_of_printed_commands_have_their_cost(write_toy, tmp_path):
    """The sweep finds runs of printed commands, with their cost and device."""
    file = write_toy(seeds=(0,))
    run_toy(file, tmp_path / "here")
    command = [sys.executable, "-m", "experiments.sweep", f"--sweep={file}", f"--workdir={tmp_path / 'there'}"]
    printed = subprocess.run([*command, "--runner=print"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    commands = [shlex.split(line)[1:] for line in printed.splitlines() if line.startswith("python")]
    assert len(commands) == 3
    walls = []
    for words in commands:
        began = time.perf_counter()
        subprocess.run([sys.executable, *words], cwd=ROOT, env=one_device(), capture_output=True, check=True)
        walls.append(time.perf_counter() - began)
    run_toy(file, tmp_path / "there")
    tables, costs = (
        [tmp_path.joinpath(place, "tiny-toy", name).read_text(encoding="utf-8-sig") for place in ("here", "there")]
        for name in ("table.md", "costs.csv")
    )
    assert tables[0] == tables[1]
    sweep_rows, command_rows = (list(csv.DictReader(text.splitlines())) for text in costs)
    assert [line["run"] for line in command_rows] == [words[-1].rpartition("/")[2] for words in commands]
    for mine, other, wall in zip(sweep_rows, command_rows, walls, strict=True):
        assert (mine["starts"], mine["device"]) == (other["starts"], other["device"]) == ("1", "1 × cpu")
        assert 0.1 * wall < float(other["seconds"]) < wall and float(other["processor seconds"]) > 0, (other, wall)


@pytest.mark.long
def test_overhead(write_toy, tmp_path):
    """Between two runs of a sweep of one job less than 0.4 seconds pass: two percent of a run of twenty seconds."""
    run_toy(write_toy(seeds=(0, 1, 2, 3)), tmp_path, "--jobs=1")
    ends, starts = [], []
    for costs in (tmp_path / "points").glob("*/costs.jsonl"):
        ends.append(costs.stat().st_mtime)
        starts.append(ends[-1] - sum_costs(costs.parent))
    gaps = [start - end for start, end in zip(sorted(starts)[1:], sorted(ends))]
    print("seconds between runs:", ", ".join(f"{gap:.2f}" for gap in gaps))
    assert len(gaps) == 8 and statistics.median(gaps) < 0.4


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*JAX is multithreaded:RuntimeWarning")  # where a test before this one used it
def test_ray_of_two_nodes_comes_to_the_same(write_toy, tmp_path):
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    file = write_toy()
    run_toy(file, tmp_path / "local", "--jobs=2")
    before = signal.getsignal(signal.SIGTERM)
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        cluster.add_node(num_cpus=1)
        run_toy(file, tmp_path / "ray", "--runner=ray", f"--address={cluster.address}")
    finally:
        cluster.shutdown()
        signal.signal(signal.SIGTERM, before)  # a node takes it, and does not give it back to the tests that follow
    for name in ("table.md", "table.csv"):
        assert (tmp_path / "ray" / "tiny-toy" / name).read_bytes() == (
            tmp_path / "local" / "tiny-toy" / name
        ).read_bytes()
