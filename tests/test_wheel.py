"""The wheel, installed into an empty environment and used from a folder with another package called `experiments`.

Building and installing use no network: the environment borrows the installed packages by a path file.
"""

import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from .simulated_devices import program_environment

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[1]
PARTS = ("bert_elmo_jax", "experiments", "setup.py", "setup.cfg", "pyproject.toml", "README.md", "LICENSE")
PACKED = sorted(
    path.relative_to(ROOT)
    for folder in ("bert_elmo_jax", "experiments")
    for path in (ROOT / folder).rglob("*.py")
    if "__pycache__" not in path.parts
)
TINY = ["steps=2", "eval_every=2", "checkpoint_every=2", "eval_batches=1", "toyworld.documents=60", "batch_size=2"]
SIZES = {
    "bert:toy": ["model.hidden_size=8", "model.num_heads=2", "model.feed_forward_size=8", "model.num_layers=1"],
    "elmo:toy": ["model.cell_size=8", "model.projection_size=4", "model.filters=((1,4),(2,4))", "negatives=8"],
    "gpt:toy": ["model.hidden_size=8", "model.num_heads=2", "model.feed_forward_size=8", "model.num_layers=1"],
    "awd_lstm:toy": ["model.embedding_size=8", "model.cell_size=8", "model.num_layers=2"],
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("setuptools", minversion="77", reason="builds need setuptools 77; the extra `dev` has it")
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for part in PARTS:
        path = ROOT / part
        if path.is_dir():
            shutil.copytree(path, source / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, source)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation",
         f"--wheel-dir={folder}", str(source)],
        check=True,
    )  # fmt: skip
    (file,) = folder.glob("*.whl")
    return file


def without_checkout():
    return {name: value for name, value in program_environment().items() if name != "PYTHONPATH"}


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Return the folder of commands of an environment with the wheel."""
    environment = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    python = environment / "bin" / "python"
    install = ["install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    command = [sys.executable, "-m", "pip", "--python", str(python), *install]
    # pip installs nothing if it finds the checkout: by PYTHONPATH, in this folder, or among the borrowed packages.
    subprocess.run(command, check=True, cwd=environment, env=without_checkout())
    names = {"base": str(environment), "platbase": str(environment)}
    packages = Path(sysconfig.get_path("purelib", scheme="venv", vars=names))
    borrowed = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (packages / "borrowed.pth").write_text("\n".join([*borrowed, ""]))
    return environment / "bin"


@pytest.fixture(scope="module")
def run(installed, tmp_path_factory):
    """Return a function that runs a command of the environment in a folder with a decoy, and the folder."""
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "experiments").mkdir()
    (folder / "experiments" / "__init__.py").write_text("raise RuntimeError('this is another package')\n")
    environment = without_checkout()

    def start(command, *words, status=0, **more):
        done = subprocess.run(
            [installed / command, *words], cwd=folder, env={**environment, **more}, capture_output=True, text=True
        )
        assert done.returncode == status, done.stderr[-3000:]
        return done.stdout if status == 0 else done.stderr

    start.folder = folder
    return start


def test_it_has_one_top_level_name_and_every_file(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    version = re.search(r"^version = (\S+)$", (ROOT / "setup.cfg").read_text(encoding="utf-8"), re.M)[1]
    assert {name.partition("/")[0] for name in names} == {"bert_elmo_jax", f"bert_elmo_jax-{version}.dist-info"}
    expected = {str(path if path.parts[0] == "bert_elmo_jax" else Path("bert_elmo_jax", path)) for path in PACKED}
    assert expected <= set(names) and "bert_elmo_jax/py.typed" in names
    assert wheel.stat().st_size < 2e6


def test_its_description_has_whole_addresses(wheel):
    with zipfile.ZipFile(wheel) as file:
        (name,) = [name for name in file.namelist() if name.endswith("METADATA")]
        text = file.read(name).decode()
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert len(links) > 40 and all(link.startswith("https://") for link in links)
    assert "/raw/main/docs/senses.svg" in text and "/blob/main/docs/guides/pretrain.md" in text


def test_public_names(run):
    code = "import bert_elmo_jax as b, sys; print(b.__version__, 'load' in dir(b), 'jax' in sys.modules, b.__file__)"
    version, *loaded, file = run("python", "-c", code).split()
    assert loaded == ["True", "False"] and "site-packages" in file and version[0].isdigit()


def test_every_program_has_help_with_a_command_that_works_here(run):
    listed = re.findall(r"^  ([a-z][\w.]+)  ", run("bert-elmo-jax", "--help"), re.M)
    assert {"pretrain", "finetune", "predict", "doctor", "sweep", "benchmarks.speed"} < set(listed)
    for program in listed:
        shown = run("bert-elmo-jax", program, "--help")
        assert f"bert-elmo-jax {program}" in shown and "python -m experiments" not in shown, program


def test_names_that_almost_exist(run):
    for words, message in (
        (["finetine"], "bert-elmo-jax: there is no program 'finetine'; did you mean finetune?"),
        (["pretrain", "--config=bret:toy", "--workdir=x"], "there is no such recipe; did you mean bert:toy?"),
        (["pretrain", "--config=bert:tooy", "--workdir=x"], "did you mean toy?"),
        (["sweep", "--sweep=bert_tabel5", "--workdir=x"], "there is no such sweep; did you mean bert_table5?"),
    ):
        error = run("bert-elmo-jax", *words, status=2)
        assert message in error and error.count("\n") == 1


@pytest.fixture(scope="module")
def trained(run):
    """Pretrain models by the names of recipes."""
    for recipe, sizes in SIZES.items():
        fields = [f"--config.{field}" for field in (*TINY, *sizes)]
        run("bert-elmo-jax", "pretrain", f"--config={recipe}", f"--workdir=runs/{recipe.partition(':')[0]}", *fields)


@pytest.mark.usefixtures("trained")
def test_recipes_by_name(run):
    report = (run.folder / "runs" / "bert" / "report.html").read_text(encoding="utf-8")
    assert "bert-elmo-jax finetune" in report and "python -m experiments" not in report
    rows = "text\tlabel\n" + "the ship is at sea\t0\nthe bank has money\t1\n" * 8
    (run.folder / "rows.tsv").write_text(rows, encoding="utf-8")
    task = ["--task=classification", "--text=text", "--label=label", "--train=rows.tsv", "--dev=rows.tsv"]
    small = ["--config.epochs=1", "--config.batch_size=8"]
    run("python", "-m", "bert_elmo_jax", "finetune", "--init=runs/bert", *task, *small, "--workdir=runs/head")
    recipe = "from bert_elmo_jax.experiments.configs import bcn\n\n\ndef get_config():\n    c = bcn.get_config()\n"
    (run.folder / "mine.py").write_text(f"{recipe}    c.lstm_size = 4\n    return c\n", encoding="utf-8")
    elmo = ["--config=mine.py", "--config.encoder=runs/elmo", *task, *small, "--workdir=runs/network"]
    run("bert-elmo-jax", "finetune", *elmo)
    out = run("bert-elmo-jax", "predict", "--model=runs/head", "--input=rows.tsv")
    assert len(out.splitlines()) == 16


@pytest.mark.usefixtures("trained")
def test_the_other_programs(run):
    (run.folder / "texts.txt").write_text("The ship is at sea .\nThe bank has money .\n" * 20, encoding="utf-8")
    (run.folder / "words.tsv").write_text("text\tlabel\n" + "sea\t0\nmoney\t1\n" * 8, encoding="utf-8")
    task = "--task=classification --train=words.tsv --dev=words.tsv --text=text --label=label --init=runs/bert"
    for words in (
        "doctor",
        "prepare_data --input=texts.txt --documents=line --vocab_size=64 --output=corpus --workers=1",
        "extract --model=runs/elmo --input=texts.txt --output=vectors.npz",
        "convert --from=runs/bert --to=bert-for-transformers",
        "generate --model=runs/gpt --prompt=the --max_new=3",
        "plan --config=bert:tiny --topology=cpu:1 --tries=0 --config.batch_size=2 --vocab_size=64",
        "probe --what=toyworld --model=runs/bert --words=bank --output=analysis",
        f"search --over=epochs=1,2 --trials=1 --workdir=runs/search -- {task} --config.batch_size=8",
    ):
        shown = run("bert-elmo-jax", *words.split())
        assert "python -m experiments" not in shown, words


@pytest.mark.usefixtures("trained")
def test_a_sweep_by_name_and_the_example_of_a_new_one(run):
    shown = run("bert-elmo-jax", "sweep", "--sweep=own_sop", "--workdir=sweeps", "--runner=print")
    assert "bert-elmo-jax pretrain --config=bert:toy" in shown and "python -m experiments" not in shown
    text = "review,liked\n" + "the ship is at sea,0\nthe bank has money,1\n" * 10
    (run.folder / "reviews.csv").write_text(text, encoding="utf-8")
    printed = run("bert-elmo-jax", "sweep", "--new=my_sweep.py")
    assert "bert-elmo-jax sweep --sweep=my_sweep.py --data=. --workdir=runs/sweeps" in printed
    file = run.folder / "my_sweep.py"
    source = file.read_text(encoding="utf-8").replace("google-bert/bert-base-multilingual-cased", "runs/bert")
    for change in ("(0, 1, 2)", "(0,)"), (', "rate 1e-4": 1e-4', ""), ('"2 epochs": 2.0, ', ""):
        assert change[0] in source
        source = source.replace(*change)
    file.write_text(source, encoding="utf-8")
    run("bert-elmo-jax", "sweep", "--sweep=my_sweep.py", "--data=.", "--workdir=runs/sweeps")
    table = (run.folder / "runs" / "sweeps" / "my_sweep" / "table.md").read_text(encoding="utf-8")
    assert "rate 5e-5" in table and "paper" not in table


@pytest.mark.tables
def test_a_toy_sweep_by_name(run):
    run("bert-elmo-jax", "sweep", "--sweep=ulmfit_table4", "--workdir=sweeps", "--jobs=2")
    assert (run.folder / "sweeps" / "ulmfit_table4-toy" / "table.md").is_file()


@pytest.mark.parametrize("page", ["README.md", "docs/guides/own_code.md"])
def test_the_blocks_of_a_page(run, page):
    from .page_files import write_page_files

    folder = run.folder / Path(page).stem
    write_page_files(folder)
    text = (ROOT / page).read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S))
    (folder / "blocks.py").write_text(f"import os\nos.chdir({str(folder)!r})\n{code}", encoding="utf-8")
    run("python", str(folder / "blocks.py"), HF_HUB_CACHE=str(folder / "hub"), HF_HUB_OFFLINE="1")
