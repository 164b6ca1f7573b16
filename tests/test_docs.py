"""The site that `make docs` builds: every module has a page, no link is broken, and no page loads remote files."""

import html
import importlib.util
import os
import posixpath
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from .test_pages import links

ROOT = Path(__file__).parents[1]
MODULES = [
    path.relative_to(ROOT / "bert_elmo_jax")
    for path in sorted((ROOT / "bert_elmo_jax").rglob("*.py"))
    if path.name == "__init__.py" or not path.name.startswith("_")
]
LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "srcset"), ("link", "href")}


@pytest.fixture(scope="module")
def pages():
    """Return the script that makes the pages, as a module."""
    for name in ("mkdocs", "griffe"):
        pytest.importorskip(name, reason="needs the extra `docs`: make docs")
    spec = importlib.util.spec_from_file_location("pages", ROOT / "docs" / "pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_parts_of_the_script(pages):
    fenced = "Adds &lt;UNK>.\n\n```pycon\n>>> 1 + 1\n2\n```"
    assert pages.convert_docstring("Adds <UNK>.\n\n>>> 1 + 1\n2") == fenced
    assert pages.locate_page("bert_elmo_jax.nn", Path("nn/__init__.py")) == "reference/nn/index.md"
    assert pages.locate_page("bert_elmo_jax.nn.lstm", Path("nn/lstm.py")) == "reference/nn/lstm.md"


def test_links_change_where_they_are_links(pages):
    text = (
        '[한국어](README.ko.md) ![그림](docs/배.svg) <img src="docs/배.svg"> [here](#측정) [out](https://a.org/README.md)\n'
        "```bash\n[no](README.ko.md)\n```\n`[no](README.ko.md)` [both](./README.ko.md#명령-두-개)\n"
    )
    targets = []
    new_text = pages.relink(text, lambda target: targets.append(target) or {"README.ko.md": "ko.md"}.get(target))
    assert targets == ["README.ko.md", "docs/배.svg", "docs/배.svg", "README.ko.md"]
    assert new_text == text.replace("[한국어](README.ko.md)", "[한국어](ko.md)").replace("./README.ko.md#", "ko.md#")
    assert pages.relink("", {}.get) == ""


class Page(HTMLParser):
    """The ids of a page, the targets of its links, and the files that a browser fetches for it."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.leads, self.fetched = set(), set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids.add(values.get("id"))
        if tag == "a" and values.get("href"):
            self.leads.add(values["href"])
        self.fetched |= {values[name] for kind, name in LOADED if tag == kind and values.get(name)}


def build(root, folder):
    """Build the site as `make docs` does, in another folder."""
    for name in ("mkdocstrings", "material"):
        pytest.importorskip(name, reason="needs the extra `docs`: make docs")
    arguments = re.search(r"/mkdocs (build .*)", (ROOT / "Makefile").read_text(encoding="utf-8"))[1].split()
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", *arguments, f"--site-dir={folder}"]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.usefixtures("pages")
def test_a_link_that_leads_nowhere_is_an_error(tmp_path):
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
    for name in ("README.ko.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    pages = [ROOT / "README.ko.md", *(ROOT / "docs").rglob("*.md")]
    linked = {page.parent / link for page in pages for link in links(page.read_text(encoding="utf-8"))}
    for file in {file.resolve().relative_to(ROOT.resolve()) for file in linked}:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, tmp_path / file)
    (tmp_path / "bert_elmo_jax" / "text").mkdir(parents=True)
    (tmp_path / "bert_elmo_jax" / "__init__.py").write_text('"""All."""\n', encoding="utf-8")
    (tmp_path / "bert_elmo_jax" / "text" / "__init__.py").write_text('"""See [x][no.where]."""\n', encoding="utf-8")
    good = "# A\n## 두 명령\n[a](Makefile) [b](#두-명령) [c](README.ko.md#지원-범위) [d](CONTRIBUTING.md)\n"
    (tmp_path / "README.md").write_text(good + "[e](none.py) [f](CONTRIBUTING.md#none)\n", encoding="utf-8")
    (tmp_path / "Makefile").write_text("all:\n", encoding="utf-8")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    warnings = [line for line in done.stderr.splitlines() if line.startswith("WARNING")]
    bad = ("'none.py'", "'#none'", "'no.where'")
    assert {name for name in bad for line in warnings if name in line} == set(bad)
    assert all(any(name in line for name in bad) for line in warnings), done.stderr


@pytest.fixture(scope="module")
def site(pages, tmp_path_factory):
    """Return the folder of the strictly built site, and the text of each page."""
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*.html"))
        if path.name != "404.html"  # which a server shows anywhere: its links begin at the root
    }


@pytest.mark.long
def test_the_site(site):
    folder, texts = site
    # A page for every module, which shows its docstring and its public names.
    expected = {f"reference/{path.with_suffix('.html')}".replace("__init__", "index") for path in MODULES}
    assert expected == {name for name in texts if name.startswith("reference/")}
    shown = {name: Page(text) for name, text in texts.items()}
    for name in (
        "bert_elmo_jax.text.tokenizer_folder.load_tokenizer",
        "bert_elmo_jax.nn.attention.SelfAttention.__call__",
    ):
        assert name in shown[f"reference/{'/'.join(name.split('.')[1:3])}.html"].ids
    assert "bert_elmo_jax.inference.load_model.load" in shown["reference/inference/load_model.html"].ids
    assert not [
        name for name in shown["reference/nn/attention.html"].ids if name and "._" in name.replace(".__call", "")
    ]
    # Links lead somewhere, and with nothing but this folder everything is there.
    broken = []
    for name, page in shown.items():
        for link in page.leads | page.fetched:
            target, _, anchor = unquote(link).partition("#")
            if "://" in link or link.startswith(("mailto:", "data:")):
                if link in page.fetched:
                    broken.append((name, link))
                continue
            path = posixpath.normpath(posixpath.join(posixpath.dirname(name), target)) if target else name
            if not (folder / path).is_file() or (anchor and path in shown and anchor not in shown[path].ids):
                broken.append((name, link))
    assert not broken
    styles = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.css"))
    assert not re.search(r"url\(['\"]?https?:|@import", styles)


@pytest.mark.long
def test_pages_show_shapes_examples_and_both_languages(site):
    _, texts = site
    plain = {name: html.unescape(re.sub(r"<[^>]+>", "", text)) for name, text in texts.items()}
    # Shapes as in the source, also of one axis; networks with their fields; examples as code, not as quotations.
    assert 'targets: Int[Array, "*B"],' in plain["reference/losses/cross_entropy.html"]
    assert 'lengths: Int[AnyArray, "B"] | None' in plain["reference/nn/attention.html"]
    assert "num_heads: int," in plain["reference/nn/attention.html"]
    assert '<span class="gp">&gt;&gt;&gt; </span>' in texts["reference/index.html"]
    assert not [name for name, text in texts.items() if name.startswith("reference/") and "<blockquote>" in text]
    # Both languages, and each leads to the other.
    assert 'href="ko.html"' in texts["index.html"]
    assert 'href="index.html"' in texts["ko.html"]
    assert "미세 조정 자세히" in plain["ko.html"]
    assert "python -m experiments.pretrain" in plain["programs.html"]
    assert "elmo:original" in plain["programs.html"]
    assert 'data-md-color-scheme="slate"' in texts["index.html"]
