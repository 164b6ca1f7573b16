"""Pretraining as people run it: killed, stopped, damaged, and resumed."""

import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.runs.config_files import list_recipes, read_config
from bert_elmo_jax.runs.pretraining import build_objective, build_step, pretrain
from bert_elmo_jax.train.checkpoint import load_params
from bert_elmo_jax.train.metrics import read_metrics

from ..simulated_devices import program_environment

ROOT = Path(__file__).parents[2]
STEPS = 48
COMMON = [f"--config.steps={STEPS}", "--config.batch_size=8", "--config.log_every=5", "--config.eval_every=10"]
COMMON += ["--config.checkpoint_every=6", "--config.eval_batches=2", "--config.keep=2"]
# Dropout on, so that a key that went wrong would show.
MODELS = {
    "bert": ["--config.model.num_layers=1", "--config.length=32", "--config.model.dropout=0.1"],
    "elmo": ["--config.model.cell_size=32", "--config.length=10", "--config.model.dropout=0.1"],
}
# Its last two checkpoints are averaged, and a few held-out texts translated.
MODELS["transformer"] = ["--config.model.num_layers=1", "--config.model.hidden_size=32", "--config.model.dropout=0.1"]
MODELS["transformer"] += ["--config.average=2", "--config.translations=4", "--config.beams=2"]
MODELS["gpt"] = ["--config.model.num_layers=1", "--config.model.hidden_size=32", "--config.model.dropout=0.1"]
MODELS["gpt"] += ["--config.length=32"]
MODELS["awd_lstm"] = ["--config.model.embedding_size=16", "--config.length=10", "--config.model.weight_dropout=0.2"]
MODELS["cove"] = ["--config.model.lstm_size=16", "--config.model.dropout=0.1", "--config.translations=4"]
MODELS["elmo"].append("--config.model.max_characters=12")  # one width of words, so one compilation


@pytest.fixture(scope="module", autouse=True)
def compiled(tmp_path_factory):
    """These runs have their own compilation cache: some are killed while they write it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path_factory.mktemp("compiled")))
        yield


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """Prepare the toy world for each model once."""
    from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus, toy_pairs

    folder = tmp_path_factory.mktemp("corpora")
    return {
        "bert": toy_corpus(folder / "bert", documents=300),
        "elmo": toy_corpus(folder / "elmo", documents=300, tokenizer="words"),
        "transformer": toy_pairs(folder / "transformer", topics=2, words=3, documents=1_000),
        "cove": toy_pairs(folder / "cove", topics=2, words=3, documents=1_000, tokenizer="words"),
        "gpt": toy_corpus(folder / "gpt", documents=300),
        "awd_lstm": toy_corpus(folder / "awd_lstm", documents=300, tokenizer="words"),
    }


def command(model, workdir, corpora, *more):
    return [
        sys.executable,
        "-m",
        "experiments.pretrain",
        f"--config=experiments/configs/{model}.py:toy",
        f"--workdir={workdir}",
        f"--config.data={corpora[model]}",
        *COMMON,
        *MODELS[model],
        *more,
    ]


def run(model, workdir, corpora, *more, devices=1):
    return subprocess.run(
        command(model, workdir, corpora, *more), cwd=ROOT, env=program_environment(devices), capture_output=True,
        text=True, timeout=300, check=False,
    )  # fmt: skip


def leave_alone(model, workdir, corpora, devices):
    start = time.monotonic()
    done = run(model, workdir, corpora, devices=devices)
    assert done.returncode == 0, done.stderr
    assert re.search(rf"^{workdir}: {STEPS} steps of 8 rows, on {devices} × cpu$", done.stderr, re.M)
    return model, workdir, time.monotonic() - start


@pytest.fixture(scope="module", params=["bert", "elmo", "transformer"])
def undisturbed(request, tmp_path_factory, corpora):
    """Return an uninterrupted run: its model, its folder, and its duration."""
    return leave_alone(request.param, tmp_path_factory.mktemp(request.param), corpora, devices=1)


@pytest.fixture(scope="module", params=list(MODELS))
def undisturbed_on_eight(request, tmp_path_factory, corpora):
    """Return the same run on eight devices."""
    return leave_alone(request.param, tmp_path_factory.mktemp(request.param), corpora, devices=8)


def same(workdir, other):
    assert (workdir / "metrics.jsonl").read_bytes() == (other / "metrics.jsonl").read_bytes()
    (step, ours), (also, theirs) = load_params(workdir), load_params(other)
    assert step == also == STEPS
    compare(ours, theirs)


def compare(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name in ours:
        if isinstance(ours[name], dict):
            compare(ours[name], theirs[name])
        else:
            np.testing.assert_array_equal(ours[name], theirs[name], name)


# What all models share is tried with one of them in every run of the tests, and with the others in the long one.
LONG = [pytest.param(model, marks=pytest.mark.long) for model in list(MODELS)[1:]]
ONE = pytest.mark.parametrize("undisturbed", ["bert", *LONG], indirect=True, scope="module")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_killed_anywhere_it_ends_as_if_left_alone(undisturbed_on_eight, corpora, tmp_path, seed):
    model, alone, duration = undisturbed_on_eight
    coins = random.Random(seed)
    for _ in range(5):
        process = subprocess.Popen(
            command(model, tmp_path, corpora), cwd=ROOT, env=program_environment(8), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(coins.uniform(0.2, 1.0) * duration)
        finished = process.poll() is not None
        process.send_signal(signal.SIGKILL)
        process.wait()
        if finished:
            break
    last = run(model, tmp_path, corpora, f"--config.workers={seed % 2}", devices=8)
    assert last.returncode == 0, last.stderr
    same(tmp_path, alone)


@ONE
def test_a_run_is_complete(undisturbed):
    _model, workdir, _ = undisturbed
    lines = read_metrics(workdir)
    assert [line["step"] for line in lines] == list(range(1, STEPS + 1))
    assert lines[-1]["loss"] < lines[0]["loss"]
    held_out = [line["step"] for line in lines if any(name.startswith("held_out/") for name in line)]
    assert held_out == [10, 20, 30, 40, STEPS]
    assert (workdir / "report.html").read_text(encoding="utf-8").count("<svg") >= 5
    assert any((workdir / "events").iterdir())
    encoder = load(workdir)
    assert encoder.encode([["ship", "배"]]).last.shape[0] == 1
    assert not list((workdir / "checkpoints").glob("*.tmp*"))
    steps = [folder for folder in (workdir / "checkpoints").iterdir() if folder.name != "average"]
    assert len(steps) in (2, 3)  # the newest two, and the best
    assert (workdir / "checkpoints" / "average").is_dir() == (_model == "transformer")


@ONE
@pytest.mark.long
def test_going_on_from_given_weights(undisturbed, corpora, tmp_path):
    """They are scored before the first step, and training starts from them, not from random weights."""
    model, alone, _ = undisturbed
    more = ["--parallel=pmap", "--config.steps=12", "--config.optimizer.learning_rate=1e-6"]
    weights = alone / "checkpoints" / str(STEPS) if model == "transformer" else alone  # which has a mean, too
    done = run(model, tmp_path, corpora, f"--init={weights}", *more, devices=2)
    assert done.returncode == 0, done.stderr
    last = {name: value for name, value in read_metrics(alone)[-1].items() if name.startswith("held_out/")}
    said = done.stderr.partition("before the first step: ")[2].splitlines()[0]
    assert {name: float(value) for name, value in (part.split(" ") for part in said.split(", "))} == pytest.approx(
        last, rel=2e-3
    )
    figure = "held_out/mlm_perplexity" if model == "bert" else "held_out/perplexity"
    assert read_metrics(tmp_path)[-1][figure] == pytest.approx(last[figure], rel=0.01)


@ONE
@pytest.mark.long  # tests/families/test_bag.py kills a run in every run of the tests
def test_killed_and_asked_to_stop_it_ends_as_if_left_alone(undisturbed, corpora, tmp_path, monkeypatch):
    model, alone, _ = undisturbed
    if model == "elmo":  # left to itself, a run keeps what it has compiled
        monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))

    def started(until):
        process = subprocess.Popen(
            command(model, tmp_path, corpora), cwd=ROOT, env=program_environment(), stderr=subprocess.PIPE, text=True
        )
        while not until():
            time.sleep(0.02)
            assert process.poll() is None, process.stderr.read()
        return process

    process = started(until=lambda: any(tmp_path.glob("checkpoints/*/files.json")))
    process.kill()
    process.communicate()
    before = len(read_metrics(tmp_path))  # what came behind the checkpoint is written again, and then more
    process = started(until=lambda: len(read_metrics(tmp_path)) > before)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=120)[1]
    assert re.search(r"resuming from step \d+", said), said
    if process.returncode != 0:  # it may have been quicker
        assert process.returncode == 75, said
        assert re.search(r"asked to stop: saved at step \d+; run the same command to resume", said)
    done = run(model, tmp_path, corpora)
    assert done.returncode == 0, done.stderr
    same(tmp_path, alone)
    assert any((tmp_path / "caches").rglob("*-cache")) == (model == "elmo")


@ONE
def test_what_is_refused(undisturbed, corpora, tmp_path):
    model, alone, _ = undisturbed
    done = run(model, alone, corpora, "--config.seed=3", "--config.optimizer.learning_rate=1.0")
    assert done.returncode == 2
    assert "optimizer.learning_rate: " in done.stderr
    assert "seed: 0 then, 3 now" in done.stderr
    assert "Traceback" not in done.stderr
    for more, message in [
        (
            "--config.model.layers=3",
            "--config.model.layers=3: the config has no field 'model.layers'; did you mean --config.model.num_layers?",
        ),
        ("surplus", "unexpected argument 'surplus'"),
    ]:
        done = run(model, tmp_path / "new", corpora, more)
        assert done.returncode == 2, (more, done.stderr)
        assert message in done.stderr, (more, done.stderr)
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("model", ["bert", "elmo", "transformer"])
def test_what_a_config_cannot_mean(model, corpora, tmp_path):
    """The programs end with one message on such errors, as the previous test shows for one of them."""
    other = {"bert": corpora["elmo"], "elmo": corpora["bert"], "transformer": corpora["bert"]}[model]
    cases = [
        ({"data": str(other)}, None, "prepare pairs" if model == "transformer" else "prepare it"),
        ({"data": ""}, None, "--config.data=… is needed"),
        ({"data": str(tmp_path)}, None, str(tmp_path)),
        ({"optimizer.name": "adamx"}, None, "config.optimizer.name='adamx' is not known; it is one of bert_adam"),
        ({"mesh.fsdp": 3}, None, "a mesh of"),
        ({}, "/nowhere/at/all", "nowhere"),
    ]
    for fields, init, message in cases:
        config, _ = read_config(f"experiments/configs/{model}.py:toy")
        config.data = str(corpora[model])
        config.update_from_flattened_dict(fields)
        with pytest.raises((ValueError, OSError), match=re.escape(message)):
            pretrain(config, tmp_path / "new", init=init)
        shutil.rmtree(tmp_path / "new", ignore_errors=True)


@pytest.mark.long
@ONE
def test_a_shard_deleted_while_running(undisturbed, corpora, tmp_path):
    model, alone, _ = undisturbed
    copy = {model: tmp_path / "data"}
    shutil.copytree(corpora[model], copy[model])
    process = subprocess.Popen(
        command(model, tmp_path / "run", copy), cwd=ROOT, env=program_environment(), stderr=subprocess.PIPE, text=True
    )
    while not any((tmp_path / "run").glob("checkpoints/6/files.json")):
        time.sleep(0.05)
        assert process.poll() is None, process.stderr.read()
    shutil.rmtree(copy[model])
    said = process.communicate(timeout=120)[1]
    assert process.returncode in (0, 2), said  # the data read before may be enough
    if process.returncode == 2:
        assert str(copy[model]) in said
        assert "Traceback" not in said
    shutil.copytree(corpora[model], copy[model])
    done = run(model, tmp_path / "run", copy)
    assert done.returncode == 0, done.stderr
    same(tmp_path / "run", alone)


def test_only_an_optimiser_that_leaves_rows_alone_is_given_the_touched_ones():
    """Adam also moves rows that it has seen before: the update must be the same as on the whole table."""
    given = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "bert_elmo_jax.train.make_step", lambda *_, **options: given.append(options.get("touched")) or print
        )
        for name in ("adagrad", "adamw", "bert_adam", "lamb"):
            config, _ = read_config("experiments/configs/elmo.py:small")
            config.optimizer.name = name
            _, objective = build_objective(config, 100)
            build_step(config, objective)
    assert [touched is not None for touched in given] == [True, False, False, False]


# A family fed with pieces reads the corpus of bert.
FILES = "bert", "bert_modern", "distilbert", "electra", "elmo", "gpt", "modernbert", "roberta", "transformer"
RECIPES = [
    (family, recipe)
    # A family fed with pieces reads the corpus of bert.
    for family in (
        "awd_lstm",
        "bert",
        "bert_modern",
        "cove",
        "distilbert",
        "electra",
        "elmo",
        "gpt",
        "modernbert",
        "roberta",
        "transformer",
    )
    for recipe in list_recipes(f"experiments/configs/{family}.py")[0]
]
# The parts that learn in every step; of other families mlm.
HEADS = {
    "awd_lstm": "encoder",
    "cove": "decoder",
    "elmo": "lm",
    "electra": "replaced",
    "gpt": "encoder",
    "transformer": "decoder",
}
DISTINCT = ("toy", "large_lamb")  # the others repeat what these do at other sizes, or are in tests/runs


def shrunk(family, recipe, corpora):
    """Return the config with small sizes."""
    config, _ = read_config(f"experiments/configs/{family}.py:{recipe}")
    config.update({"data": str(corpora.get(family, corpora["bert"])), "batch_size": 4, "steps": 10})
    config.accumulate = 1
    if family == "cove":
        config.update({"length": 32, "target_length": 32})
        config.model.update({"vector_size": 8, "lstm_size": 8, "target_size": 8})
    elif family == "awd_lstm":
        config.update({"data": str(corpora["elmo"]), "length": 8, "spread": 1})
        config.model.update({"embedding_size": 8, "cell_size": 12, "num_layers": 2})
    elif family != "elmo":
        widths = {"target_length": 32} if family == "transformer" else {"long_length": 64, "long_batch_size": 0}
        config.update({"length": 32, **widths})
        config.model.update({"num_layers": 1, "hidden_size": 16, "num_heads": 2, "feed_forward_size": 32})
    else:
        config.model.update({"cell_size": 16, "projection_size": 8, "filters": ((1, 4), (2, 4)), "num_layers": 1})
        config.model.max_characters = 12
        config.update({"length": 5, "negatives": config.negatives and 20})
    return config


@pytest.mark.parametrize(("family", "recipe"), RECIPES)
def test_every_recipe_says_what_it_is(family, recipe):
    _, said = read_config(f"experiments/configs/{family}.py:{recipe}")
    for part in ("xpected score:", "Cost:", "Command:", f"--config={family}:{recipe} "):
        assert part in said


@pytest.mark.parametrize(
    ("family", "recipe"),
    [pytest.param(*pair, marks=[pytest.mark.long] * (pair[1] not in DISTINCT)) for pair in RECIPES],
)
def test_every_recipe_takes_a_step(family, recipe, corpora):
    import jax

    from bert_elmo_jax import train
    from bert_elmo_jax.data.pipeline.batches import train_batches

    config = shrunk(family, recipe, corpora)
    _, objective = build_objective(config, None)
    params = objective.init(jax.random.key(config.seed))
    _, method, step = build_step(config, objective)
    state, step = train.new_state(params, method, jax.random.key(0), objective.carry(4)), jax.jit(step)
    batches = train_batches(config.data, objective.phases[0].examples, 4)
    for _ in range(2):  # the first step of BERT's schedule has the rate 0
        state, metrics = step(state, next(batches))
    assert np.isfinite(float(metrics["loss"]))
    assert int(state.failed) == 0
    moved = jax.tree.map(lambda a, b: bool((np.asarray(a) != np.asarray(b)).any()), state.params, params)
    assert all(jax.tree.leaves(moved[HEADS.get(family, "mlm")]))
    batches.close()
