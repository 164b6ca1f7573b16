"""The pages of the site, generated from the repository: README and changelog, packages and modules, programs, configs.

MkDocs calls `on_config` and `on_files`; mkdocstrings passes every object to `Examples`.
"""

import ast
import dataclasses
import functools
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import griffe
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PACKAGE = "bert_elmo_jax"
# The folders of docs/, in the order of the site, with their title in both languages.
SECTIONS = {
    "tutorials": ("Tutorials", "튜토리얼"),
    "guides": ("Guides", "안내서"),
    "concepts": ("Concepts", "개념"),
    "results": ("Results", "결과"),
    ".": ("Reference", "참고"),
}
# Sources outside of docs/, and their pages.
ROOT_PAGES = {
    "README.md": "index.md",
    "README.ko.md": "ko.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
FENCED = re.compile(r"^```.*?^```$", re.M | re.S)
# Code, which is kept; or the target of a link or picture.
TARGET = re.compile(r"""`[^`\n]+`|(?<=\]\()[^)\s#]+|(?<=\ssrc=")[^"#]+|(?<=\shref=")[^"#]+|(?<=\ssrcset=")[^"#]+""")
SHORT = 80  # the most characters of a constant's value on its page


class Examples(griffe.Extension):
    """Converts docstrings to Markdown, quotes shapes, and marks Flax modules as dataclasses."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Convert one object; griffe calls this for every object of the package."""
        if obj.docstring is not None:
            obj.docstring.value = convert_docstring(obj.docstring.value)
        if isinstance(obj, griffe.Function):
            for annotation in (obj.returns, *(parameter.annotation for parameter in obj.parameters)):
                quote_shapes(annotation)
        elif isinstance(obj, griffe.Attribute):
            quote_shapes(obj.annotation)
        elif isinstance(obj, griffe.Class) and any(str(base) == "nn.Module" for base in obj.bases):
            decorator = griffe.ExprName("dataclasses.dataclass")  # Flax does so
            obj.decorators.append(griffe.Decorator(decorator, lineno=None, endlineno=None))


def quote_shapes(annotation: Any) -> None:
    """Restore the quotes of shapes: griffe turns `Float[Array, "N"]` into `Float[Array, N]`."""
    if not isinstance(annotation, griffe.Expr):
        return
    if isinstance(annotation, griffe.ExprSubscript) and annotation.canonical_path.startswith("jaxtyping."):
        elements: list[Any] = getattr(annotation.slice, "elements", [])
        elements[1:] = ['"{}"'.format(str(element).strip("'\" ")) for element in elements[1:]]
    for field in dataclasses.fields(annotation):
        value = getattr(annotation, field.name)
        for part in value if isinstance(value, list) else [value]:
            quote_shapes(part)


def convert_docstring(docstring: str) -> str:
    """Return a docstring with its examples in fences."""
    paragraphs = docstring.split("\n\n")
    blocks = [f"```pycon\n{text}\n```" if text.startswith(">>> ") else escape_tags(text) for text in paragraphs]
    return "\n\n".join(blocks)


def escape_tags(text: str) -> str:
    """Return text whose `<UNK>` is no HTML tag."""
    return re.sub(r"`[^`]*`|<", lambda match: "&lt;" if match[0] == "<" else match[0], text)


def relink(text: str, lead: Callable[[str], str | None]) -> str:
    """Return Markdown with its relative links changed to `lead(target)`, unless that is None."""

    def changed(match: re.Match[str]) -> str:
        if match[0].startswith(("`", "mailto:")) or "://" in match[0]:
            return match[0]
        return lead(posixpath.normpath(match[0])) or match[0]

    prose, code = FENCED.split(text), FENCED.findall(text)
    return "".join(TARGET.sub(changed, part) + block for part, block in zip(prose, [*code, ""]))


def list_modules(package: Path, name: str) -> Iterator[tuple[str, Path]]:
    """Yield every public package and module, each package before its modules."""
    yield name, package / "__init__.py"
    for path in sorted(package.iterdir(), key=lambda path: path.stem):
        if path.is_dir() and (path / "__init__.py").is_file():
            yield from list_modules(path, f"{name}.{path.name}")
        elif path.suffix == ".py" and not path.stem.startswith("_"):
            yield f"{name}.{path.stem}", path


def locate_page(name: str, path: Path) -> str:
    """Return the path of a module's page, such as reference/nn/index.md or reference/nn/lstm.md."""
    folder = "/".join(["reference", *name.split(".")[1:]])
    return f"{folder}/index.md" if path.name == "__init__.py" else f"{folder}.md"


def write_module(name: str, package: Any) -> str:
    """Return the page of a module; for a package, its names and modules with links."""
    module = package[name.partition(".")[2]] if name != PACKAGE else package
    if not module.is_init_module:
        return f"::: {name}\n"
    members = [member for member in module.members.values() if not member.name.startswith("_")]
    own_names = [member.name for member in members if not member.is_alias and not member.is_module and member.docstring]
    imported = [member.name for member in members if member.is_alias and member.target_path.startswith(f"{PACKAGE}.")]
    names = [module[name] for name in module.exports or imported if name not in (*own_names, "lazy_names")]
    modules = sorted((member for member in members if not member.is_alias and member.is_module), key=lambda m: m.name)
    page = f"::: {name}\n    options:\n      members: {own_names or 'false'}\n"
    return "\n".join([page, *draw_table("Names", map(draw_row, names)), *draw_table("Modules", map(draw_row, modules))])


def draw_table(title: str, rows: Iterable[str]) -> list[str]:
    """Return a table of names and descriptions; [] without rows."""
    lines = list(rows)
    return [f"## {title}\n\n| Name | What it is |\n|---|---|", *lines, ""] if lines else []


def draw_row(of: Any) -> str:
    """Return the table row of an object."""
    if of.docstring:
        return f"| [`{of.name}`][{of.canonical_path}] | {first_paragraph(of.docstring.value)} |"
    value = str(of.value)  # of a constant or a type alias
    return f"| `{of.name}` | {f'`{value}`' if len(value) <= SHORT else 'a constant'} |"


def first_paragraph(docstring: str) -> str:
    """Return the first paragraph of a docstring, on one line."""
    return " ".join(docstring.split("\n\n")[0].split()).replace("|", "\\|")


def write_programs() -> str:
    """Return the page of programs with their docstrings, benchmarks, and configs."""
    hint = "`python -m experiments.NAME --help` lists the flags, with `--config=NAME` a config's fields."
    parts = ["# Programs", hint]
    for path, text in list_documented("."):
        if '__name__ == "__main__"' in path.read_text(encoding="utf-8"):
            parts.append(f"## {path.stem}\n\n```text\n{text}\n```")
    for folder in ("benchmarks", "configs"):
        names = [pair for path, text in list_documented(folder) for pair in [(path.stem, text), *list_recipes(path)]]
        rows = (f"| `{name}` | {escape_tags(first_paragraph(text))} |" for name, text in names)
        parts.append("\n".join(draw_table(f"experiments/{folder}", rows)))
    return "\n\n".join(parts)


def list_documented(folder: str) -> Iterator[tuple[Path, str]]:
    """Yield the public files in a folder of experiments with their docstrings."""
    for path in sorted((ROOT / "experiments" / folder).glob("[a-z]*.py")):
        yield path, ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def list_recipes(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the recipes of a config file with their docstrings."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    chosen = [node.value for node in module.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)]
    names = {arg.id for call in chosen for arg in call.args if isinstance(arg, ast.Name)}
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name in names:
            yield f"{path.stem}:{node.name}", ast.get_docstring(node) or ""


def list_branch(package: str, paths: Mapping[str, Path]) -> list[Any]:
    """Return the navigation of a package: its own page, its modules and packages."""
    entries: list[Any] = [locate_page(package, paths[package])]
    for name, path in paths.items():
        if name.rpartition(".")[0] == package:
            entry = list_branch(name, paths) if path.name == "__init__.py" else locate_page(name, path)
            entries.append({name.rpartition(".")[2]: entry})
    return entries


def list_prose() -> dict[str, str]:
    """Return the sources of all written pages, each with its place in the site."""
    written = sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md"))
    return ROOT_PAGES | {f"docs/{page}": page for page in written if not page.startswith("static/")}


def list_section(folder: str, korean: bool) -> list[str]:
    """Return the pages of a folder of docs/ in one language."""
    pages = [page for source, page in list_prose().items() if source.startswith("docs/")]
    inside = [page for page in pages if (posixpath.dirname(page) or ".") == folder]
    return [page for page in inside if page.endswith(".ko.md") == korean]


def on_config(config: Any) -> Any:
    """Set the tabs of the site: English by goal, then the same in Korean."""
    modules = list_branch(PACKAGE, dict(list_modules(ROOT / PACKAGE, PACKAGE)))
    nav: list[Any] = [{"Start": "index.md"}]
    korean: list[Any] = [{"시작": "ko.md"}]
    for folder, (title, title_ko) in SECTIONS.items():
        english_pages: list[Any] = list_section(folder, korean=False)
        if folder == ".":
            english_pages += ["programs.md", {"Modules": modules}, "contributing.md", "changelog.md"]
        nav += [{title: english_pages}] if english_pages else []
        korean_pages = list_section(folder, korean=True)
        korean += [{title_ko: korean_pages}] if korean_pages else []
    config.nav = [*nav, {"한국어": korean}]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add all pages, and the files that README and the other documents link to."""
    prose = list_prose()

    def lead(source: str, target: str) -> str | None:
        """Return the link from the page of a source to a target, which is relative to the source."""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if target not in prose and not (ROOT / target).is_file():
            return None
        if target not in prose and files.get_file_from_path(target) is None:
            files.append(File.generated(config, target, abs_src_path=str(ROOT / target)))
        return posixpath.relpath(prose.get(target, target), posixpath.dirname(prose[source]) or ".")

    for source, page in prose.items():
        text = relink((ROOT / source).read_text(encoding="utf-8"), functools.partial(lead, source))
        files.append(File.generated(config, page, content=text))
    package = griffe.load(PACKAGE, search_paths=[ROOT], resolve_aliases=True)
    for name, path in list_modules(ROOT / PACKAGE, PACKAGE):
        files.append(File.generated(config, locate_page(name, path), content=write_module(name, package)))
    files.append(File.generated(config, "programs.md", content=write_programs()))
    return files
