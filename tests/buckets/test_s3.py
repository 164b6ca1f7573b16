"""Against a real S3 server: runs whose data, checkpoints and reports are in a bucket, killed again and again."""

import contextlib
import json
import os
import random
import time
import urllib.request
from pathlib import Path

import pytest

from bert_elmo_jax import load
from bert_elmo_jax.buckets import objects
from bert_elmo_jax.buckets.cache import fetch
from bert_elmo_jax.buckets.objects import list_objects, open_place
from bert_elmo_jax.train.checkpoint import load_params
from bert_elmo_jax.weights.digest import digest

from ..campaigns.server import Server
from ..simulated_devices import program_environment
from .s3_server import Relay, client_environment, run_s3

KILLS = 10
GOLDENS = Path(__file__).parents[1] / "goldens"
SWEEP = '''"""Two fine-tunings of a file in the folder of data."""
from bert_elmo_jax.sweeps.points import File


def sweep(add):
    """Add two learning rates."""
    for rate in (1e-3, 2e-3):
        add.transfer(
            f"rate {rate}", "score", "finetune", of="accuracy", seeds=(0,), init="INIT", task="classification",
            train=File("train.csv"), dev=File("dev.csv"), epochs=8.0, batch_size=8, eval_every=20,
            checkpoint_every=4, **{"optimizer.learning_rate": rate},
        )
'''


def post(address, data=b""):
    request = urllib.request.Request(address, data=data, headers={"Content-Type": "text/plain"})
    urllib.request.urlopen(request).close()


@pytest.fixture(scope="module")
def endpoint():
    """Return the address of the server, with a bucket `reviews`."""
    with run_s3(pytest) as address:
        yield address


@pytest.fixture
def s3(endpoint, machine, monkeypatch):
    """Return the file system of an empty bucket `reviews`."""
    import s3fs

    for name, value in client_environment(endpoint).items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    post(f"{endpoint}/moto-api/reset")
    system = open_place("s3://reviews").system
    system.mkdir("reviews")
    yield system
    s3fs.S3FileSystem.clear_instance_cache()


def write_tables(put):
    words = {"good": "river stone bird tree", "bad": "house good light water"}
    for name, rows in (("train.csv", 64), ("dev.csv", 32)):
        draw = random.Random(name)
        lines = [f"{' '.join(draw.choices(words[label].split(), k=6))},{label}" for label in [*words] * (rows // 2)]
        put(name, "\n".join(["text,label", *lines, ""]).encode())


@pytest.mark.long
def test_a_missing_bucket_a_missing_object_and_a_refusal_are_explained(s3, endpoint):
    with pytest.raises(FileNotFoundError, match="there is no bucket 'missing': create it, or check the name"):
        fetch("s3://missing/train.csv")
    with pytest.raises(FileNotFoundError, match="there is no such file or folder"):
        fetch("s3://reviews/train.csv")
    with pytest.raises(ValueError, match=r"s3://My_Bucket!/train.csv: Invalid bucket name .* check the address"):
        fetch("s3://My_Bucket!/train.csv")
    post(f"{endpoint}/moto-api/reset-auth", b"0")  # calls from now on that need a known key
    try:
        with pytest.raises(PermissionError, match=r"access is refused .* AWS_PROFILE, or AWS_ACCESS_KEY_ID"):
            fetch("s3://reviews/train.csv")
    finally:
        post(f"{endpoint}/moto-api/reset-auth", b"inf")


@pytest.mark.long
def test_a_connection_cut_inside_a_shard_costs_a_range(s3, endpoint, monkeypatch):
    import s3fs

    data = random.Random(0).randbytes(3_000_000)
    s3.pipe_file("reviews/store/shard/tokens.npy", data)
    monkeypatch.setattr(objects, "RANGE", 1_000_000)
    relay = Relay(endpoint, cuts=2, limit=400_000)
    monkeypatch.setenv("AWS_ENDPOINT_URL", relay.endpoint)
    s3fs.S3FileSystem.clear_instance_cache()
    assert (fetch("s3://reviews/store") / "shard/tokens.npy").read_bytes() == data
    assert relay.cuts == 0
    relay.close()


def hash_run(run):
    """Return what must be equal bit for bit."""
    step, params = load_params(run)
    result = json.loads((run / "result.json").read_text()) if (run / "result.json").exists() else {}
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return {"step": step, "params": digest(params), "metrics": lines, "dev": result.get("dev"),
            "model.json": (run / "model.json").read_bytes()}  # fmt: skip


class Programs:
    """Starts programs on machines, each with a cache of its own, and kills them."""

    def __init__(self, folder, environment):
        self.folder, self._starts = folder, 0
        self._server = Server({**os.environ, **program_environment(), **environment})

    def start(self, words, machine):
        self._starts += 1
        environment = {"XDG_CACHE_HOME": str(self.folder / machine)}
        return self._server.start(words, self.folder / "logs" / str(self._starts), environment)

    def finish(self, words, machine):
        running = self.start(words, machine)
        status = running.wait(300)
        assert status == 0, running.output[-3000:]
        return running.output

    def close(self):
        self._server.close()


@pytest.fixture(scope="module")
def programs(endpoint, tmp_path_factory):
    """Return the programs of this file; their processes begin with everything imported."""
    programs = Programs(tmp_path_factory.mktemp("machines"), client_environment(endpoint))
    yield programs
    programs.close()


def has_new_checkpoint(cache, started):
    """Return True if a checkpoint below a folder was written, or fetched, since a time."""
    with contextlib.suppress(FileNotFoundError):  # removed meanwhile
        return any(file.stat().st_mtime > started for file in cache.glob("**/checkpoints/*/files.json"))
    return False


def kill_again_and_again(programs, words, address, system, kills=KILLS):
    """Kill a command, soon after a checkpoint, now and then on another machine; then let it end."""
    draw, machine = random.Random(0), 0
    for kill in range(kills):
        started = time.time()
        running = programs.start(words, f"machine{machine}")
        while running.wait(0.05) is None and not has_new_checkpoint(programs.folder / f"machine{machine}", started):
            assert time.time() - started < 240, running.output[-2000:]
        running.wait(draw.uniform(0.0, 0.2))
        assert running.kill(), f"it ended before kill {kill}: {running.output[-2000:]}"
        if kill % 3 == 2:  # this machine is lost; another test waits for its lease
            machine += 1
            system.rm(f"{address.partition('://')[2]}/lease.json")
    return programs.finish(words, f"machine{machine}")


FINETUNE = [
    "finetune", "--task=classification", f"--init={GOLDENS / 'bert_tiny'}", "--config.epochs=20",
    "--config.batch_size=8", "--config.eval_every=40", "--config.checkpoint_every=4",
]  # fmt: skip


@pytest.mark.long
def test_a_fine_tuning_killed_ten_times_ends_as_a_local_one(s3, programs, tmp_path):
    write_tables(lambda name, data: (s3.pipe_file(f"reviews/data/{name}", data), (tmp_path / name).write_bytes(data)))
    local = [*FINETUNE, f"--train={tmp_path / 'train.csv'}", f"--dev={tmp_path / 'dev.csv'}"]
    programs.finish([*local, f"--workdir={tmp_path / 'run'}"], "local")
    words = [*FINETUNE, "--train=s3://reviews/data/train.csv", "--dev=s3://reviews/data/dev.csv"]
    kill_again_and_again(programs, [*words, "--workdir=s3://reviews/run"], "s3://reviews/run", s3)
    copy = fetch("s3://reviews/run")
    assert hash_run(copy) == hash_run(tmp_path / "run")
    assert (copy / "report.html").exists()
    assert load("s3://reviews/run").predict(["river stone"])[0].label in ("good", "bad")
    predict = ["predict", "--model=s3://reviews/run", "--input=s3://reviews/data/dev.csv"]
    programs.finish([*predict, "--output=s3://reviews/predictions.csv"], "reader")
    programs.finish(["predict", f"--model={tmp_path / 'run'}", f"--input={tmp_path / 'dev.csv'}",
                     f"--output={tmp_path / 'predictions.csv'}"], "reader")  # fmt: skip
    assert s3.cat_file("reviews/predictions.csv") == (tmp_path / "predictions.csv").read_bytes()


@pytest.mark.long
def test_a_pretraining_killed_ten_times_ends_as_a_local_one(s3, programs, tmp_path):
    draw = random.Random(0)
    words = ["river", "stone", "bird", "tree", "house", "light", "water"]
    text = "\n".join(" ".join(draw.choices(words, k=8)) + ("\n" if n % 5 == 4 else "") for n in range(2000))
    (tmp_path / "text.txt").write_text(text)
    s3.pipe_file("reviews/text.txt", text.encode())
    prepare = ["prepare_data", "--vocab_size=64", "--workers=1", "--shards=2"]
    programs.finish([*prepare, f"--input={tmp_path / 'text.txt'}", f"--output={tmp_path / 'store'}"], "local")
    programs.finish([*prepare, "--input=s3://reviews/*.txt", "--output=s3://reviews/store"], "machine0")
    assert (fetch("s3://reviews/store") / "manifest.json").read_bytes() == (
        tmp_path / "store/manifest.json"
    ).read_bytes()
    pretrain = ["pretrain", "--config=bert:toy", "--config.steps=200", "--config.batch_size=4", "--config.length=16",
                "--config.long_length=16", "--config.long_batch_size=4", "--config.checkpoint_every=5",
                "--config.eval_every=50", "--config.model.num_layers=1", "--config.model.hidden_size=16",
                "--config.model.feed_forward_size=16"]  # fmt: skip
    programs.finish([*pretrain, f"--config.data={tmp_path / 'store'}", f"--workdir={tmp_path / 'run'}"], "local")
    words = [*pretrain, "--config.data=s3://reviews/store", "--workdir=s3://reviews/run"]
    kill_again_and_again(programs, words, "s3://reviews/run", s3)
    assert hash_run(fetch("s3://reviews/run")) == hash_run(tmp_path / "run")


@pytest.mark.long
def test_a_sweep_killed_ten_times_ends_as_a_local_one(s3, programs, tmp_path):
    write_tables(lambda name, data: (s3.pipe_file(f"reviews/data/{name}", data), (tmp_path / name).write_bytes(data)))
    file = tmp_path / "two_rates.py"
    file.write_text(SWEEP.replace("INIT", str(GOLDENS / "bert_tiny")))
    sweep = ["sweep", f"--sweep={file}", "--jobs=1"]
    programs.finish([*sweep, f"--data={tmp_path}", f"--workdir={tmp_path / 'sweep'}"], "local")
    words = [*sweep, "--data=s3://reviews/data", "--workdir=s3://reviews/sweep"]
    kill_again_and_again(programs, words, "s3://reviews/sweep", s3)
    copy = fetch("s3://reviews/sweep")
    points = sorted(path.parent for path in (tmp_path / "sweep").glob("points/*/result.json"))
    assert len(points) == 2
    for point in points:
        assert hash_run(copy / "points" / point.name) == hash_run(point)
    names = [name for name in list_objects(open_place("s3://reviews/sweep")) if name.endswith("table.md")]
    assert (copy / names[0]).read_text() == (tmp_path / "sweep" / names[0]).read_text()
