"""The quickstart: its parts are commands that their programs understand, its files are read, and its page tells all."""

import re
import shlex
from pathlib import Path

import pytest
from absl import flags

from bert_elmo_jax import load
from bert_elmo_jax.data.toyworld import ToyWorld
from experiments.quickstart_parts import COLUMNS, TASKS, Sizes, parts_of, read_words, write_tasks
from experiments.quickstart_transfer import RESULT
from experiments.task_data import read_data

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


def test_every_part_is_a_command_of_its_program(program, tmp_path):
    """What the page says is typed in: the real program's flags take it, and its config comes to the same."""
    write_tasks(tmp_path / "tasks", WORLDS, 40)
    own = {name: program(name).FLAGS for name in ("finetune",)}
    for part in parts_of(tmp_path, TINY):
        words = shlex.split(part.command)
        assert words[:2] == ["python", "-m"] and words[2] == f"experiments.{part.program}"
        given = read_words(part)
        assert given.workdir == tmp_path / part.name
        for word in words[3:]:
            name = word.partition("=")[0].removeprefix("--")
            if part.program in own and not name.startswith("config"):
                assert name in own[part.program], word
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


@pytest.mark.long
def test_all_of_it_stopped_and_gone_on_with(program, tmp_path, capsys, monkeypatch):
    quickstart = program("quickstart")
    made: list[str] = []
    make = quickstart.make

    def stop_after_four(workdir, part):
        if len(made) == 4:
            raise KeyboardInterrupt
        made.append(part.name)
        return make(workdir, part)

    monkeypatch.setattr(quickstart, "make", stop_after_four)
    with pytest.raises(KeyboardInterrupt):
        quickstart.quickstart(tmp_path, TINY)
    kept = {file: file.stat().st_mtime_ns for file in tmp_path.rglob(RESULT)}
    assert len(made) == 4 and len(kept) == 2
    monkeypatch.setattr(quickstart, "make", make)
    assert quickstart.quickstart(tmp_path, TINY) == 0
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
    assert model.predict([("Who is at sea ?", "The ship is at sea .")])[0].text
    assert load(tmp_path / "senses_network_elmo").predict(["배를 타고 갔다 ."])[0].tags
    capsys.readouterr()
    assert quickstart.quickstart(tmp_path, TINY) == 0
    assert "part 1 of" not in capsys.readouterr().err
    assert flags.FLAGS["workdir"].default == "runs/quickstart"
