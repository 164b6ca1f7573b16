"""The quickstart: its parts are commands that their programs understand, its files are read, and its page tells all."""

import os
import re
import shlex
import signal
from pathlib import Path

import pytest
from absl import flags
from bert_elmo_jax.quickstart.progress import Progress, seconds

from bert_elmo_jax import load
from bert_elmo_jax.quickstart.parts import COLUMNS, RESULT, TASKS, Folder, Sizes, parts_of, read_words
from bert_elmo_jax.quickstart.tasks import write_tasks
from bert_elmo_jax.runs.task_data import read_data
from bert_elmo_jax.sweeps.schedule import State
from bert_elmo_jax.toyworld import ToyWorld

ROOT = Path(__file__).parents[2]
WORLDS = [ToyWorld(language, topics=4, words=4) for language in ("en", "ko")]
STEPS = "--config.steps=4 --config.eval_every=2 --config.checkpoint_every=2 --config.toyworld.documents=150"
SMALL = "--config.model.hidden_size=8 --config.model.num_heads=2 --config.model.feed_forward_size=8"
TINY = Sizes(
    bert=f"{STEPS} {SMALL} --config.model.num_layers=1",
    elmo=f"{STEPS} --config.model.cell_size=8 --config.model.projection_size=4",
    head="--config.epochs=1",
    network="--config.epochs=1 --config.lstm_size=3",
    examples=40,
    seeds=(0, 1),
)


def test_every_part_is_a_command_of_its_program(tmp_path):
    """What the page says is typed in: the real program's flags take it, and its config comes to the same."""
    write_tasks(tmp_path / "tasks", WORLDS, 40)
    flags_of_finetune = ROOT.joinpath("experiments", "finetune.py").read_text(encoding="utf-8")
    for part in parts_of(tmp_path, TINY):
        words = shlex.split(part.command)
        shown = "finetune" if part.task else part.program
        assert words[:3] == ["python", "-m", f"experiments.{shown}"]
        given = read_words(part.words)
        assert given.workdir == tmp_path / part.name
        for word in words[3:]:
            name = word.partition("=")[0].removeprefix("--")
            if part.task and not name.startswith("config"):
                assert f'("{name}", ' in flags_of_finetune, word
        if part.task:
            data = read_data(given.config)
            assert given.config.epochs == 1 and len(data.train) >= 40 and len(data.dev) > 20


def test_parts_of_the_table():
    parts = parts_of(Path("runs/quickstart"), Sizes())
    assert [(p.task, p.column) for p in parts if p.task] == [(task, column) for task in TASKS for column in COLUMNS]
    assert len({part.name for part in parts}) == len(parts)
    seeds = {word for part in parts if part.task for word in part.words if word.startswith("--seeds")}
    assert seeds == {"--seeds=0,1,2"}


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


def test_the_bar_and_the_time_left(tmp_path, monkeypatch):
    parts, now = parts_of(tmp_path, Sizes()), [100.0]
    monkeypatch.setattr("bert_elmo_jax.quickstart.progress.time.monotonic", lambda: now[0])
    progress = Progress(parts, Folder(tmp_path), jobs=2)
    said: list[str] = []
    monkeypatch.setattr(progress, "say", said.append)
    state = State(parts, done={"senses_network"})  # of an earlier start
    progress.changed(state)
    whole = sum(map(seconds, parts))
    assert said == [] and progress.made(state) == seconds(parts[4]) < whole / 10
    (tmp_path / "bert").mkdir()
    (tmp_path / "bert" / "log.txt").write_bytes("  7%|▋ |\r 12%|█▏        | 180/1500".encode())
    state.running.update(bert=now[0], senses_bert=now[0])
    now[0] += 0.4 * seconds(parts[3])
    made = progress.made(state) - seconds(parts[4])
    assert made == pytest.approx(0.12 * seconds(parts[0]) + 0.4 * seconds(parts[3]))
    now[0] += 1000.0
    assert progress.share(parts[3], 100.0) == 0.95, "what takes longer than usual is not done for that"
    state.done.add("bert")
    state.running.clear()
    progress.changed(state)
    assert len(said) == 1 and said[0].startswith("bert: done, 2 of 14, about ")
    progress.close()


def test_parts_need_what_they_begin_with():
    for part in parts_of(Path("runs/quickstart"), Sizes()):
        named = {word for word in ("bert", "elmo") if f"runs/quickstart/{word}" in shlex.join(part.words[:-1])}
        assert {need.name for need in part.needs} == named, part.name


@pytest.mark.long
def test_all_of_it_stopped_and_gone_on_with(program, tmp_path, capsys, monkeypatch):
    """Two parts at a time, each in a process of its own."""
    quickstart = program("quickstart")
    changed = quickstart.Progress.changed

    def stop_after_four(self, state):
        changed(self, state)
        if len(state.done) == 4:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(quickstart.Progress, "changed", stop_after_four)
    assert quickstart.quickstart(tmp_path, TINY, jobs=2) == 75
    assert "the same command goes on from there" in capsys.readouterr().err
    monkeypatch.setattr(quickstart.Progress, "changed", changed)
    made = [part for part in parts_of(tmp_path, TINY) if Folder(tmp_path).is_done(part)]
    assert 4 <= len(made) <= 5
    kept = {file: file.stat().st_mtime_ns for file in tmp_path.rglob(RESULT)}
    assert quickstart.quickstart(tmp_path, TINY, jobs=2) == 0
    assert {file: file.stat().st_mtime_ns for file in kept} == kept  # what is done is not done again
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for part in parts_of(tmp_path, TINY):
        assert part.command.replace("'", "&#x27;") in page
    for words in ("best possible", "배: ELMo, layer 2", "softmax of the weights", "ideal reader", "[CLS]"):
        assert words in page, words
    assert not re.search(r"""(src|href)=["']?http|<script|@import""", page)  # one file, and no network
    assert len(page) < 2_000_000
    picture = (tmp_path / "senses.svg").read_text(encoding="utf-8")
    shown = re.findall(r'font-weight="600">(.*?), \d+% right<', picture)
    assert shown == ["배: ELMo, layer 0", "배: ELMo, layer 2", "bank: BERT, layer 1"]
    model = load(tmp_path / "questions_bert")
    assert model.predict([("Who is at sea ?", "The ship is at sea .")])[0].answer
    assert load(tmp_path / "senses_network_elmo").predict(["배를 타고 갔다 ."])[0].tags
    capsys.readouterr()
    assert quickstart.quickstart(tmp_path, TINY) == 0
    assert ": done" not in capsys.readouterr().err
    assert flags.FLAGS["workdir"].default == "runs/quickstart"
