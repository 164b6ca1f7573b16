"""Against an emulator of Google Cloud Storage: `pip install gcsfs gcp-storage-emulator`, which no extra installs."""

import random

import pytest

from bert_elmo_jax import load
from bert_elmo_jax.buckets import objects
from bert_elmo_jax.buckets.cache import fetch
from bert_elmo_jax.buckets.objects import list_objects, open_place
from experiments.benchmarks.server_load import free_port

from .test_s3 import FINETUNE, Programs, hash_run, kill_again_and_again, write_tables

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def environment():
    """Return the environment variables that lead to the emulator, which has a bucket `reviews`."""
    port = free_port()
    # The second: for its buckets with real folders gcsfs has another API, which would not ask the emulator.
    variables = {"STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{port}", "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        pytest.importorskip("gcsfs", reason="needs gcsfs: the extra `buckets`")
        emulator = pytest.importorskip("gcp_storage_emulator.server", reason="needs gcp-storage-emulator")
        server = emulator.create_server("127.0.0.1", port, in_memory=True, default_bucket="reviews")
        server.start()
        yield variables
        server.stop()


@pytest.fixture
def gcs(environment, machine):
    """Return the file system of the bucket `reviews`."""
    return open_place("gs://reviews").system


def test_a_folder_is_fetched_in_ranges_and_what_is_missing_is_named(gcs, monkeypatch):
    monkeypatch.setattr(objects, "RANGE", 300_000)
    data = random.Random(0).randbytes(900_000)
    gcs.pipe_file("reviews/store/shard/tokens.npy", data)
    assert (fetch("gs://reviews/store") / "shard/tokens.npy").read_bytes() == data
    with pytest.raises(FileNotFoundError, match="there is no bucket 'missing': create it, or check the name"):
        fetch("gs://missing/train.csv")
    with pytest.raises(FileNotFoundError, match="there is no such file or folder"):
        fetch("gs://reviews/train.csv")


def test_a_killed_fine_tuning_ends_as_a_local_one(gcs, environment, request, tmp_path):
    write_tables(lambda name, data: (gcs.pipe_file(f"reviews/data/{name}", data), (tmp_path / name).write_bytes(data)))
    programs = Programs(tmp_path / "machines", environment)
    request.addfinalizer(programs.close)
    local = [*FINETUNE, f"--train={tmp_path / 'train.csv'}", f"--dev={tmp_path / 'dev.csv'}"]
    programs.finish([*local, f"--workdir={tmp_path / 'run'}"], "local")
    words = [*FINETUNE, "--train=gs://reviews/data/train.csv", "--dev=gs://reviews/data/dev.csv"]
    kill_again_and_again(programs, [*words, "--workdir=gs://reviews/run"], "gs://reviews/run", gcs, kills=4)
    assert hash_run(fetch("gs://reviews/run")) == hash_run(tmp_path / "run")
    assert load("gs://reviews/run").predict(["river stone"])[0].label in ("good", "bad")
    assert "report.html" in list_objects(open_place("gs://reviews/run"))
