"""Searches: mistakes, drawn values, early ends, and a killed search that continues as if undisturbed."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from ml_collections import ConfigDict

ROOT = Path(__file__).parents[3]
CONFIG = ConfigDict({"epochs": 3.0, "batch_size": 32, "context": False, "optimizer": {"learning_rate": 1e-3}})
CONFIG.split, CONFIG.places, CONFIG.filters, CONFIG.name = (0.8, 0.1, 0.1), "input", ((1, 32),), ""
MISTAKES = [
    ("", "--over=… is needed: the fields to search, such as"),
    ("epochs", "'epochs' has no range and no values; expected text such as"),
    ("epoch=2..3", "names 'epoch', but the config has no such field; did you mean epochs?"),
    ("epochs=2..3;epochs=4", "names epochs twice"),
    ("epochs=three..4", "epochs='three': expected a value like 3.0"),
    ("batch_size=16.5..20", "batch_size='16.5': expected a value like 32"),
    ("epochs=3..2", "expected finite numbers, the lower one first"),
    ("optimizer.learning_rate=0..1,log", "expected positive numbers, the lower one first"),
    ("epochs=2..3,lgo", "epochs=2..3,lgo: expected values as a,b, or numbers as low..high or low..high,log"),
    ("context=2,0", "context='2': expected a value like false"),
    ("context=true..false", "expected values as a,b, or numbers"),
    ("split=a,b", "split='a': expected a value like (0.8, 0.1, 0.1)"),
    ("split=(0.8", "split='(0.8': expected a value like (0.8, 0.1, 0.1)"),
    ("epochs=1..inf", "epochs=1..inf: expected finite numbers"),
    ("epochs=nan..2", "epochs=nan..2: expected finite numbers"),
    ("epochs=2,nan", "epochs=2,nan: expected finite numbers"),
]


@pytest.fixture
def parts(program):
    return SimpleNamespace(
        **{name: program(f"bert_elmo_jax.sweeps.search.{name}") for name in ("trials", "run_search")}
    )


@pytest.mark.parametrize(("over", "message"), MISTAKES, ids=[over or "nothing" for over, _ in MISTAKES])
def test_mistakes_in_a_space_are_refused(parts, over, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        parts.trials.read_space(over, CONFIG)


def test_spaces(parts):
    space = parts.trials.read_space(
        "batch_size=8..64,log; context=true,false;optimizer.learning_rate=1e-4..1e-2", CONFIG
    )
    over = 'split=(0.8,0.1,0.1),(1,0,0);places=input,"input,output";filters=((1,8),),((1, 8),(2,8));name=,"..",a'
    other = parts.trials.read_space(over, CONFIG)
    assert {name: space.values for name, space in other.items()} == {
        "split": ("(0.8, 0.1, 0.1)", "(1, 0, 0)"), "places": ("input", "input,output"),
        "filters": ("((1, 8),)", "((1, 8), (2, 8))"), "name": ("", "..", "a"),
    }  # fmt: skip
    Range, Values = parts.trials.Range, parts.trials.Values
    assert space == {
        "batch_size": Range(8, 64, log=True, integers=True),
        "context": Values((True, False)),
        "optimizer.learning_rate": Range(1e-4, 1e-2),
    }


@pytest.fixture
def search(program, tmp_path, monkeypatch):
    """Return a function that runs a search in this process."""
    monkeypatch.chdir(ROOT)
    module = program("bert_elmo_jax.sweeps.search.run_search")

    def run(*words, over="epochs=1,2", **options):
        return module.run_search(words, str(tmp_path / "w"), over=over, **options)

    return run


TASK = ["--task=sst2", "--train=t.tsv", "--dev=d.tsv"]
REFUSED = [
    (["--workdir=x"], {}, "each trial has its own: give the search's before --"),
    (["--workdir", "x"], {}, "each trial has its own: give the search's before --"),
    ([], {"program": "pretrain"}, "behind -- there is no --config=…, which pretrain needs"),
    ([], {}, "behind -- there is no --task=…, which finetune needs"),
    ([*TASK, "--config.epoch=3"], {}, "did you mean epochs?"),
    ([*TASK, "--seeds=1,2"], {}, "behind -- there is --seeds, which a trial of finetune does not take"),
    (TASK, {"over": "epochz=1,2"}, "names 'epochz', but the config has no such field; did you mean epochs?"),
    (TASK, {"over": "epochs=1..inf"}, "epochs=1..inf: expected finite numbers"),
    (["--task", "sst"], {}, "there is no task 'sst'"),
    (TASK, {"score": "dev/loss"}, "--score=dev/loss is better the lower"),
    (TASK, {"score": "nosuch"}, "--score=nosuch is no figure of these runs; expected one of dev/accuracy"),
    (TASK, {"score": "dev/acuracy"}, "did you mean dev/accuracy?"),
    (TASK, {"device": "-1"}, "--device=-1: expected different numbers of GPUs or TPU chips"),
    (TASK, {"over": "batch_size=-4..0"}, "--over: batch_size=-4: expected a whole number from 1 to"),
    (TASK, {"over": "optimizer.clip=1.0,0.0"}, "--over: optimizer.clip=0.0: expected a number above 0"),
    (TASK, {"score": "a/mlm_perplexity"}, "better the lower it is: add --lowest"),
]


@pytest.mark.parametrize(("words", "options", "message"), REFUSED, ids=[message[:30] for *_, message in REFUSED])
def test_refused_before_anything_runs(search, words, options, message, tmp_path):
    with pytest.raises(ValueError, match=re.escape(message)):
        search(*words, **options)
    assert not (tmp_path / "w").exists()


def test_flags_of_two_words_count_as_those_of_one(parts):
    words = ["--task", "classification", "--train=x.csv", "-text", "review", "--label", "stars", "--noconfig.context"]
    command = parts.run_search.read_command("finetune", [*words, "--init=runs/bert"])
    config = command.config
    assert (config.task, config.train, config.text, config.label) == ("classification", "x.csv", "review", "stars")
    assert command.options == {"init": "runs/bert"} and command.fields["context"] == "false"
    assert parts.run_search.name_score("finetune", config) == "dev/accuracy"


def test_without_the_library_it_says_which_extra_has_it(search, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ImportError, match=re.escape("pip install 'bert_elmo_jax[search]'")):
        search(*TASK)
    assert not (tmp_path / "w").exists()


def test_the_figure_that_counts(parts):
    words = ["--task=cola", "--train=x.tsv"]
    named = [parts.run_search.read_command("finetune", words), *(
        parts.run_search.read_command("pretrain", [f"--config={ROOT}/experiments/configs/{file}"])
        for file in ("bert.py:toy", "elmo.py:toy")
    )]  # fmt: skip
    scores = [parts.run_search.name_score(program, command.config)
              for program, command in zip(("finetune", "pretrain", "pretrain"), named)]  # fmt: skip
    assert scores == ["dev/mcc", "held_out/mlm_accuracy", "held_out/score"]


class Curves:
    """A runner without processes: a trial's score rises with its steps, and each look shows one more evaluation.

    `fail` and `refuse` are trials that end badly, `long` have epochs of two steps, `other` have another figure;
    `score` computes the score.
    """

    slots = 1

    def __init__(self, parts, workdir, Ended, die_at=None, fail=(), refuse=(), long=(), other=(), score=None):
        self.trials, self.workdir, self.Ended = parts.trials, workdir, Ended
        self.left, self.stopped, self.starts, self.waits, self.die_at = [], [], [], 0, die_at
        self.bad = dict.fromkeys(fail, 76) | dict.fromkeys(refuse, 2)
        self.long, self.other = long, other
        self.score = score or (lambda number, epoch, rate: 1 - abs(rate - 0.005) * 100 + epoch / 100)

    def start(self, job):
        self.starts.append(int(job.key))
        self.key, self.run = job.key, Path(job.workdir)
        rate = float(job.fields["optimizer.learning_rate"])
        past_epochs = len(self.trials.read_metrics(self.run)) if (self.run / "metrics.jsonl").is_file() else 0
        number, self.over = int(job.key), False
        steps = 2 if number in self.long else 1
        self.left = [(steps * epoch, self.score(number, epoch, rate)) for epoch in range(1, 6)][past_epochs:]
        (self.run / "log.txt").write_text("the last words\n")

    def wait(self, seconds):
        self.waits += 1
        if self.waits == self.die_at:
            raise KeyboardInterrupt  # leaves the same files as a kill
        if int(self.key) in self.bad:
            return [self.Ended(self.key, self.bad[int(self.key)], 1.0)]
        if self.over or not self.left:
            if not self.over:
                (self.run / "result.json").write_text("{}")
            return [self.Ended(self.key, 75 if self.over else 0, 1.0)]
        step, value = self.left.pop(0)
        with open(self.run / "metrics.jsonl", "a") as file:
            name = "dev/mcc" if int(self.key) in self.other else "dev/f1"
            file.write(json.dumps({"step": step, name: value}) + "\n")
        return []

    def stop(self, hard=False):
        self.stopped.append(int(self.key))
        self.over = True

    def close(self):
        pass


@pytest.fixture
def go(parts, program, tmp_path):
    """Return a function that searches for a learning rate, whose best value is 0.005."""
    pytest.importorskip("optuna", reason="a search needs the extra `search`")
    Ended = program("bert_elmo_jax.sweeps.runners").Ended

    def run(name, trials=12, sampler="bayesian", lowest=False, bad=True, seed=3, named="dev/f1", **how):
        workdir = tmp_path / name
        workdir.mkdir(exist_ok=True)
        space = parts.trials.read_space("optimizer.learning_rate=1e-4..1e-2", CONFIG)
        rate_search = parts.trials.Search("finetune", "finetune.py", space, named, lowest, workdir, {"task": "uner"})
        study, runner = parts.trials.open_study(workdir, lowest, bad), Curves(parts, workdir, Ended, **how)
        messages = []
        ended = parts.trials.run_trials(
            rate_search, study, runner, trials=trials, sampler=sampler, seed=seed, say=messages.append, stop=lambda: 0,
            changed=lambda: parts.run_search.write_results(rate_search, study, "the command"),
        )  # fmt: skip
        return ended, study, runner, messages, workdir

    return run


def list_trials(study):
    return [(trial.params, trial.state.name, trial.value) for trial in study.get_trials()]


def test_bad_trials_are_ended_and_the_best_is_found(go):
    ended, study, runner, messages, workdir = go("w")
    states = [trial.state.name for trial in study.get_trials()]
    assert ended and len(states) == 12 and states[:3] == ["COMPLETE"] * 3
    assert runner.stopped == [n for n, state in enumerate(states) if state == "PRUNED"] != []
    assert abs(study.best_params["optimizer.learning_rate"] - 0.005) < 0.001
    assert any("ended early, worse than the median" in line for line in messages)
    text = (workdir / "table.md").read_text(encoding="utf-8")
    scores = [float(line.split("|")[2]) for line in text.splitlines() if "| done |" in line]
    assert scores == sorted(scores, reverse=True) and scores[0] == pytest.approx(study.best_value, abs=1e-3)
    page = (workdir / "report.html").read_text(encoding="utf-8")
    assert (
        page.count("python -m experiments.finetune --config=finetune.py --task=uner --config.optimizer.learning_rate=")
        == 12
    )
    assert "<svg" in page and "the command" in page
    assert (workdir / "table.csv").read_text(encoding="utf-8").count("\n") == 13
    assert go("w")[2].starts == [], "all are done"
    more = go("w", trials=13)
    assert more[2].starts == [12], "a larger number adds trials"


def test_killed_it_draws_what_it_would_have_drawn(go):
    undisturbed = list_trials(go("one")[1])
    for die_at in (3, 7, 1, 12, 6):  # looks at what runs
        with pytest.raises(KeyboardInterrupt):
            go("two", die_at=die_at)
    assert list_trials(go("two")[1]) == undisturbed


def test_by_chance_and_to_the_lowest(go):
    _, study, runner, _, _ = go("random", trials=5, sampler="random", bad=False)
    assert not runner.stopped and len({str(trial.params) for trial in study.get_trials()}) == 5
    _, lowest, _, _, workdir = go("lowest", trials=5, sampler="random", bad=False, lowest=True)
    assert [t.params for t in lowest.get_trials()] == [t.params for t in study.get_trials()], "by the seed alone"
    assert lowest.best_value == min(trial.value for trial in lowest.get_trials())
    lines = [line for line in (workdir / "table.md").read_text().splitlines() if "| done |" in line]
    scores = [float(line.split("|")[2]) for line in lines]
    assert scores == sorted(scores)


def test_failures_are_told_and_the_others_go_on(go, monkeypatch):
    ended, study, _, messages, _ = go("w", trials=4, fail=(1,))
    assert ended and [trial.state.name for trial in study.get_trials()][1] == "FAIL"
    assert any("diverged (status 76)" in line and "the last words" in line for line in messages)


def test_trials_are_compared_by_epochs_not_by_steps(go):
    _, study, runner, _, workdir = go("w", trials=6, long=(3, 4, 5), score=lambda number, epoch, rate: epoch / 100)
    assert not runner.stopped and {trial.state.name for trial in study.get_trials()} == {"COMPLETE"}
    rows = [line.split("|") for line in (workdir / "table.md").read_text().splitlines() if "| done |" in line]
    assert [int(row[4]) for row in rows] == [5, 5, 5, 10, 10, 10], "but the table has steps"


@pytest.mark.parametrize("nothing", [None, float("nan"), float("inf")])
def test_scores_that_are_no_numbers(go, nothing):
    def score(number, epoch, rate):
        return nothing if number == 1 or (number == 2 and epoch < 3) else epoch / 10

    ended, study, _, messages, _ = go("w", trials=4, score=score)
    assert ended and [trial.state.name for trial in study.get_trials()] == ["COMPLETE", "FAIL", "COMPLETE", "COMPLETE"]
    assert any("trial 2: its dev/f1 was never a finite number" in line for line in messages)
    assert study.get_trials()[2].intermediate_values == {3: 0.3, 4: 0.4, 5: 0.5}


def test_a_figure_that_is_not_there_is_missed_at_the_first_evaluation(go, tmp_path):
    run = tmp_path / "w" / "trials" / "000"
    for _ in range(2):  # asked again, no run starts
        with pytest.raises(ValueError, match=r"000 has no figure 'dev/f2': --score=… may be one of dev/f1$"):
            go("w", named="dev/f2")
        assert (run / "metrics.jsonl").read_text().count("\n") == 1 and not (run / "result.json").is_file()


def test_a_figure_that_one_trial_does_not_have(go):
    ended, study, runner, messages, _ = go("w", trials=3, other=(1,))
    assert ended and [trial.state.name for trial in study.get_trials()] == ["COMPLETE", "FAIL", "COMPLETE"]
    assert runner.stopped == [1] and any("may be one of dev/mcc" in line for line in messages)


def test_a_refused_trial_fails_alone(go):
    ended, study, _, messages, _ = go("w", trials=5, refuse=(0, 1, 3))
    assert ended and [t.state.name for t in study.get_trials()] == ["FAIL", "FAIL", "COMPLETE", "FAIL", "COMPLETE"]
    assert sum("refused (status 2). The last lines of" in line and "the last words" in line for line in messages) == 3


@pytest.mark.parametrize(("trials", "tried"), [(12, 3), (2, 2)])
def test_where_the_first_are_all_refused_it_is_the_command(go, tmp_path, trials, tried):
    with pytest.raises(ValueError, match=r"refused .*; the last lines of .*log\.txt:\n +the last words"):
        go("w", trials=trials, refuse=range(20))
    assert len(list((tmp_path / "w" / "trials").iterdir())) == tried


RATES = "optimizer.learning_rate=1e-4..1e-2"


@pytest.fixture
def trial_runs(search, parts, program, tmp_path, monkeypatch):
    """Return a function that runs the program without processes, and returns the numbers of the started runs."""
    pytest.importorskip("optuna", reason="a search needs the extra `search`")
    Ended = program("bert_elmo_jax.sweeps.runners").Ended

    def run(over, options, **how):
        runner = Curves(parts, tmp_path / "w", Ended, **how)
        monkeypatch.setattr(parts.run_search, "Processes", lambda *arguments: runner)
        monkeypatch.setattr(parts.run_search, "list_scores", lambda task: ["f1"])  # the figure of these curves
        assert search(*TASK, over=over, score="dev/f1", **options) == 0
        return runner.starts

    return run


def test_as_long_as_nothing_came_of_it_something_else_may_be_asked(trial_runs, tmp_path):
    with pytest.raises(ValueError, match="refused"):
        trial_runs(RATES, {"trials": 2}, refuse=(0, 1))
    with pytest.raises(KeyboardInterrupt):
        trial_runs(RATES + ",log", {"trials": 2}, die_at=2)
    other = {"lowest": True, "sampler": "random", "seed": 4, "end_bad": False, "trials": 2}
    over = "optimizer.learning_rate=0.001,0.01"
    assert trial_runs(over, other) == [3, 4], "in run directories of its own"
    table = (tmp_path / "w" / "table.md").read_text()
    scores = [float(line.split("|")[2]) for line in table.splitlines() if "| done |" in line]
    assert len(scores) == 2 and scores == sorted(scores) and "failed" not in table
    settings = json.loads((tmp_path / "w" / "run.json").read_text())
    assert settings["lowest"] and settings["seed"] == 4 and settings["over"].endswith("=0.001,0.01")
    with pytest.raises(ValueError, match=r"w was started with another configuration:\nseed: 4 then, 5 now"):
        trial_runs(over, {**other, "seed": 5})
    assert trial_runs(over, {**other, "trials": 3}) == [5]


def test_trials_on_other_data_are_not_compared(trial_runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("t.tsv", "d.tsv"):
        Path(name).write_text("sentence\tlabel\neasy\t1\n")
    assert trial_runs(RATES, {"trials": 1}) == [0]
    Path("d.tsv").write_text("sentence\tlabel\nhard\t0\n")
    with pytest.raises(ValueError, match=r"w was started with another configuration:\ndata\.dev: .* then, .* now"):
        trial_runs(RATES, {"trials": 2})
    settings = json.loads(Path("w/run.json").read_text())
    assert settings.pop("data").keys() == {"train", "dev"}
    Path("w/run.json").write_text(json.dumps(settings))  # as an earlier version wrote it
    assert trial_runs(RATES, {"trials": 2}) == [1]


def test_the_first_model_and_the_corpora_of_trials_are_data(parts, goldens, tmp_path):
    words = ["--config=experiments/configs/bert.py:toy", f"--init={goldens / 'bert_tiny'}"]
    command = parts.run_search.read_command("pretrain", words)
    assert parts.run_search.hash_inputs("pretrain", command).keys() == {"init"}
    command.config.data = str(tmp_path / "nosuch")
    with pytest.raises(FileNotFoundError, match="nosuch"):
        parts.run_search.hash_inputs("pretrain", command)


def test_the_same_command_after_its_cause_was_mended(trial_runs):
    with pytest.raises(ValueError, match="refused"):
        trial_runs(RATES, {"trials": 1}, refuse=(0,))
    assert trial_runs(RATES, {"trials": 1}) == [1]


def test_the_directory_of_something_else_is_left_alone(trial_runs, tmp_path):
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "run.json").write_text('{"program": "finetune"}')
    with pytest.raises(ValueError, match="was started with another configuration"):
        trial_runs(RATES, {})
    assert json.loads((tmp_path / "w" / "run.json").read_text()) == {"program": "finetune"}
    assert not (tmp_path / "w" / "search.journal").exists()


def test_seeds_side_by_side_draw_other_values(go):
    drawn = [list_trials(go(str(seed), trials=4, sampler="random", bad=False, seed=seed)[1]) for seed in (0, 1)]
    first, second = ([params["optimizer.learning_rate"] for params, _, _ in trials] for trials in drawn)
    assert len({*first, *second}) == 8


@pytest.mark.long
def test_real_trials(tmp_path):
    """The rate of a toy BERT: a search that SIGTERM stops resumes and finishes."""
    pytest.importorskip("optuna", reason="a search needs the extra `search`")
    small = ["--config.steps=40", "--config.eval_every=10", "--config.checkpoint_every=10", "--config.log_every=5"]
    small += ["--config.toyworld.documents=300", "--config.model.num_layers=1", "--config.eval_batches=2"]
    command = [
        sys.executable, "-m", "experiments.search", "--program=pretrain", "--trials=4", f"--workdir={tmp_path}",
        "--over=optimizer.learning_rate=1e-4..1e-2,log", "--", "--config=experiments/configs/bert.py:toy", *small,
    ]  # fmt: skip
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "", "PYTHONPATH": os.pathsep.join(sys.path)}
    stopped = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 300
    while not (tmp_path / "trials" / "000" / "metrics.jsonl").is_file() and time.monotonic() < until:
        time.sleep(0.1)
    stopped.send_signal(signal.SIGTERM)
    _, output = stopped.communicate(timeout=120)
    assert stopped.returncode == 75 and "the same command continues" in output, output
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    text = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert text.count("| done |") + text.count("| ended early |") == 4 and text.count("| done |") >= 3


def test_a_report_in_korean(go, parts):
    *_, study, _, _, workdir = go("w", trials=4)
    space = parts.trials.read_space("optimizer.learning_rate=1e-4..1e-2", CONFIG)
    rate_search = parts.trials.Search("finetune", "finetune.py", space, "dev/f1", False, workdir, {})
    text = parts.run_search.write_results(rate_search, study, "the command", "ko")
    page = (workdir / "report.html").read_text(encoding="utf-8")
    assert '<html lang="ko">' in page and "dev/f1 탐색" in page
    for english, korean in (("done", "끝남"), ("trial", "시도"), ("steps", "스텝 수"), ("The trials", "시도 목록")):
        assert korean in page and f">{english}" not in page
    assert "| done |" in text, "the Markdown stays as it is"


def test_a_report_escapes_what_it_shows(go, parts):
    bad = "<script>alert(1)</script>"
    *_, study, _, _, workdir = go("w", trials=2)
    space = parts.trials.read_space("optimizer.learning_rate=1e-4..1e-2", CONFIG)
    rate_search = parts.trials.Search("finetune", f"{bad}.py", space, bad, False, workdir, {"train": bad})
    parts.run_search.write_results(rate_search, study, bad)
    page = (workdir / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 6, "the title twice, a column, the command, and in the command of each trial"
