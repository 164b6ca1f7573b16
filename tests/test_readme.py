"""Every Python block of the README runs, word for word, and the Korean README says the same."""

import functools
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from bert_elmo_jax.runs.config_files import read_config

ROOT = Path(__file__).parents[1]
ENGLISH, KOREAN = TWINS = tuple((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.ko.md"))
BLOCKS = re.findall(r"^```python\n(.*?)^```", ENGLISH, re.M | re.S)
COMMANDS = re.findall(r"python -m experiments\.([\w.]*\w)((?:[^`\n]|\\\n)*)", ENGLISH)
FENCED = re.compile(r"^```.*?^```$", re.M | re.S)
CODE = re.compile(r"`[^`\n]+`")
# With its separators and its exponent; a unit or a Korean particle behind it is no part of it, so there is no \b.
NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)*[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]*")


def tables(text):
    """The tables outside of fenced blocks, each a list of rows, each a list of cells."""
    found = re.findall(r"(?:^\|.*\n)+", FENCED.sub("", text), re.M)
    return [[re.split(r"(?<!\\)\|", row)[1:-1] for row in table.splitlines()] for table in found]


def sections(text):
    """What stands above the first heading and under each, without fenced blocks and tables."""
    return re.split(r"^## .*$", re.sub(r"^\|.*$", "", FENCED.sub("", text), flags=re.M), flags=re.M)


def links(text):
    """The files that a text links to."""
    found = re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", FENCED.sub("", text)))
    return [link.split("#")[0] for link in found if "://" not in link and not link.startswith(("#", "mailto:"))]


@pytest.fixture
def somewhere(tmp_path, monkeypatch):
    """A folder with what the blocks speak of."""
    from bert_elmo_jax.data.corpora.prepare import Request, prepare

    from .data.conftest import inline, no_bar
    from .inference.test_task_model import write

    for name in ("bert_tiny", "elmo_tiny"):
        shutil.copytree(ROOT / "tests" / "goldens" / name, tmp_path / "tests" / "goldens" / name)
    (tmp_path / "novel.txt").write_text("The river was muddy.\n배를 타고 강을 건넜다.\n" * 20, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    write(Path("runs/reviews"), "sst2", labels=("0", "1"))
    prepare(Request(("novel.txt",), "corpora/novels", vocab_size=60, heldout=0.0), inline, no_bar)
    return tmp_path


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.splitlines()[-1][:30])
@pytest.mark.usefixtures("somewhere", "as_users_run")
def test_python_blocks_run(block):
    exec(compile(block, "README.md", "exec"), {})


def test_there_are_blocks():
    assert len(BLOCKS) >= 3
    assert len(COMMANDS) >= 4


@pytest.mark.parametrize(("program", "flags"), COMMANDS)
def test_commands_name_flags_that_exist(program, flags):
    source = (ROOT / "experiments" / f"{program.replace('.', '/')}.py").read_text(encoding="utf-8")
    for flag in re.findall(r"--(\w+)", flags):
        assert re.search(rf'DEFINE_\w+\(\s*"{flag}"', source), f"{program} has no flag --{flag}"
    configured = re.search(r"--config=(experiments/configs/\w+\.py(:\w+)?)", flags)
    if configured or program == "finetune":
        config, _ = read_config(configured[1] if configured else "experiments/configs/finetune.py")
        for path in re.findall(r"--config\.([\w.]+)=", flags):
            *above, field = path.split(".")
            assert field in functools.reduce(lambda part, name: part[name], above, config)


def test_twins_have_the_same_blocks():
    assert FENCED.findall(ENGLISH)
    assert FENCED.findall(KOREAN) == FENCED.findall(ENGLISH)


def test_twins_have_the_same_headings_and_tables():
    english, korean = (len(re.findall(r"^## ", FENCED.sub("", text), re.M)) for text in TWINS)
    assert korean == english > 0
    shapes = [[[len(row) for row in table] for table in tables(text)] for text in TWINS]
    assert shapes[1] == shapes[0] != []


def test_rows_of_twins_have_the_same_figures_and_code():
    for english, korean in zip(*([row for table in tables(text) for row in table] for text in TWINS), strict=True):
        numbers = [[NUMBER.findall(cell) for cell in row] for row in (english, korean)]
        assert numbers[1] == numbers[0], f"{'|'.join(korean)} has other figures than {'|'.join(english)}"
        code = [[sorted(CODE.findall(cell)) for cell in row] for row in (english, korean)]
        assert code[1] == code[0], f"{'|'.join(korean)} has other code than {'|'.join(english)}"


@pytest.mark.parametrize("pattern", [NUMBER, CODE], ids=["figures", "code"])
def test_prose_of_the_korean_twin_lacks_nothing(pattern):
    """It may have more: Korean writes digits where English writes words, and repeats a name where English says `it`."""
    for english, korean in zip(*map(sections, TWINS), strict=True):
        lost = Counter(pattern.findall(english)) - Counter(pattern.findall(korean))
        assert not lost, f"the Korean README lacks {sorted(lost)} where the English one says: {english.strip()}"


def test_numbers_end_where_korean_goes_on():
    assert NUMBER.findall("문장 1,000개, 5.23과 10⁻⁷이고 **0.49**로") == ["1,000", "5.23", "10⁻⁷", "0.49"]
    assert NUMBER.findall("10⁻⁷까지") != NUMBER.findall("10⁻⁵까지")


@pytest.mark.parametrize(
    ("text", "twin"), [(ENGLISH, "README.ko.md"), (KOREAN, "README.md")], ids=["english", "korean"]
)
def test_links_lead_to_files(text, twin):
    assert twin in links(text)
    for link in links(text):
        assert (ROOT / link).is_file(), f"a link leads to {link}, which is not there"
