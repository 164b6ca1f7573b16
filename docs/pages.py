"""The pages of the site, made from the repository itself: README and news, packages and modules, programs and configs.

MkDocs calls `on_config` and `on_files`; mkdocstrings shows every object to `Examples`.
"""

import ast
import dataclasses
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import griffe
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PACKAGE = "bert_elmo_jax"
PROSE = {
    "README.md": ("index.md", "Home"),
    "README.ko.md": ("ko.md", "한국어"),
    "docs/architecture.md": ("architecture.md", "Architecture"),
    "CONTRIBUTING.md": ("contributing.md", "Contributing"),
    "CHANGELOG.md": ("changelog.md", "Changelog"),
}
FENCED = re.compile(r"^```.*?^```$", re.M | re.S)
# Code, which stays as it is; or where a link or a picture leads to.
TARGET = re.compile(r"""`[^`\n]+`|(?<=\]\()[^)\s#]+|(?<=\ssrc=")[^"#]+|(?<=\shref=")[^"#]+|(?<=\ssrcset=")[^"#]+""")
SHORT = 80  # characters of a constant's value, where it is shown


class Examples(griffe.Extension):
    """Docstrings as Markdown, shapes as they are written, and what the networks of Flax are made with."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for every object of the package as it is found."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
        if isinstance(obj, griffe.Function):
            for annotation in (obj.returns, *(parameter.annotation for parameter in obj.parameters)):
                quote_shapes(annotation)
        elif isinstance(obj, griffe.Attribute):
            quote_shapes(obj.annotation)
        elif isinstance(obj, griffe.Class) and any(str(base) == "nn.Module" for base in obj.bases):
            made = griffe.ExprName("dataclasses.dataclass")  # by Flax, behind the scenes
            obj.decorators.append(griffe.Decorator(made, lineno=None, endlineno=None))


def quote_shapes(annotation: Any) -> None:
    """A shape of one axis is to be shown as it is written: griffe makes `Float[Array, N]` of `Float[Array, "N"]`."""
    if not isinstance(annotation, griffe.Expr):
        return
    if isinstance(annotation, griffe.ExprSubscript) and annotation.canonical_path.startswith("jaxtyping."):
        elements: list[Any] = getattr(annotation.slice, "elements", [])
        elements[1:] = ['"{}"'.format(str(element).strip("'\" ")) for element in elements[1:]]
    for field in dataclasses.fields(annotation):
        value = getattr(annotation, field.name)
        for part in value if isinstance(value, list) else [value]:
            quote_shapes(part)


def as_markdown(docstring: str) -> str:
    r"""A docstring with its examples in fences.

    >>> as_markdown("Adds <UNK>.\n\n>>> 1 + 1\n2")
    'Adds &lt;UNK>.\n\n```pycon\n>>> 1 + 1\n2\n```'
    """
    paragraphs = docstring.split("\n\n")
    made = [f"```pycon\n{text}\n```" if text.startswith(">>> ") else escaped(text) for text in paragraphs]
    return "\n\n".join(made)


def escaped(text: str) -> str:
    """Text in which `<UNK>` is no tag."""
    return re.sub(r"`[^`]*`|<", lambda found: "&lt;" if found[0] == "<" else found[0], text)


def relinked(text: str, lead: Callable[[str], str | None]) -> str:
    """Markdown whose relative links lead to where the files are on the site: `lead` says so, None if nowhere else.

    >>> relinked("[a](b.md#c), `[a](b.md)`, [d](https://d.org)", {"b.md": "e.md"}.get)
    '[a](e.md#c), `[a](b.md)`, [d](https://d.org)'
    """

    def changed(found: re.Match[str]) -> str:
        if found[0].startswith(("`", "mailto:")) or "://" in found[0]:
            return found[0]
        return lead(posixpath.normpath(found[0])) or found[0]

    prose, code = FENCED.split(text), FENCED.findall(text)
    return "".join(TARGET.sub(changed, part) + block for part, block in zip(prose, [*code, ""]))


def modules(package: Path, name: str) -> Iterator[tuple[str, Path]]:
    """Every public package and module, each package before its modules."""
    yield name, package / "__init__.py"
    for path in sorted(package.iterdir(), key=lambda path: path.stem):
        if path.is_dir() and (path / "__init__.py").is_file():
            yield from modules(path, f"{name}.{path.name}")
        elif path.suffix == ".py" and not path.stem.startswith("_"):
            yield f"{name}.{path.stem}", path


def page_of(name: str, path: Path) -> str:
    """Where the page of a module is.

    >>> page_of("bert_elmo_jax.nn", Path("nn/__init__.py")), page_of("bert_elmo_jax.nn.lstm", Path("nn/lstm.py"))
    ('reference/nn/index.md', 'reference/nn/lstm.md')
    """
    folder = "/".join(["reference", *name.split(".")[1:]])
    return f"{folder}/index.md" if path.name == "__init__.py" else f"{folder}.md"


def module_page(name: str, package: Any) -> str:
    """What stands on the page of a module; of a package the names that it gives and its modules, each with a link."""
    module = package[name.partition(".")[2]] if name != PACKAGE else package
    if not module.is_init_module:
        return f"::: {name}\n"
    members = [member for member in module.members.values() if not member.name.startswith("_")]
    own = [member.name for member in members if not member.is_alias and not member.is_module and member.docstring]
    given = [module[exported] for exported in module.exports or () if exported not in own]
    below = sorted((member for member in members if not member.is_alias and member.is_module), key=lambda m: m.name)
    said = f"::: {name}\n    options:\n      members: {own or 'false'}\n"
    return "\n".join([said, *table("Names", map(row, given)), *table("Modules", map(row, below))])


def table(title: str, rows: Iterable[str]) -> list[str]:
    """A table of names with what they are; nothing where there are none."""
    lines = list(rows)
    return [f"## {title}\n\n| Name | What it is |\n|---|---|", *lines, ""] if lines else []


def row(of: Any) -> str:
    """A line of such a table."""
    if of.docstring:
        return f"| [`{of.name}`][{of.canonical_path}] | {first_paragraph(of.docstring.value)} |"
    value = str(of.value)  # of a constant, or of what annotations call a type
    return f"| `{of.name}` | {f'`{value}`' if len(value) <= SHORT else 'a constant'} |"


def first_paragraph(docstring: str) -> str:
    """What a table says of something."""
    return " ".join(docstring.split("\n\n")[0].split()).replace("|", "\\|")


def programs_page() -> str:
    """The programs with what their --help says first, benchmarks, and configs."""
    parts = [
        "# Programs",
        "`python -m experiments.NAME --help` lists the flags, with `--config=FILE` a config's fields.",
    ]
    parts += [
        f"## {path.stem}\n\n```text\n{said}\n```"
        for path, said in documented(".")
        if '__name__ == "__main__"' in path.read_text(encoding="utf-8")
    ]
    for folder in ("benchmarks", "configs"):
        rows = (f"| `{path.stem}` | {escaped(first_paragraph(said))} |" for path, said in documented(folder))
        parts.append("\n".join(table(f"experiments/{folder}", rows)))
    return "\n\n".join(parts)


def documented(folder: str) -> Iterator[tuple[Path, str]]:
    """The public files of a folder of experiments, and their docstrings."""
    for path in sorted((ROOT / "experiments" / folder).glob("[a-z]*.py")):
        yield path, ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def branch(package: str, paths: Mapping[str, Path]) -> list[Any]:
    """The navigation of a package: its own page, its modules and packages."""
    found: list[Any] = [page_of(package, paths[package])]
    for name, path in paths.items():
        if name.rpartition(".")[0] == package:
            below = branch(name, paths) if path.name == "__init__.py" else page_of(name, path)
            found.append({name.rpartition(".")[2]: below})
    return found


def on_config(config: Any) -> Any:
    """What the tabs are."""
    home, korean, *rest = ({title: page} for page, title in PROSE.values())
    reference = {"Reference": branch(PACKAGE, dict(modules(ROOT / PACKAGE, PACKAGE)))}
    config.nav = [home, korean, reference, {"Programs": "programs.md"}, *rest]
    return config


def on_files(files: Files, config: Any) -> Files:
    """All pages, and the files that README and its like show or lead to."""

    def lead(target: str) -> str | None:
        if target in PROSE:
            return PROSE[target][0]
        if (ROOT / target).is_file() and files.get_file_from_path(target) is None:
            files.append(File.generated(config, target, abs_src_path=str(ROOT / target)))
        return None

    for source, (page, _) in PROSE.items():
        text = relinked((ROOT / source).read_text(encoding="utf-8"), lead)
        files.append(File.generated(config, page, content=text))
    package = griffe.load(PACKAGE, search_paths=[ROOT], resolve_aliases=True)
    for name, path in modules(ROOT / PACKAGE, PACKAGE):
        files.append(File.generated(config, page_of(name, path), content=module_page(name, package)))
    files.append(File.generated(config, "programs.md", content=programs_page()))
    return files
