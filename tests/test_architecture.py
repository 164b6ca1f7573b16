"""docs/architecture.md and how_to_add.md describe the code; outside a family's folder, no code asks for a family."""

import ast
import builtins
import configparser
import dataclasses
import functools
import re
import symtable
from pathlib import Path

import pytest

from bert_elmo_jax.families import REGISTRY
from bert_elmo_jax.families.family import Family

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "bert_elmo_jax"
PAGES, HOW_TO_ADD = (
    [ROOT / "docs" / f"{name}{end}" for end in (".md", ".ko.md")] for name in ("architecture", "how_to_add")
)
# Tests register families of their own; the package's families have a folder.
FAMILIES = sorted(name for name in REGISTRY if (PACKAGE / "families" / name).is_dir())
# These folders choose a family for each run.
FREE = ("experiments/configs/", "experiments/sweeps/", "experiments/benchmarks/", "experiments/studies/")
# Names that code outside a family's folder may use: (path, name or "" for all, reason).
ALLOWED = [
    ("bert_elmo_jax/quickstart/", "", "it pretrains a BERT and an ELMo by design"),
    ("bert_elmo_jax/optim/", "bert_adam", "the optimiser of a paper, a public name"),
    ("bert_elmo_jax/runs/initial_state.py", "bert_adam", "the same optimiser, chosen by config.optimizer.name"),
    ("bert_elmo_jax/families/family.py", "TRANSFORMER_SHARDING", "of the layers that many families share"),
    ("bert_elmo_jax/", "bert_elmo_jax.nn.transformer", "the layers that many families share"),
    (
        "bert_elmo_jax/text/cleaning.py",
        "'albert'",
        "the models whose released SentencePiece does not say what it cleans",
    ),
    *(
        ("bert_elmo_jax/text/wordpiece_files.py", f"'{name}'", "the models whose frame transformers makes itself")
        for name in ("bert", "distilbert", "electra")
    ),
    ("bert_elmo_jax/families/sentence_files.py", "'Transformer'", "a module of sentence-transformers"),
]


@pytest.fixture(params=PAGES, ids=lambda path: path.name)
def page(request):
    return request.param.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def contracts():
    """Return the import contracts of setup.cfg."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    return {name: config[name] for name in config.sections() if name.startswith("importlinter:contract")}


def read_table(page, number):
    """Return the names in code style in the first column of a table."""
    tables = re.findall(r"(?:^\|.*\n)+", page, re.M)
    cells = [line.split("|")[1] for line in tables[number].splitlines()[2:]]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def package_folders():
    return {f"{path.name}/" for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}


def test_layout_lists_every_folder_once(page):
    listed = read_table(page, 0)
    assert set(listed) == package_folders()
    assert len(listed) == len(set(listed))


def test_every_folder_is_named_in_an_import_contract(contracts):
    named = {word for contract in contracts.values() for value in contract.values() for word in value.split()}
    missing = {folder for folder in package_folders() if f"bert_elmo_jax.{folder[:-1]}" not in named}
    assert not missing, f"setup.cfg has no import contract for {sorted(missing)}"


def test_import_order_is_that_of_the_contracts(page, contracts):
    def read(name):
        layers = contracts[f"importlinter:contract:{name}"]["layers"].split("\n")
        return [[part.strip().removeprefix("bert_elmo_jax.") for part in layer.split(":")] for layer in layers if layer]

    orders = [[part.split(", ") for part in line.split(" → ")] for line in re.findall(r"`(\w[\w, ]* → [^`]*)`", page)]
    assert orders == [read("layers"), read("text-and-data")]


def test_contract_table_has_the_fields_of_a_family(page):
    fields = [field.name for field in dataclasses.fields(Family)]
    assert sorted(read_table(page, 1)) == sorted(fields)


@pytest.mark.parametrize("file", [*PAGES, *HOW_TO_ADD], ids=lambda path: path.name)
def test_every_path_on_a_page_exists(file):
    page = file.read_text(encoding="utf-8")
    names = {name for name in re.findall(r"`([\w./]+)`", page) if "/" in name or name.endswith((".py", ".md", ".cfg"))}
    # Files of a run directory or store, and a new family's own files.
    names -= {"tokenizer/", "checkpoints/", "config.py", "model.py", "formats.py", "family.py", "__init__.py"}
    paths = {name.replace("NAME", "awd_lstm") for name in names}
    missing = {path for path in paths if not (ROOT / path).exists() and not (PACKAGE / path).exists()}
    missing -= {folder for folder in missing if (PACKAGE / "data" / folder).is_dir()}  # the layout's line on data/
    assert len(paths) > 20 and not missing, sorted(missing)


@pytest.mark.parametrize("twins", [PAGES, HOW_TO_ADD], ids=["architecture", "how_to_add"])
def test_both_pages_say_the_same(twins):
    english, korean = (path.read_text(encoding="utf-8") for path in twins)
    fence = r"(?ms)^```.*?^```$"
    assert re.findall(fence, english) == re.findall(fence, korean)
    english, korean = (re.sub(fence, "", page) for page in (english, korean))
    for mark in (r"^#+ ", r"^\d+\. ", r"^- ", r"^\|"):
        assert re.findall(mark, english, re.M) == re.findall(mark, korean, re.M)
    ours, theirs = ({" ".join(code.split()) for code in re.findall(r"`([^`]+)`", page)} for page in (english, korean))
    assert ours == theirs


def test_every_folder_of_a_family_is_registered():
    assert {path.parent.name for path in PACKAGE.glob("families/*/family.py")} == set(FAMILIES)


USUAL_WORDS = ("static",)  # as in static_argnames


def split_words(name):
    """Return the words of an identifier in lower case: BertConfig has bert and config."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


@functools.cache
def names_family(name, family):
    """Return True if a family's name is one word of an identifier, or several in a row."""
    words = split_words(name.replace("bert_elmo_jax", ""))
    return any("".join(words[i:j]) == family for i in range(len(words)) for j in range(i + 1, len(words) + 1))


def find_identifiers(tree):
    """Yield every identifier in the code with its line: names, attributes, arguments, imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            continue
        for _, value in ast.iter_fields(node):
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, str):
                    yield item, getattr(node, "lineno", 0)


def find_strings(tree):
    """Yield every string in the code with its line, without docstrings."""
    texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts:
            yield node.value, node.lineno


@functools.cache
def walk_once(tree):
    """Return identifiers and strings of a tree, which is searched for every family."""
    return list(find_identifiers(tree)), list(find_strings(tree))


def find_names(tree, family):
    """Yield the places of a tree that name a family: (line, name); a name that is a usual word, by its folder only."""
    identifiers, strings = walk_once(tree)
    for name, line in identifiers:
        if family not in USUAL_WORDS and names_family(name, family):
            yield line, name
    for text, line in strings:
        by_folder = "families" in text and re.search(rf"families[./]{family}\b", text)
        if (family not in USUAL_WORDS and text.lower() == family) or by_folder:
            yield line, repr(text)


def find_class_tests(tree):
    """Yield the places of a tree that test for the class of a configuration or of inputs: (line, code)."""

    def is_config(node):
        names = [n.id if isinstance(n, ast.Name) else getattr(n, "attr", "") for n in ast.walk(node)]
        return any(name.endswith("Config") or name in ("Inputs", "Pieces", "Words", "Pairs") for name in names)

    for node in ast.walk(tree):
        tested_node = None
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
            tested_node = node.args[1]
        elif isinstance(node, ast.Compare) and "type(" in ast.unparse(node):
            tested_node = node
        elif isinstance(node, ast.MatchClass):
            tested_node = node.cls
        if tested_node is not None and is_config(tested_node):
            yield node.lineno if hasattr(node, "lineno") else 0, ast.unparse(node)


@functools.cache
def read_code():
    """Return the path and the syntax tree of every file that may not name a family."""
    trees = []
    for folder in (PACKAGE, ROOT / "experiments"):
        for file in sorted(folder.rglob("*.py")):
            path = file.relative_to(ROOT).as_posix()
            if not path.startswith((*FREE, *(f"bert_elmo_jax/families/{family}/" for family in FAMILIES))):
                trees.append((path, ast.parse(file.read_text(encoding="utf-8"))))
    return trees


def is_allowed(path, name, entry):
    place, allowed, _ = entry
    return path.startswith(place) and allowed in ("", name)


def is_registry(path, name):
    return path == "bert_elmo_jax/families/__init__.py" and name.startswith("'")


@pytest.fixture(scope="module")
def offences():
    """Return all places that name a family, as (path, line, name)."""
    return [
        (path, line, name)
        for path, tree in read_code()
        for family in FAMILIES
        for line, name in find_names(tree, family)
        if not is_registry(path, name)
    ]


def test_code_outside_families_names_no_family(offences):
    forbidden_names = [
        f"{path}:{line}: {name}"
        for path, line, name in offences
        if not any(is_allowed(path, name, entry) for entry in ALLOWED)
    ]
    assert not forbidden_names, "code outside families/<name>/ names a family:\n" + "\n".join(forbidden_names)


def test_every_exception_is_needed(offences):
    unused = [entry for entry in ALLOWED if not any(is_allowed(path, name, entry) for path, _, name in offences)]
    assert not unused


def test_no_code_tests_for_the_class_of_a_configuration():
    class_tests = [f"{path}:{line}: {code}" for path, tree in read_code() for line, code in find_class_tests(tree)]
    assert not class_tests, "\n".join(class_tests)


def test_offences_are_found():
    code = """
from bert_elmo_jax.families.elmo import config
import bert_elmo_jax.families.bert.model
def elmo_shapes(width, *, use_bert=False): return ELMoLayer(bert=width)
if kind == "bert": pass
load = lazy_function("bert_elmo_jax.families.bert.google", "read")
class Bertha: 'About bert.'
albert = self.robert
"""
    tree = ast.parse(code)
    assert {line for line, _ in find_names(tree, "bert")} == {3, 4, 5, 6}
    assert {line for line, _ in find_names(tree, "elmo")} == {2, 4}
    tests = """
isinstance(c, BertConfig)
isinstance(c, (int, config.ElmoConfig))
type(c) is BertConfig
match c:
    case BertConfig(): pass
isinstance(c, ml_collections.ConfigDict)
isinstance(c, family.config)
"""
    assert [line for line, _ in find_class_tests(ast.parse(tests))] == [2, 3, 4, 6]


def find_imports(tree, modules):
    """Return the modules that a file imports, inside functions too, but not those for type checkers alone."""
    names, nodes = set(), [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            nodes += node.orelse
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            full = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= full & modules | ({node.module} if full - modules else set())
        nodes += ast.iter_child_nodes(node)
    return names & modules


def find_circles(imports):
    """Return the groups of modules that import each other, directly or not."""
    reached = {module: set(names) - {module} for module, names in imports.items()}
    changed = True
    while changed:
        changed = False
        for names in reached.values():
            more = set().union(*(reached[name] for name in names)) - names
            changed |= bool(more)
            names |= more
    groups = {tuple(sorted(n for n in names if module in reached[n])) for module, names in reached.items()}
    return {group for group in groups if len(group) > 1}


def test_modules_import_each_other_in_no_circle():
    files = [path.relative_to(ROOT) for path in PACKAGE.rglob("*.py")]
    paths = {".".join(file.with_suffix("").parts).removesuffix(".__init__"): ROOT / file for file in files}
    modules = set(paths)
    circles = find_circles({name: find_imports(ast.parse(p.read_text("utf-8")), modules) for name, p in paths.items()})
    assert not circles, sorted(circles)


def test_circles_are_found():
    assert find_circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == {("a", "b", "c")}


def find_undefined(source, name="source"):
    """Return the global names that functions and classes of a module read and that it never binds, with their lines.

    The linter cannot look for them, because the names in the shapes of annotations are none of Python's.
    """
    module = symtable.symtable(source, name, "exec")
    bound = {*dir(builtins), "__file__", "__path__", "__spec__"}
    bound |= {symbol.get_name() for symbol in module.get_symbols() if symbol.is_assigned() or symbol.is_imported()}

    def look(table):
        for inner in table.get_children():
            reads = [s.get_name() for s in inner.get_symbols() if s.is_global() and s.is_referenced()]
            yield from (f"{name}:{inner.get_lineno()}: {read}" for read in reads if read not in bound)
            yield from look(inner)

    return list(look(module))


def test_no_function_reads_a_name_that_is_nowhere():
    files = [path for folder in (PACKAGE, ROOT / "experiments") for path in sorted(folder.rglob("*.py"))]
    found = [line for path in files for line in find_undefined(path.read_text("utf-8"), str(path.relative_to(ROOT)))]
    assert not found


def test_undefined_names_are_found():
    source = "import os\ndef f(x): return os.sep + lost(x)\nclass C:\n    y = 1\n    z = y + gone\n"
    assert find_undefined(source) == ["source:2: lost", "source:3: gone"]
