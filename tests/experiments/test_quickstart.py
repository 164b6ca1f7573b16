"""The quickstart: its commands, its task files, its progress, and its page."""

import os
import re
import shlex
import signal
import time
from pathlib import Path

import pytest

from bert_elmo_jax import load
from bert_elmo_jax.quickstart.run_quickstart import (
    COLUMNS,
    TASKS,
    Ceilings,
    QuickstartFolders,
    Sizes,
    list_parts,
    run_quickstart,
    write_tasks,
)
from bert_elmo_jax.runs.finetuning import RESULT
from bert_elmo_jax.runs.task_data import read_data
from bert_elmo_jax.sweeps.runners import LOG
from bert_elmo_jax.sweeps.schedule import Progress, SweepState
from bert_elmo_jax.toyworld import ToyWorld
from experiments.studies.ceilings.best_masked import masked_scores
from experiments.studies.ceilings.best_stream import stream_scores

ROOT = Path(__file__).parents[2]
CEILINGS = Ceilings(masked_scores, stream_scores)
WORLDS = [ToyWorld(language, topics=4, words=4) for language in ("en", "ko")]
STEPS = {"steps": 4, "eval_every": 2, "checkpoint_every": 2, "toyworld.documents": 150}
SMALL = {"model.hidden_size": 8, "model.num_heads": 2, "model.feed_forward_size": 8, "model.num_layers": 1}
TINY = Sizes(
    bert={**STEPS, **SMALL},
    elmo={**STEPS, "model.cell_size": 8, "model.projection_size": 4},
    head={"epochs": 1},
    network={"epochs": 1, "lstm_size": 3},
    examples=40,
    seeds=(0, 1),
)


def test_every_part_is_a_command_of_its_program(tmp_path):
    """The program's flags accept what the page shows, and its task can be read."""
    write_tasks(tmp_path / "tasks", WORLDS, 40)
    flags = ROOT.joinpath("experiments", "finetune.py").read_text(encoding="utf-8")
    folders = QuickstartFolders(tmp_path)
    for part in list_parts(TINY):
        words = shlex.split(folders.command(part.point))
        assert words[:3] == ["python", "-m", f"experiments.{part.point.program}"]
        assert words[-1] == f"--workdir={tmp_path / part.point.name}"
        if part.task:
            named = [word.partition("=")[0].removeprefix("--") for word in words[3:]]
            assert all(f'("{name}", ' in flags for name in named if not name.startswith("config."))
            config = folders.config(part.point)
            data = read_data(config)
            assert config.epochs == 1 and len(data.train) >= 40 and len(data.dev) > 20


def test_parts_of_the_table(tmp_path):
    parts = list_parts(Sizes())
    assert [(p.task, p.column) for p in parts if p.task] == [(task, column) for task in TASKS for column in COLUMNS]
    assert len({part.point.name for part in parts}) == len(parts)
    commands = [QuickstartFolders(tmp_path).command(part.point) for part in parts if part.task]
    assert all(" --seeds=0,1,2 " in command for command in commands)


def test_the_tasks_are_in_both_languages_and_can_be_learned(tmp_path):
    write_tasks(tmp_path, WORLDS, 30)
    for part, count in (("train", 30), ("dev", 15)):
        topics = (tmp_path / "topics" / f"{part}.tsv").read_text(encoding="utf-8").splitlines()
        assert topics[0] == "text\tlabel" and len(topics) == 2 * count + 1
        korean = [bool(re.search("[가-힣]", line)) for line in topics[1:]]
        assert korean == [False] * count + [True] * count
    tags = {part: (tmp_path / "senses" / f"{part}.conll").read_text("utf-8") for part in ("train", "dev")}
    senses = {part: {line.split("\t")[1] for line in text.splitlines() if line} for part, text in tags.items()}
    assert senses["dev"] <= senses["train"] and {"bank.money", "배.ship"} <= senses["train"]
    assert not list(tmp_path.rglob("*.partial"))


def test_the_time_left(tmp_path, capsys, monkeypatch):
    parts, folders, now = list_parts(Sizes()), QuickstartFolders(tmp_path), [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    points, usual = [part.point for part in parts], {part.point.identity: part.seconds for part in parts}
    progress = Progress(folders, 2, lambda point: usual[point.identity])
    state = SweepState(points, done={points[4].identity})  # of an earlier start
    progress.changed(state)
    total_seconds = sum(usual.values())
    assert progress.time_left(state) == (total_seconds - parts[4].seconds) / 2
    state.running[points[0].identity] = state.running[points[2].identity] = now[0]
    run = folders.claim(points[0])
    (run / "log.txt").write_bytes("step 5\r 50%|█████     | 750/1500 [00:40".encode())
    now[0] += 1000.0
    shares = [progress.share(points[n], state) for n in (0, 2)]
    assert shares == [0.5, 0.95], "a pretraining's own bar; a part that takes longer than usual is not done yet"
    messages = capsys.readouterr().err
    assert re.fullmatch(r"1 of 14 done · about \d+ minutes left\n", messages), "only the number of parts done before"
    (run / "costs.jsonl").write_text('{"seconds": 160, "processor": 160, "device": ""}')
    state.done.add(points[0].identity)
    state.running.clear()
    progress.changed(state)
    messages = capsys.readouterr().err
    assert re.fullmatch(r"bert: done · 2 of 14 done · about \d+ minutes left\n", messages)
    assert progress.expect(points[1]) == 2 * parts[1].seconds, "this machine takes twice as long as usual"
    progress._bar.close()


@pytest.mark.long
def test_all_of_it_stopped_and_resumed(tmp_path, capsys, monkeypatch):
    """Two parts at a time, each in its own process."""
    changed = Progress.changed

    def stop_after_four(self, state):
        changed(self, state)
        if len(state.done) == 4:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(Progress, "changed", stop_after_four)
    assert run_quickstart(tmp_path, CEILINGS, TINY, jobs=2) == 75
    assert "the same command continues" in capsys.readouterr().err
    monkeypatch.setattr(Progress, "changed", changed)
    folders, parts = QuickstartFolders(tmp_path), list_parts(TINY)
    assert 4 <= len([part for part in parts if folders.is_done(part.point)]) <= 5
    write_times = {file: file.stat().st_mtime_ns for file in tmp_path.rglob(RESULT)}
    assert run_quickstart(tmp_path, CEILINGS, TINY, jobs=2) == 0
    assert {file: file.stat().st_mtime_ns for file in write_times} == write_times, "no part runs twice"
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for part in parts:
        assert folders.command(part.point).replace("'", "&#x27;") in page
    for words in ("best possible", "배: ELMo, layer 2", "softmax of the weights", "ideal reader", "[CLS]"):
        assert words in page, words
    lessons = re.findall(r'<div lang="(..)">.*?<ol>(.*?)</ol>(.*?)</div>', page)
    guides = len(list(ROOT.joinpath("docs", "guides").glob("*.ko.md")))
    counts = [(language, text.count("<li>"), links.count("<a href=")) for language, text, links in lessons]
    assert counts == [("en", 3, guides), ("ko", 3, guides)]
    english, korean = (re.findall(r"\d+\.\d+|\d+%", text) for _, text, _ in lessons)
    assert english == korean and len(english) == 13, "the same numbers in both languages"
    assert not re.search(r"""(src|href)=["']?http|<script|@import""", page), "one file, without a network"
    assert len(page) < 2_000_000
    logs = [file.read_text(encoding="utf-8") for file in tmp_path.rglob(LOG)]
    hints = [line for log in logs for line in log.splitlines() if "warning:" in line and "development data" not in line]
    assert len(logs) == len(parts) and not hints  # TINY has few rows of development data
    picture = (tmp_path / "senses.svg").read_text(encoding="utf-8")
    shown = re.findall(r'font-weight="600">(.*?), \d+% right<', picture)
    assert shown == ["배: ELMo, layer 0", "배: ELMo, layer 2", "bank: BERT, layer 1"]
    model = load(tmp_path / "questions_bert")
    assert model.predict([("Who is at sea ?", "The ship is at sea .")])[0].answer
    assert load(tmp_path / "senses_network_elmo").predict(["배를 타고 갔다 ."])[0].tags
    capsys.readouterr()
    assert run_quickstart(tmp_path, CEILINGS, TINY) == 0
    assert ": done" not in capsys.readouterr().err
