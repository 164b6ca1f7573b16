"""Every notebook runs in a kernel of its own, with tiny settings, and shows its results.

Executed by `tests/execute_notebook.py` in another process, so that the event loops and sockets of a kernel, and what
they warn of, stay out of this one. The Korean twins have the same code: they are run on a model and on files of one's
own, which the English ones are not, so that both ways are taken. `make proofs` executes them.
"""

import ast
import functools
import json
import os
import re
import socket
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from .notebook_files import (
    FILES,
    FINETUNE,
    OWN_CODE,
    PAPER,
    PRETRAIN,
    ROOT,
    SENSES,
    STORY,
    WHY,
    code_of,
    nbformat,
    read,
    settings_of,
)
from .simulated_devices import program_environment

pytestmark = pytest.mark.long
TINY = {
    SENSES: {"steps": 6, "documents": 100, "per_sense": 12},
    PRETRAIN: {"steps": 40, "documents": 100},
    FINETUNE: {"steps": 4, "documents": 100, "examples": 40, "epochs": 1},
    WHY: {"steps": 6, "documents": 100, "small_steps": 4, "count": 40},
    OWN_CODE: {"steps": 6, "documents": 100, "examples": 40, "rounds": 4},
    STORY: {"steps": 6, "documents": 100},
}
SWEEP = '''
"""Taggers of a row each."""

from bert_elmo_jax.experiments.sweeps._scales import ELMO
from bert_elmo_jax.sweeps.definition import Paper

SCALES = ("toy",)
PAPER = Paper("somebody, table 1", ("NER",), ROWS, "two epochs")


def sweep(add):
    """A tagger for each number of epochs."""
    network, task, how = ELMO["toy"].tasks["SRL"]
    small = {**task.settings, **how, "lstm_size": 2, "batch_size": 256}
    for row, epochs in zip(PAPER.rows, (2.0, 3.0, 4.0)):
        add.transfer(row, "NER", network, of=task.of, seeds=(0, 1), **{**small, "epochs": epochs})
'''
ROWS = {"two epochs": (80.0,), "three epochs": (81.0,)}
HANGUL = re.compile("[가-힣]")

# Inserted before the first cell in tests: a warning is an error, and the network cannot be reached.
STRICT = """
import socket, warnings

def _refused(*address, **how):
    raise OSError("a notebook reached for the network")

socket.create_connection = socket.getaddrinfo = _refused
warnings.simplefilter("error")
warnings.filterwarnings("default", module="ipykernel|IPython|jupyter_client|tornado|zmq")  # the kernel's own affairs
warnings.filterwarnings("default", message=".*of the pieces of these texts are")  # a toy reads words that it never saw
"""
# Kill the process once there is a checkpoint, like a machine that is taken away.
# The first touch of a later checkpoint is the kill: earlier ones are whole, and no thread has to be quick enough.
KILLED = """
import os, re, signal, sys

def _kill(event, args):
    if event in ("open", "os.mkdir", "os.rename"):
        found = re.search(r"checkpoints/(\\d+)", str(args[0]))
        if found and int(found[1]) >= 10:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(_kill)
"""
OWN_TEXT = """The boat on the river is old .
배를 타고 강을 건넜다 .
배를 먹고 싶다 .
The old boat sank .
"""


def changed(notebook, settings, before=""):
    """Return the notebook with other settings, made strict, and with some code before its first cell."""
    unknown = settings.keys() - settings_of(notebook).keys()
    assert not unknown, f"the notebook has no settings {sorted(unknown)}"
    first = code_of(notebook)[0]
    first.source = f"{STRICT}{before}\n{first.source}\nsettings |= {settings!r}"
    for cell in code_of(notebook):
        cell.outputs = []
    return notebook


def start(name, folder, compiled, settings, before=""):
    """Execute a notebook in a folder; return its cells with outputs, the exit status, and the seconds that it took."""
    path = folder / f"{name}.ipynb"
    nbformat.write(changed(read(name), settings, before), path)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}
    env |= {"XLA_FLAGS": program_environment()["XLA_FLAGS"], "JAX_COMPILATION_CACHE_DIR": str(compiled)}
    env |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "PIP_NO_INDEX": "1", "HF_HUB_OFFLINE": "1"}
    # Ignore the user's own Jupyter and IPython profiles, extensions and history.
    env |= {f"JUPYTER_{kind}_DIR": str(compiled / "jupyter") for kind in ("CONFIG", "DATA", "RUNTIME")}
    env |= {"IPYTHONDIR": str(compiled / "ipython")}
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "execute_notebook.py"), path.name],
        cwd=folder, env=env, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    return SimpleNamespace(
        cells=code_of(nbformat.read(path, as_version=4)),
        folder=folder,
        status=done.returncode,
        errors=done.stderr,
        seconds=time.monotonic() - began,
    )


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Return a folder for compiled programs, so that kernels compile each only once."""
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture(scope="module")
def executed(compiled, tmp_path_factory):
    """Execute an English notebook that trains one model, once."""
    return functools.cache(lambda name: start(name, tmp_path_factory.mktemp("usual"), compiled, TINY[name]))


@pytest.fixture(scope="module")
def swept(compiled, tmp_path_factory):
    """Execute the paper's notebook, then its twin in the same folder."""
    runs, folder = {}, tmp_path_factory.mktemp("sweep")
    texts = [SWEEP.strip().replace("ROWS", repr(rows)) for rows in (ROWS, ROWS | {"네 에포크": (None,)})]
    (folder / "taggers.py").write_text(texts[0], encoding="utf-8")
    settings = {"sweep": "taggers.py", "own": texts[1]}
    for name in (PAPER, f"{PAPER}.ko"):  # the second does not repeat finished runs
        runs[name] = start(name, folder, compiled, settings)
    return runs


@pytest.fixture(scope="module")
def on_ones_own(compiled, tmp_path_factory):
    """Execute a pretraining, killed and run again, and the Korean twins on its model and on files of one's own."""
    folder = tmp_path_factory.mktemp("own")
    pretrained = folder / "runs" / "pretrain" / "run"
    runs = {"killed": start(PRETRAIN, folder, compiled, TINY[PRETRAIN], KILLED)}
    for name in (PRETRAIN, f"{PRETRAIN}.ko"):  # the second finds the run finished
        runs[name] = start(name, folder, compiled, TINY[PRETRAIN])
    (folder / "boats.txt").write_text(OWN_TEXT, encoding="utf-8")
    model = {"model": str(pretrained), "text": "boats.txt", "words": ["boat", "배*"], "per_sense": 12}
    runs[f"{SENSES}.ko"] = start(f"{SENSES}.ko", folder, compiled, model)
    rows = [f'"{word}, {n}",{label}\n' for n in range(9) for word, label in (("좋다", "호"), ("boring", "불호"))]
    (folder / "reviews.csv").write_text("review,liked\n" + "".join(rows), encoding="cp949")
    file = {"file": "reviews.csv", "encoding": "cp949", "text": "review", "label": "liked", "try": ["정말 좋다"]}
    runs[f"{FINETUNE}.ko"] = start(f"{FINETUNE}.ko", folder, compiled, file | {"init": str(pretrained), "epochs": 1})
    for name in (WHY, OWN_CODE, STORY):
        runs[f"{name}.ko"] = start(f"{name}.ko", folder, compiled, TINY[name])
    return runs


def outputs(one, kind):
    """Return the outputs of a kind of a notebook's cells: stderr, text/html, image/svg+xml."""
    all_outputs = [output for cell in one.cells for output in cell.outputs]
    if kind in ("stderr", "stdout"):
        return [output.text for output in all_outputs if output.get("name") == kind]
    return [output.data[kind] for output in all_outputs if kind in output.get("data", {})]


PAPERS = [PAPER, f"{PAPER}.ko"]
KOREAN = [name for name in FILES if name.endswith(".ko") and name not in PAPERS]


ENGLISH = sorted(set(FILES) - {*KOREAN, *PAPERS})


@pytest.mark.parametrize("name", ENGLISH)
def test_every_notebook_runs(executed, name):
    check_run(executed(name))


@pytest.mark.parametrize("name", PAPERS)
def test_the_papers_notebook_runs(swept, name):
    check_run(swept[name])


@pytest.mark.parametrize("name", KOREAN)
def test_every_korean_notebook_runs(on_ones_own, name):
    check_run(on_ones_own[name])


def check_run(one):
    assert one.status == 0, one.errors
    assert [cell.execution_count for cell in one.cells] == list(range(1, len(one.cells) + 1))
    assert not [output for cell in one.cells for output in cell.outputs if output.output_type == "error"]
    assert one.seconds < 300, f"it took {one.seconds:.0f} seconds on tiny settings"


def test_senses_in_both_languages(executed):
    vectors, near = outputs(executed(SENSES), "text/html")
    assert vectors.count("<tr>") == 5
    for sentence in ("The customer closed the bank .", "선원은 배를 칠했다 ."):
        assert sentence in vectors
    assert "layer 2" in vectors
    (pictures,) = outputs(executed(SENSES), "image/svg+xml")
    for word in ("bank", "배"):
        assert all(f"{word}, layer {layer}: " in pictures for layer in range(3))
    assert all(sense in pictures for sense in ("bank.money", "bank.riverside", "배.ship", "배.pear"))
    assert near.count("<h3>") == 4
    assert "<b>배" in near
    assert "<b>bank" in near


def test_senses_of_ones_own_model_and_text(on_ones_own):
    vectors, near = outputs(on_ones_own[f"{SENSES}.ko"], "text/html")
    assert "2층" in vectors
    assert re.findall(r"<b>([^<]+)</b>", near).count("boat") == 4  # twice asked, of each the other as its neighbour
    assert re.findall(r"<b>([^<]+)</b>", near).count("배를") == 4
    assert not (on_ones_own[f"{SENSES}.ko"].folder / "runs" / "senses" / "checkpoints").exists()  # nothing was trained


def test_killed_and_run_again_it_goes_on(on_ones_own):
    killed, again = on_ones_own["killed"], on_ones_own[PRETRAIN]
    assert killed.status == 1
    assert "died" in killed.errors
    (messages,) = outputs(again, "stderr")
    (step,) = map(int, re.findall(r"resuming from step (\d+)", messages))
    assert 0 < step < TINY[PRETRAIN]["steps"]
    lines = (again.folder / "runs" / "pretrain" / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["step"] for line in lines] == list(range(1, TINY[PRETRAIN]["steps"] + 1))
    (curves,) = outputs(again, "image/svg+xml")
    assert "held-out text" in curves
    (guesses,) = outputs(again, "text/html")
    assert guesses.count("<tr>") == 6
    assert any("hardware: cpu" in text for text in outputs(again, "stdout"))


def test_a_finished_run_is_not_trained_again(on_ones_own):
    for kind in ("text/html", "image/svg+xml"):
        assert outputs(on_ones_own[f"{PRETRAIN}.ko"], kind) == outputs(on_ones_own[PRETRAIN], kind)


def test_fine_tuning_shows_what_it_should(executed):
    data, confusion, mistakes = outputs(executed(FINETUNE), "text/html")
    assert HANGUL.search(data)
    assert re.search("[a-z]{4}", data)
    assert all(topic in confusion for topic in ("river", "money", "orchard", "sea"))
    assert mistakes.count("<tr>") > 1
    sure, attention, tried = outputs(executed(FINETUNE), "image/svg+xml")
    assert sure.count("says 0.") + sure.count("says 1.") == 5
    assert "layer 2" in attention
    assert "[CLS]" in attention
    assert "그는 배를 봤다 ." in tried


def test_fine_tuning_on_ones_own_file(on_ones_own):
    data, confusion, _ = outputs(on_ones_own[f"{FINETUNE}.ko"], "text/html")
    assert "boring, " in data
    assert ">불호<" in confusion
    assert ">호<" in confusion
    *_, tried = outputs(on_ones_own[f"{FINETUNE}.ko"], "image/svg+xml")
    assert "정말 좋다" in tried
    assert not (on_ones_own[f"{FINETUNE}.ko"].folder / "runs" / "topics" / "pretrained").exists()


def test_from_a_paper_to_the_table(swept):
    published, points, table, seeds, cost, own_table = outputs(swept[PAPER], "text/html")
    assert "somebody, table 1" in published and "<td>81.0</td>" in published
    assert points.count("finetune") == 4
    for html in (table, own_table):
        assert re.search(r"two epochs \(reference\)</td><td>\d+\.\d\d ± \d+\.\d\d</td><td>80<", html)
        assert "Kendall" in html
    assert "네 에포크" in own_table and "네 에포크" not in table
    assert seeds.count(", ") >= 2
    assert cost.count("<tr>") == 5
    (picture,) = outputs(swept[PAPER], "image/svg+xml")
    assert "beside two epochs" in picture
    output = "".join(outputs(swept[PAPER], "stdout"))
    assert "6 of 6 done" in output and "4 runs, " in output
    assert swept[f"{PAPER}.ko"].seconds < swept[PAPER].seconds
    again = "".join(outputs(swept[f"{PAPER}.ko"], "stdout"))
    assert "4 of 4 done" in again and "1 of 4 done" not in again


def test_why_attention_is_built_so(executed):
    tables, pictures = (outputs(executed(WHY), kind) for kind in ("text/html", "image/svg+xml"))
    assert [len(tables), len(pictures)] == [6, 6]
    for phrase, table in zip(("entropy", "heads", "length", "pronoun", "best possible", "warm-up"), tables):
        assert phrase in table
    assert HANGUL.search(tables[3])
    assert all(drawn.count("<svg") > 1 for drawn in pictures)


def test_own_code_trains_saves_and_merges(executed):
    guesses, table = outputs(executed(OWN_CODE), "text/html")
    assert guesses.count("<tr>") == 6
    assert "count_params" in table and "lora" in table
    assert len(outputs(executed(OWN_CODE), "image/svg+xml")) == 1
    size, same = ast.literal_eval(outputs(executed(OWN_CODE), "text/plain")[-1])
    assert 5_000 < size < 50_000 and same


def test_the_story_on_one_sentence(executed):
    fills, senses, panels = outputs(executed(STORY), "image/svg+xml")
    assert fills.count("[MASK]") == 2
    assert all(name in picture for name in ("ELMo", "GPT", "BERT") for picture in (senses, panels))
    assert "배를, other" in senses
    (written,) = outputs(executed(STORY), "text/html")
    assert written.count("<tr>") == 7 and "The customer" in written


def test_the_strictness_of_these_tests_is_felt(monkeypatch):
    for name in ("create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, getattr(socket, name))  # put back in the end
    exec(STRICT.partition("warnings.simplefilter")[0], {})
    with pytest.raises(OSError, match="a notebook reached for the network"):
        socket.create_connection(("example.org", 80))
    notebook = read(SENSES)
    with pytest.raises(AssertionError, match=r"no settings \['stepz'\]"):
        changed(notebook, {"stepz": 3})
    assert code_of(changed(notebook, {"steps": 3}))[0].source.endswith("settings |= {'steps': 3}")
