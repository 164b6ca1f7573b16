"""README and the pages below docs/: Python runs, commands exist, links lead to files, both languages agree."""

import ast
import contextlib
import functools
import io
import json
import pkgutil
import re
import shutil
from pathlib import Path

import pytest

from bert_elmo_jax.families import all_families
from bert_elmo_jax.runs.config_files import list_fields, list_recipes, override, read_config

ROOT = Path(__file__).parents[1]
DOCS = [path.relative_to(ROOT) for path in sorted((ROOT / "docs").rglob("*.md")) if "static" not in path.parts]
ENGLISH = [Path("README.md"), *(page for page in DOCS if not page.name.endswith(".ko.md"))]
TWINS = [(page, page.with_name(f"{page.stem}.ko.md")) for page in ENGLISH]
PAGES = [page for twins in TWINS for page in twins]
LARGEST = (12_000, 12_800)  # bytes of an English and of a Korean page, whose letters take three bytes
LARGEST_OF = {"README": (11_000, 14_000), "own_code": (12_800, 14_200), "lectures": (14_400, 16_300)}
FENCED = re.compile(r"^```.*?^```$", re.M | re.S)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
CODE = re.compile(r"`[^`\n]+`")
COMMENT = re.compile(r"(^|\s+)#\s.*$", re.M)
TEXT = re.compile(r""""[^"\n]*[가-힣 ][^"\n]*"|'[^'\n]*[가-힣 ][^'\n]*'""")  # a string with Hangul or a space
# Differences between the Korean and the English pages.
LOCAL = {"klue/bert-base": "google-bert/bert-base-cased", " --encoding=cp949": "", "reviews.csv": "authors.csv",
         "review": "sentence", "liked": "author", "movies": "authors"}  # fmt: skip
OWN_DATA = "first_finetune.md"  # its twin has other data, and so other output
COMMAND = re.compile(r"python -m experiments\.([\w.]*\w)((?:[^`\n]|\\\n)*)")
FIELD = re.compile(r"--config\.([\w.]*\w)")
SOURCE = re.compile(r"\b(?:experiments|bert_elmo_jax|tests|notebooks|docs)/[\w/.]*\w\.(?:py|md|ipynb|css)\b")
# With its separators and its exponent; a unit or a Korean particle behind it is no part of it, so there is no \b.
NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)*[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]*")


def read(page):
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(text):
    """Return the fenced blocks of a page, each as (language, code)."""
    return BLOCK.findall(text)


def tables(text):
    """Return the tables outside fenced blocks, each a list of rows, each a list of cells."""
    raw_tables = re.findall(r"(?:^\|.*\n)+", FENCED.sub("", text), re.M)
    return [[re.split(r"(?<!\\)\|", row)[1:-1] for row in table.splitlines()] for table in raw_tables]


def links(text):
    """Return the files that a text links to."""
    targets = re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", FENCED.sub("", text)))
    return [link.split("#")[0] for link in targets if "://" not in link and not link.startswith(("#", "mailto:"))]


def unlocalised(code):
    """Return code without language-specific parts: comments, texts, models, encodings, and line breaks."""
    code = TEXT.sub('"…"', COMMENT.sub("", code))
    for korean, english in LOCAL.items():
        code = code.replace(korean, english)
    return re.sub(r"\s*\\\n\s*", " ", code)


def in_millions(text):
    """Return a text with Korean numbers in ten thousands (1,140만) rewritten in millions (11.4), as in English."""
    return re.sub(r"([0-9][0-9,]*)만", lambda match: f"{int(match[1].replace(',', '')) / 100:g}", text)


def commands():
    """Return each command of a program in the English pages, as (page, program, flags)."""
    return [(str(page), program, flags) for page in ENGLISH for program, flags in COMMAND.findall(read(page))]


@functools.cache
def known_fields():
    """Return the fields of every recipe of experiments/configs."""
    fields = set()
    for file in (ROOT / "experiments" / "configs").glob("[a-z]*.py"):
        if "get_config" in file.read_text(encoding="utf-8"):
            for recipe in list_recipes(str(file))[0] or [""]:
                config, _ = read_config(f"{file}:{recipe}" if recipe else str(file))
                fields |= {field for field, _ in list_fields(config)}
    return fields


@pytest.fixture(scope="module")
def made_once(tmp_path_factory):
    from .page_files import write_page_files

    folder = tmp_path_factory.mktemp("pages")
    write_page_files(folder)
    return folder


@pytest.fixture
def page_folder(made_once, tmp_path, monkeypatch):
    """Provide a folder with everything that pages name; hub names lead to small models."""
    folder = tmp_path / "page"
    shutil.copytree(made_once, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HF_HUB_CACHE", str(folder / "hub"))


RUN = [page for page in (*ENGLISH, Path("README.ko.md")) if "```python" in read(page)]  # other twins have equal code


@pytest.mark.long
@pytest.mark.parametrize("page", RUN, ids=str)
@pytest.mark.usefixtures("page_folder", "as_users_run", "one_device")
def test_python_blocks_run(page):
    """Run blocks in order in one namespace. A directly following text block is the output, except for stand-ins."""
    from .page_files import STAND_INS

    names, text = {}, read(page)
    stand_ins = {*STAND_INS}  # and objects made from them: released models would print other things
    for match in BLOCK.finditer(text):
        language, code = match.groups()
        if language != "python":
            continue
        before, printed = set(names), io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * text.count("\n", 0, match.start(2)) + code, str(page), "exec"), names)
        if any(re.search(rf"(?<![\w.]){name}\b", code) for name in stand_ins):
            stand_ins |= set(names) - before
            continue
        shown = re.match(r"\n*```text\n(.*?)^```$", text[match.end() :], re.M | re.S)
        assert shown is None or printed.getvalue() == shown[1]


@pytest.mark.parametrize(("page", "program", "flags"), commands())
def test_commands_name_flags_and_fields_that_exist(page, program, flags):
    file = ROOT / "experiments" / f"{program.replace('.', '/')}.py"
    assert file.is_file(), f"{page} starts {program}"
    source = file.read_text(encoding="utf-8")
    if "define_sharing" in source:
        source += (ROOT / "experiments" / "command_line" / "sharing.py").read_text(encoding="utf-8")
    ours, _, theirs = flags.partition(" -- ")  # behind which search has the flags of another program
    for flag in set(re.findall(r"--(\w+)", ours)) - {"help"}:
        exists = re.search(rf'DEFINE_\w+\(\s*"({flag}|{flag.removeprefix("no")})"', source)
        assert exists, f"{page}: {program} has no flag --{flag}"
    configured = re.search(r"--config=(\w+(?::\w+)?)(?![\w.])", flags)
    if configured or program == "finetune":
        config, _ = read_config(configured[1] if configured else "finetune")
        for field, quoted, plain in re.findall(r"--config\.([\w.]+)=(?:'([^']*)'|([^\s`]*))", ours + theirs):
            value = quoted or plain
            if "…" not in value:
                override(config, [f"{field}={value}"])


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_fields_and_files_exist(page):
    text = read(page)
    assert not set(FIELD.findall(text)) - known_fields() - {"FIELD"}
    assert not [name for name in SOURCE.findall(text) if "NAME" not in name and not (ROOT / name).is_file()]


def support(yes, no):
    """Return the rows of the support matrix, from the registry."""
    for family in all_families():
        if not family.module.__module__.startswith("bert_elmo_jax"):
            continue  # one that a test has registered
        formats = ", ".join(f"`{name}`" for name in (*family.formats, "run"))
        written = ", ".join(f"`{name}`" for name in (*(n for n, form in family.formats.items() if form.write), "run"))
        objectives = ", ".join(f"`{name}`" for name in family.objectives)
        heads = no if family.inputs.name == "words" else yes
        masks = yes if "mlm" in family.heads or "denoise" in family.objectives else no
        writes = no if family.decoder is None else yes
        cells = (f"`{family.name}`", formats, yes, masks, objectives, heads, yes, written, writes)
        yield f"| {' | '.join(cells)} |"


@pytest.mark.parametrize(
    ("page", "words"), [("docs/families.md", ("yes", "no")), ("docs/families.ko.md", ("예", "아니요"))]
)
def test_the_support_matrix_is_that_of_the_registry(page, words):
    missing = set(support(*words)) - set(read(page).splitlines())
    assert not missing, f"{page} lacks the rows\n" + "\n".join(sorted(missing))


def test_there_are_pages_and_commands():
    assert len(ENGLISH) >= 10
    assert len(commands()) >= 20


@pytest.mark.parametrize(("english", "korean"), TWINS, ids=lambda page: page.stem)
def test_twins_have_the_same_blocks(english, korean):
    """Korean blocks may have Korean comments, texts, files, and a model that reads Korean."""
    mine, theirs = (
        [
            (language, "" if language == "text" and english.name == OWN_DATA else unlocalised(code))
            for language, code in blocks(read(page))
        ]
        for page in (english, korean)
    )
    assert theirs == mine


@pytest.mark.parametrize(("english", "korean"), TWINS, ids=lambda page: page.stem)
def test_twins_have_the_same_headings_and_tables(english, korean):
    texts = [read(page) for page in (english, korean)]
    headings = [[len(level) for level in re.findall(r"^(#+) ", FENCED.sub("", text), re.M)] for text in texts]
    assert headings[1] == headings[0] != []
    shapes = [[[len(row) for row in table] for table in tables(text)] for text in texts]
    assert shapes[1] == shapes[0]


@pytest.mark.parametrize(("english", "korean"), TWINS, ids=lambda page: page.stem)
def test_rows_of_twins_have_the_same_figures_and_code(english, korean):
    rows = [[row for table in tables(read(page)) for row in table] for page in (english, korean)]
    for mine, theirs in zip(*rows, strict=True):
        numbers = [[NUMBER.findall(in_millions(cell)) for cell in row] for row in (mine, theirs)]
        assert numbers[1] == numbers[0], f"{'|'.join(theirs)} has other figures than {'|'.join(mine)}"
        code = [[sorted(CODE.findall(cell)) for cell in row] for row in (mine, theirs)]
        assert code[1] == code[0], f"{'|'.join(theirs)} has other code than {'|'.join(mine)}"


@pytest.mark.parametrize("page", [*PAGES, Path("CONTRIBUTING.md"), Path("CHANGELOG.md")], ids=str)
def test_links_lead_to_files(page):
    targets = links(read(page))
    for link in targets:
        assert (ROOT / page).parent.joinpath(link).is_file(), f"a link of {page} leads to {link}, which is not there"


@pytest.mark.parametrize(("english", "korean"), TWINS, ids=lambda page: page.stem)
def test_pages_begin_with_a_title_and_a_link_to_the_twin(english, korean):
    for page, twin in ((english, korean), (korean, english)):
        title, blank, second = read(page).splitlines()[:3]
        assert title.startswith("# ")
        assert not blank
        assert twin.name in links(second)


@pytest.mark.parametrize(("english", "korean"), TWINS, ids=lambda page: page.stem)
def test_pages_are_short(english, korean):
    for page, largest in zip((english, korean), LARGEST_OF.get(english.stem, LARGEST)):
        assert (ROOT / page).stat().st_size <= largest, f"{page} is too long: split it, or say less"


@pytest.mark.parametrize("readme", TWINS[0], ids=str)
def test_pages_are_two_clicks_from_the_readme(readme):
    near = {(ROOT / link).resolve() for link in links(read(readme))}
    reached = near | {
        (page.parent / link).resolve() for page in near if page.suffix == ".md" for link in links(read(page))
    }
    pages = [page for page in DOCS if page.name.endswith(".ko.md") == readme.name.endswith(".ko.md")]
    assert not [str(page) for page in pages if ROOT / page not in reached]


NOTEBOOKS = [path.relative_to(ROOT) for path in sorted((ROOT / "notebooks").glob("*.ko.ipynb"))]


def shown_imports():
    """Return what pages and notebooks import from the project, as (page, module, name)."""
    sources = [(page, code) for page in PAGES for language, code in blocks(read(page)) if language == "python"]
    for notebook in NOTEBOOKS:
        cells = [cell for cell in json.loads(read(notebook))["cells"] if cell["cell_type"] == "code"]
        sources += [(notebook, re.sub(r"^\s*[!%].*$", "", "".join(cell["source"]), flags=re.M)) for cell in cells]
    return {
        (page, node.module, alias.name)
        for page, code in sources
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in ("bert_elmo_jax", "experiments")
        for alias in node.names
    }


def test_imports_that_are_shown_exist():
    """Running all pages and notebooks takes long; a name that moved shows at once."""
    for page, module, name in sorted(shown_imports(), key=str):
        try:
            pkgutil.resolve_name(f"{module}.{name}")
        except (ImportError, AttributeError) as error:
            pytest.fail(f"{page}: {error}")
