"""Copies of addresses: versions, ranges, cut connections, refusals, and the bound of the cache."""

import builtins
import os
import shutil
from pathlib import Path

import pytest

from bert_elmo_jax.addresses import is_address, local_copies, local_copy
from bert_elmo_jax.buckets import cache, objects
from bert_elmo_jax.buckets.cache import BOUND, fetch, make_room
from bert_elmo_jax.buckets.lease import write_lease
from bert_elmo_jax.buckets.objects import open_place
from bert_elmo_jax.buckets.published_file import publish_file
from bert_elmo_jax.train.checkpoint import damage, write_file_list

WORD = b"word\n"


def put(address, data=WORD):
    place = open_place(address)
    place.system.pipe_file(place.path, data)
    return address


class Faulty:
    """A file system whose reads fail or are cut."""

    def __init__(self, system, reads):
        self._system, self._reads, self.ranges = system, list(reads), []

    def __getattr__(self, name):
        return getattr(self._system, name)

    def cat_file(self, path, start=None, end=None):
        self.ranges.append((start, end))
        fault = self._reads.pop(0) if self._reads else None
        if isinstance(fault, Exception):
            raise fault
        return self._system.cat_file(path, start=start, end=end)[:fault]


@pytest.fixture
def faulty(monkeypatch):
    """Return a function that makes the next reads fail, and returns the file system."""

    def break_reads(*reads):
        system = Faulty(open_place("memory://any").system, reads)
        usual = cache.open_place
        monkeypatch.setattr(cache, "open_place", lambda address: usual(address)._replace(system=system))
        return system

    return break_reads


def test_paths_stay_paths(tmp_path):
    assert not is_address(tmp_path)
    assert local_copy("s3") == "s3"


def test_a_copy_has_the_name_and_is_fetched_once(bucket, faulty):
    put(f"{bucket}/data/train.csv")
    system = faulty()
    copy = fetch(f"{bucket}/data/train.csv")
    assert (copy.name, copy.read_bytes()) == ("train.csv", WORD)
    assert fetch(f"{bucket}/data/train.csv") == copy
    assert len(system.ranges) == 1


def test_a_new_version_is_another_copy(bucket):
    first = fetch(put(f"{bucket}/train.csv"))
    second = fetch(put(f"{bucket}/train.csv", b"other"))
    assert (first.read_bytes(), second.read_bytes()) == (WORD, b"other")


def test_a_folder_and_a_glob(bucket):
    for name in ("a.csv", "b.csv", "deep/c.txt"):
        put(f"{bucket}/data/{name}", name.encode())
    folder = fetch(f"{bucket}/data/")
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*")) == [
        "a.csv",
        "b.csv",
        "deep/c.txt",
    ]
    assert [Path(path).name for path in local_copies(f"{bucket}/data/*.csv")] == ["a.csv", "b.csv"]
    with pytest.raises(FileNotFoundError, match="no file matches"):
        local_copies(f"{bucket}/data/*.tsv")


def test_a_file_name_with_the_signs_of_a_glob(bucket):
    put(f"{bucket}/data/part [1].csv")
    assert [Path(copy).name for copy in local_copies(f"{bucket}/data/part [1].csv")] == ["part [1].csv"]


@pytest.mark.parametrize("name", ["../../outside.txt", "a/../../../outside.txt", "/outside.txt"])
def test_objects_that_would_be_written_outside_of_their_folder_are_refused(name, bucket, monkeypatch):
    put(f"{bucket}/run/model.json")
    system = open_place(f"{bucket}/run").system
    usual = system.find

    def find_also(path, **options):  # as S3 does; the file system in memory resolves such names
        return {**usual(path, **options), f"{path}/{name}": {"size": 5, "created": "now"}}

    monkeypatch.setattr(system, "find", find_also)
    with pytest.raises(ValueError, match=r"would be written outside of its folder here, which is refused"):
        fetch(f"{bucket}/run")


def test_a_large_file_comes_in_ranges_and_a_cut_costs_one(bucket, faulty, monkeypatch):
    monkeypatch.setattr(objects, "RANGE", 10)
    data = bytes(range(35))
    put(f"{bucket}/shard.npy", data)
    system = faulty(None, 3, ConnectionError("reset"), None)
    assert fetch(f"{bucket}/shard.npy").read_bytes() == data
    assert system.ranges == [(0, 10), (10, 20), (10, 20), (10, 20), (20, 30), (30, 35)]


def test_a_stopped_download_goes_on(bucket, faulty, monkeypatch):
    monkeypatch.setattr(objects, "RANGE", 10)
    data = bytes(range(35))
    put(f"{bucket}/shard.npy", data)
    system = faulty(None, None, KeyboardInterrupt())
    system._reads[2] = ValueError("stopped")
    with pytest.raises(ValueError, match="stopped"):
        fetch(f"{bucket}/shard.npy")
    system.ranges.clear()
    assert fetch(f"{bucket}/shard.npy").read_bytes() == data
    assert system.ranges == [(20, 30), (30, 35)]


def test_a_connection_that_stays_cut_ends_with_an_error(bucket, faulty):
    put(f"{bucket}/train.csv")
    system = faulty(*[ConnectionError("reset")] * objects.TRIES)
    with pytest.raises(OSError, match=r"train.csv: reset; 5 tries have failed: check the network"):
        fetch(f"{bucket}/train.csv")
    assert len(system.ranges) == objects.TRIES
    assert fetch(f"{bucket}/train.csv").read_bytes() == WORD


def test_refusals_are_not_tried_again(bucket, faulty):
    put(f"{bucket}/train.csv")
    system = faulty(PermissionError("Forbidden"))
    with pytest.raises(PermissionError, match=r"access is refused .* check the name of the bucket and the credentials"):
        fetch(f"{bucket}/train.csv")
    assert len(system.ranges) == 1


def test_missing_objects_are_named(bucket):
    put(f"{bucket}/data/train.csv")
    with pytest.raises(FileNotFoundError, match=r"no such file or folder; did you mean train.csv\?"):
        fetch(f"{bucket}/data/trian.csv")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("ftp://host/train.csv", "ftp:// is not known; known are s3://, gs://, hf://, memory://"),
        ("https://host/train.csv", "https:// is not known"),
        ("s3://", "names no bucket; expected s3://BUCKET/NAME"),
        ("file:///data/train.csv", "is a file of this machine: give its path, /data/train.csv"),
    ],
)
def test_wrong_addresses_are_explained(address, message):
    with pytest.raises(ValueError, match=message):
        local_copy(address)


def test_a_missing_package_is_named(monkeypatch):
    usual = builtins.__import__

    def refuse(name, *arguments):
        if name.startswith("fsspec"):
            raise ImportError("Install s3fs")
        return usual(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"needs the package s3fs .*: pip install 'bert_elmo_jax\[buckets\]'"):
        open_place("s3://reviews/run")


def test_the_least_recently_used_copy_leaves(bucket, machine, monkeypatch):
    monkeypatch.setenv(BOUND, "0.000003")  # 3,000 bytes
    monkeypatch.setattr(cache, "use_entry", lambda entry: entry.mkdir(parents=True, exist_ok=True))  # none is in use
    copies = [fetch(put(f"{bucket}/{n}.bin", bytes([n]) * 1000)) for n in range(2)]
    os.utime(copies[0].parents[1] / cache.ENTRY, (2e9, 2e9))  # used later than the other
    fetch(put(f"{bucket}/2.bin", bytes(1000)))
    assert [copy.exists() for copy in copies] == [True, False]
    with pytest.raises(OSError, match=f"set {BOUND} to more"):
        fetch(put(f"{bucket}/large.bin", bytes(4000)))


def test_entries_in_use_and_unpublished_runs_stay(bucket, machine, monkeypatch):
    copy = fetch(put(f"{bucket}/used.bin", bytes(1000)))
    unpublished = cache.cache_folder() / "run-x"
    unpublished.mkdir()
    (unpublished / cache.ENTRY).write_text('{"published": false}')
    monkeypatch.setenv(BOUND, "0.000001")
    make_room(500, "x")
    assert copy.exists() and unpublished.exists()


def test_of_a_run_the_complete_checkpoints_come_without_the_training_state(bucket, tmp_path):
    for step in (1, 2):
        for part in ("params", "rest"):
            folder = tmp_path / "checkpoints" / str(step) / part
            folder.mkdir(parents=True)
            (folder / "d").write_text(f"{part} {step}")
        write_file_list(folder.parent)
    (tmp_path / "model.json").write_text("{}")
    (tmp_path / "checkpoints/2/files.json").unlink()
    for path in tmp_path.rglob("*"):
        if path.is_file():
            put(f"{bucket}/run/{path.relative_to(tmp_path).as_posix()}", path.read_bytes())
    for address in (f"{bucket}/run", f"{bucket}/run/checkpoints/1"):
        run = fetch(address) if address.endswith("run") else fetch(address).parents[1]
        names = sorted(path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file())
        assert names == ["checkpoints/1/files.json", "checkpoints/1/params/d", "model.json"]
        assert damage(run / "checkpoints/1") == []


def test_a_run_that_is_being_written_is_fetched_once_without_its_lease_and_growing_files(bucket, monkeypatch):
    place, usual, downloads = open_place(f"{bucket}/run"), cache.download, []
    for name in ("checkpoints/1/files.json", "checkpoints/1/params/d.json", "model.json"):
        put(f"{place.address}/{name}", b"{}")

    def download(*arguments):
        usual(*arguments)
        downloads.append(arguments)
        write_lease(place, "writer")
        put(f"{place.address}/metrics.jsonl", WORD * len(downloads))
        if len(downloads) == 1:
            put(f"{place.address}/checkpoints/2/files.json", b"{}")  # another checkpoint is complete

    def list_names():
        copy = fetch(place.address)
        return sorted(path.relative_to(copy).as_posix() for path in copy.rglob("*.*"))

    monkeypatch.setattr(cache, "download", download)
    write_lease(place, "writer")
    names = ["checkpoints/1/files.json", "checkpoints/1/params/d.json", "model.json"]
    assert list_names() == names and len(downloads) == 1
    names.insert(2, "checkpoints/2/files.json")
    assert list_names() == list_names() == names and len(downloads) == 2
    monkeypatch.setattr(cache, "download", usual)
    write_lease(place, "writer", released=True)
    assert list_names() == sorted([*names, "metrics.jsonl"])


def test_a_copy_of_any_folder_has_no_lease(bucket):
    put(f"{bucket}/model/config.json")
    write_lease(open_place(f"{bucket}/model"), "writer", released=True)
    assert [file.name for file in fetch(f"{bucket}/model").iterdir()] == ["config.json"]


def test_checkpoints_of_other_trainers_are_fetched_without_their_neighbours(bucket):
    for step in (500, 1000):
        put(f"{bucket}/proj/checkpoints/{step}/model.safetensors")
    copy = fetch(f"{bucket}/proj/checkpoints/1000")
    assert [path.name for path in copy.iterdir()] == ["model.safetensors"]
    assert not (copy.parent / "500").exists()


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="counts the open files of this process")
def test_many_copies_keep_one_file_open(bucket):
    for number in range(20):
        put(f"{bucket}/data/{number}.csv")
    before = len(list(Path("/dev/fd").iterdir()))
    copies = local_copies(f"{bucket}/data/*.csv")
    assert len(copies) == 20 and len(list(Path("/dev/fd").iterdir())) < before + 5


def test_the_locks_of_ended_processes_are_removed(bucket, machine):
    fetch(put(f"{bucket}/train.csv"))
    (user,) = machine("first").glob(f"*{cache.USER}")
    ended = user.with_name(f"1-0{cache.USER}")
    ended.touch()
    make_room(0, "x")
    assert user.exists() and not ended.exists()


def test_a_file_is_published_at_its_end_and_fetched_before_it_is_replaced(bucket, machine):
    address = f"{bucket}/out/predictions.csv"
    with pytest.raises(ValueError, match="stopped"), publish_file(address) as file:
        (file.parent / f"{file.name}.partial").mkdir()
        raise ValueError("stopped")
    assert not open_place(bucket).system.exists(open_place(address).path)
    with publish_file(address) as file:
        assert (file.parent / f"{file.name}.partial").is_dir()
        file.write_bytes(WORD)
    machine("second")
    with publish_file(address) as file:
        assert file.read_bytes() == WORD
        file.write_bytes(b"new")
    machine("first")
    assert fetch(address).read_bytes() == b"new"


def test_a_file_that_changed_since_a_kill_is_fetched_and_the_unfinished_parts_stay(bucket, machine, tmp_path):
    address = f"{bucket}/predictions.csv"
    with publish_file(address) as file:
        (file.parent / f"{file.name}.partial").mkdir()
        file.write_bytes(b"first")
        shutil.copytree(cache.cache_folder(), tmp_path / "killed")  # the cache as a kill leaves it
    put(address, b"second")
    shutil.rmtree(cache.cache_folder())
    shutil.copytree(tmp_path / "killed", cache.cache_folder())
    with publish_file(address) as file:
        assert file.read_bytes() == b"second"
        assert (file.parent / f"{file.name}.partial").is_dir()


def test_a_list_of_skipped_rows_that_is_gone_here_is_deleted_in_the_bucket(bucket, machine):
    address = f"{bucket}/predictions.csv"
    with publish_file(address) as file:
        file.write_bytes(WORD)
        file.with_name(f"{file.name}.skipped.jsonl").write_bytes(WORD)
    assert open_place(bucket).system.exists(f"{open_place(address).path}.skipped.jsonl")
    machine("second")
    with publish_file(address) as file:
        file.write_bytes(b"new")
        file.with_name(f"{file.name}.skipped.jsonl").unlink()
    assert not open_place(bucket).system.exists(f"{open_place(address).path}.skipped.jsonl")
    assert fetch(address).read_bytes() == b"new"


def test_a_file_that_could_not_be_uploaded_is_uploaded_by_the_same_command(bucket, machine, monkeypatch):
    from bert_elmo_jax.buckets import published_file

    def fail(place, name, file):
        raise ConnectionError("cut")

    address = f"{bucket}/predictions.csv"
    with monkeypatch.context() as patch:
        patch.setattr(published_file, "upload", fail)
        with pytest.raises(ConnectionError), publish_file(address) as file:
            file.write_bytes(WORD)
    with publish_file(address) as file:
        assert file.read_bytes() == WORD
    assert fetch(address).read_bytes() == WORD
