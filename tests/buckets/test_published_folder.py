"""Folders that are published: the order of writes, kills between any two of them, leases, lost connections."""

import json
import shutil
import time

import pytest

from bert_elmo_jax.buckets import lease, published_folder
from bert_elmo_jax.buckets.cache import ENTRY, fetch
from bert_elmo_jax.buckets.objects import download, list_objects, open_place
from bert_elmo_jax.buckets.published_file import publish_file
from bert_elmo_jax.buckets.published_folder import Publisher, publish_folder
from bert_elmo_jax.train.checkpoint import damage, saved_steps, write_file_list

KEEP, STEPS = 2, 3


class Killed(BaseException):
    """Raised in place of a kill; no handler of errors catches it."""


class BreakingSystem:
    """A file system that ends the process before its n-th write."""

    def __init__(self, system, writes):
        self._system, self.writes = system, writes

    def __getattr__(self, name):
        value = getattr(self._system, name)
        if name not in ("put_file", "pipe_file", "rm_file"):
            return value

        def write(*words, **options):
            if self.writes == 0:
                raise Killed
            self.writes -= 1
            return value(*words, **options)

        return write


def train(folder, steps):
    """Write the files of a run, from its newest checkpoint on; yield after every step."""
    done = max(saved_steps(folder), default=0)
    if not done:
        (folder / "tokenizer").mkdir(parents=True, exist_ok=True)
        for name in ("run.json", "tokenizer/vocab.txt", "model.json"):
            (folder / name).write_text(name)
    file = folder / "metrics.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    assert len(lines) >= done, "lines before the checkpoint are missing"
    file.write_text("".join(f"{line}\n" for line in lines[:done]))
    for step in range(done + 1, steps + 1):
        with file.open("a") as log:
            log.write(json.dumps({"step": step}) + "\n")
        place = folder / "checkpoints" / str(step)
        shutil.rmtree(place, ignore_errors=True)
        for part in ("params", "rest"):
            (place / part).mkdir(parents=True)
            (place / part / "d").write_text(f"{part} {step}")
        write_file_list(place)
        prune(folder)
        yield
    prune(folder)  # a kill may have come before
    (folder / "report.html").write_text("report")
    (folder / "result.json").write_text("{}")


def prune(folder):
    for old in saved_steps(folder)[:-KEEP]:
        (folder / "checkpoints" / str(old) / "files.json").unlink()
        shutil.rmtree(folder / "checkpoints" / str(old))


def read_all(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def look(address, folder):
    """Return a folder with the objects of an address, the lease excepted."""
    place = open_place(address)
    objects = {name: stored for name, stored in list_objects(place).items() if name != lease.LEASE}
    folder.mkdir()
    download(place, objects, folder)
    return folder


def start(address, entry, writes=-1):
    place = open_place(address)
    publisher = Publisher(place._replace(system=BreakingSystem(place.system, writes)), entry)
    publisher.begin()
    publisher._stop.set()  # the test decides when something is published
    publisher._release.set()
    for thread in publisher._threads:
        thread.join()
    return publisher


def run_until(address, entry, writes=-1, steps=STEPS):
    """Run and publish after each step, as far as so many writes in the bucket."""
    try:
        publisher = start(address, entry, writes)
        for _ in train(publisher.folder, steps):
            publisher.publish()
        publisher.end(None)
    except Killed:
        return False
    return True


@pytest.mark.parametrize("same_machine", [True, False], ids=["same machine", "another machine"])
def test_a_kill_between_any_two_writes_loses_nothing(bucket, tmp_path, same_machine):
    expected = tmp_path / "expected"
    for _ in train(expected, STEPS):
        pass
    writes = 0
    while True:
        address, ended = f"{bucket}/run{writes}", False
        ended = run_until(address, tmp_path / f"{writes}", writes)
        if not ended:
            folder = tmp_path / (f"{writes}" if same_machine else f"{writes}-next")
            objects = look(address, tmp_path / f"{writes}-before")
            for step in saved_steps(objects):
                assert damage(objects / "checkpoints" / str(step)) == []
            if (objects / "model.json").exists():
                assert (objects / "tokenizer/vocab.txt").exists()
            if (objects / "result.json").exists():
                assert saved_steps(objects) == [2, 3]
            assert run_until(address, folder)
        final = look(address, tmp_path / f"{writes}-final")
        assert read_all(final) == read_all(expected), f"killed before write {writes}"
        if ended:
            break
        writes += 1
    assert writes > 20


def test_a_checkpoint_counts_when_everything_before_it_is_there(bucket, tmp_path, monkeypatch):
    order = []
    upload = published_folder.upload
    monkeypatch.setattr(
        published_folder, "upload", lambda place, name, file: (order.append(name), upload(place, name, file))
    )
    assert run_until(f"{bucket}/run", tmp_path / "entry", steps=2)
    for step in (1, 2):
        marker = order.index(f"checkpoints/{step}/files.json")
        data = [order.index(f"checkpoints/{step}/{name}/d") for name in ("params", "rest")]
        lines = [place for place, name in enumerate(order) if name == "metrics.jsonl"]
        assert max(data) < marker
        assert len([place for place in lines if place < marker]) >= step
    assert order[-1] == "result.json"


def test_a_folder_on_another_machine_has_what_was_published(bucket, machine):
    with publish_folder(f"{bucket}/run") as folder:
        for _ in train(folder, 3):
            pass
        first = read_all(folder)
    machine("second")
    with publish_folder(f"{bucket}/run") as folder:
        assert read_all(folder) == first
        (folder / "more.txt").write_text("more")
    machine("first")
    with publish_folder(f"{bucket}/run") as folder:
        assert (folder / "more.txt").read_text() == "more"


def test_a_second_writer_is_refused(bucket, machine, monkeypatch):
    monkeypatch.setattr(lease, "REFRESH", 0.05)
    monkeypatch.setattr(lease, "PATIENCE", 30.0)
    with publish_folder(f"{bucket}/run") as folder:
        (folder / "run.json").write_text("{}")
        with pytest.raises(BlockingIOError, match="is being written by process"), publish_folder(f"{bucket}/run"):
            pass
        machine("second")
        refused = pytest.raises(BlockingIOError, match=r"is being written by process \d+ on")
        with refused, publish_folder(f"{bucket}/run"):
            pass
    with publish_folder(f"{bucket}/run") as folder:
        assert (folder / "run.json").exists()


def test_the_lease_of_a_dead_writer_is_taken(bucket, tmp_path, capsys):
    start(f"{bucket}/run", tmp_path / "dead")
    start(f"{bucket}/run", tmp_path / "next")
    assert "was being written by process" in capsys.readouterr().err


def test_a_writer_whose_lease_was_taken_publishes_no_more(bucket, tmp_path):
    suspended = start(f"{bucket}/run", tmp_path / "suspended")
    (suspended.folder / "run.json").write_text("{}")
    start(f"{bucket}/run", tmp_path / "next")
    with pytest.raises(OSError, match=r"was taken over by process .* choose another address"):
        suspended.end(None)
    assert list(list_objects(open_place(f"{bucket}/run"))) == ["lease.json"]


def test_a_lost_connection_ends_no_run_and_the_same_command_publishes(bucket, machine, monkeypatch):
    def fail(place, name, file):
        raise ConnectionError("cut")

    with monkeypatch.context() as patch:
        patch.setattr(published_folder, "upload", fail)
        failed = pytest.raises(OSError, match=r"all files are in .*: the same command publishes")
        with failed, publish_folder(f"{bucket}/run") as folder:
            for _ in train(folder, 2):
                pass
    with publish_folder(f"{bucket}/run") as folder:
        assert saved_steps(folder) == [1, 2]
    assert "result.json" in list_objects(open_place(f"{bucket}/run"))


NAMES = ("config.json", "model.safetensors", "SHA256SUMS")


def write_whole(address, text):
    """Write a folder as `convert` does, which refuses one that has files."""
    with publish_folder(address, while_written=False, resumes=False) as folder:
        if any(folder.iterdir()):
            raise ValueError(f"{folder} is not empty")
        for name in NAMES if text == "new" else (*NAMES, "vocab.txt"):
            (folder / name).write_text(text)


@pytest.mark.parametrize("same_machine", [True, False], ids=["same machine", "another machine"])
@pytest.mark.parametrize("fault", [Killed, ConnectionError], ids=["killed", "network is down"])
@pytest.mark.parametrize("uploads", range(len(NAMES) + 1))
def test_a_folder_whose_upload_was_stopped_is_written_and_published_again(
    uploads, fault, same_machine, bucket, machine, tmp_path, monkeypatch
):
    place, upload, left = open_place(f"{bucket}/model"), published_folder.upload, iter(range(uploads))

    def stop(*arguments):
        if next(left, None) is None:
            raise fault
        upload(*arguments)

    monkeypatch.setattr(published_folder, "upload", stop)
    for _ in range(2):  # the second start is stopped before its first upload
        with pytest.raises((Killed, OSError)):
            write_whole(place.address, "old")
    if uploads:
        with pytest.raises(OSError, match=r"has only a part of what process \d+ on .* start its command again"):
            fetch(place.address)
    with (
        pytest.raises(ValueError, match="of the block"),
        publish_folder(place.address, while_written=False, resumes=False),
    ):
        raise ValueError("of the block")
    machine("first" if same_machine else "second")
    monkeypatch.setattr(published_folder, "upload", upload)
    write_whole(place.address, "new")
    assert read_all(look(place.address, tmp_path / "final")) == dict.fromkeys(NAMES, b"new")
    with pytest.raises(ValueError, match="is not empty"):
        write_whole(place.address, "new")
    assert sorted(file.name for file in fetch(place.address).iterdir()) == sorted(NAMES)


def test_the_lease_is_refreshed_during_the_last_upload(bucket, machine, monkeypatch):
    monkeypatch.setattr(lease, "REFRESH", 0.02)
    is_refreshed = []

    def upload_slowly(place, name, path):
        before, ends = lease.read_lease(place), time.monotonic() + 10
        while lease.read_lease(place) == before and time.monotonic() < ends:
            time.sleep(0.01)
        is_refreshed.append(lease.read_lease(place) != before)

    monkeypatch.setattr(published_folder, "upload", upload_slowly)
    write_whole(f"{bucket}/model", "new")
    assert is_refreshed and all(is_refreshed)
    assert lease.read_lease(open_place(f"{bucket}/model"))["released"]


def test_a_whole_folder_stays_if_a_second_start_is_killed(bucket, machine):
    write_whole(f"{bucket}/model", "new")
    killed = Publisher(open_place(f"{bucket}/model"), machine("other") / "entry", while_written=False, resumes=False)
    killed.begin()
    killed._release.set()
    machine("second")
    with pytest.raises(ValueError, match="is not empty"):
        write_whole(f"{bucket}/model", "other")


def test_a_run_that_is_not_published_stays_in_the_cache(bucket, machine, monkeypatch):
    def fail(place, owner):
        raise ConnectionError("cut")

    def is_published(folder):
        return json.loads((folder.parents[1] / ENTRY).read_text())["published"]

    with monkeypatch.context() as patch:
        failed = pytest.raises(OSError, match="the same command publishes")
        with failed, publish_folder(f"{bucket}/run") as folder:
            assert not is_published(folder), "the process may be killed here"
            patch.setattr(lease, "check_lease", fail)
            (folder / "model.json").write_text("{}")
    assert not is_published(folder)
    with publish_folder(f"{bucket}/run") as folder:
        pass
    assert is_published(folder)


def test_vectors_are_published_when_all_are_computed(bucket, tmp_path, monkeypatch):
    order = []
    upload = published_folder.upload
    monkeypatch.setattr(
        published_folder, "upload", lambda place, name, file: (order.append(name), upload(place, name, file))
    )
    publisher = start(f"{bucket}/run", tmp_path / "entry")
    folder = publisher.folder / "vectors" / "digest"
    folder.mkdir(parents=True)
    for done in (1, 2):
        (folder / "vectors.json").write_text(json.dumps({"done": done, "sentences": 2}))
        (folder / "layer_01.f32").write_bytes(bytes(4 * done))  # later than the description, as of a resumed run
        publisher.publish()
        assert order == ([] if done == 1 else ["vectors/digest/layer_01.f32", "vectors/digest/vectors.json"])


def test_a_refused_run_leaves_nothing_in_the_bucket(bucket, machine):
    with pytest.raises(ValueError, match="refused"), publish_folder(f"{bucket}/run") as folder:
        (folder / "costs.jsonl").write_text("{}")
        raise ValueError("refused")
    assert list_objects(open_place(f"{bucket}/run")) == {}


def test_other_objects_below_the_address_stay(bucket, machine):
    place = open_place(f"{bucket}/run")
    with publish_folder(place.address) as folder:
        (folder / "run.json").write_text("{}")
    place.system.pipe_file(place.join("notes.txt"), b"mine")
    with publish_folder(place.address) as folder:
        (folder / "model.json").write_text("{}")
    assert {"notes.txt", "model.json", "run.json"} <= list_objects(place).keys()


def test_files_that_are_private_stay_here(bucket, machine):
    with publish_folder(f"{bucket}/run") as folder:
        for name in ("lock", "x.csv.partial/lines", "toyworld/.lock", "checkpoints/3/params/d", "run.json"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("x")
    assert sorted(list_objects(open_place(f"{bucket}/run"))) == ["lease.json", "run.json"]


def test_repositories_of_the_hub_are_refused():
    with pytest.raises(ValueError, match="every file would be a commit"), publish_folder("hf://me/model"):
        pass
    with pytest.raises(ValueError, match="every file would be a commit"), publish_file("hf://me/model/new.csv"):
        pass


def test_a_whole_bucket_is_refused(bucket, machine):
    with pytest.raises(ValueError, match="is a whole bucket: give a folder in it"), publish_folder(bucket):
        pass


def test_a_kill_while_the_first_copy_is_fetched_fetches_it_again(bucket, tmp_path):
    assert run_until(f"{bucket}/run", tmp_path / "a")
    publisher = start(f"{bucket}/run", tmp_path / "b")
    record = json.loads((publisher.entry / ENTRY).read_text())
    (publisher.entry / ENTRY).write_text(json.dumps({**record, "whole": False}))
    (publisher.folder / "result.json").unlink()
    assert (start(f"{bucket}/run", tmp_path / "b").folder / "result.json").exists()
