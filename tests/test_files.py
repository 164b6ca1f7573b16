"""Files are complete or absent, and a lock has one holder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bert_elmo_jax.files import (
    LockHeld,
    check_links,
    hash_file,
    is_locked,
    lock,
    open_atomically,
    read_json,
    stage_folder,
    write_bytes,
    write_json,
    write_text,
)

HOLD = """
import sys
from bert_elmo_jax.files import lock
with lock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    file = write_bytes(tmp_path / "vocab.txt", b"old")
    with pytest.raises(KeyboardInterrupt), open_atomically(file, encoding="utf-8") as half:
        half.write("ne")
        raise KeyboardInterrupt

    def fail(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="No space left"):
        write_bytes(file, b"new")
    assert file.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["vocab.txt"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "facts.json is not JSON: Expecting property name"),
        (b"[1]", r"facts.json should hold a JSON object \{…\}; it holds a list"),
        (b'{"a":\n "\xb0\xad"}', "facts.json: line 2 is not UTF-8 .*; convert the file to UTF-8 first"),
    ],
)
def test_damaged_json(tmp_path, content, message):
    file = write_bytes(tmp_path / "facts.json", content)
    with pytest.raises(ValueError, match=message):
        read_json(file, default={})
    file.unlink()
    with pytest.raises(FileNotFoundError):
        read_json(file)


def test_text_is_written_as_given(tmp_path):
    assert write_text(tmp_path / "a.csv", "a\r\nb\n", encoding="utf-8-sig").read_bytes() == b"\xef\xbb\xbfa\r\nb\n"


def test_a_stage_is_a_new_folder_and_is_deleted_after_an_error(tmp_path):
    (tmp_path / "model.partial").mkdir()
    with pytest.raises(ValueError, match="failed"), stage_folder(tmp_path / "model") as first:
        (first / "weights").touch()
        with stage_folder(tmp_path / "model") as second:
            assert first != second and first.parent == second.parent == tmp_path
        raise ValueError("failed")
    assert [path.name for path in tmp_path.iterdir()] == ["model.partial"]
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"file/out cannot be written \(Not a directory\); give another folder"):
        stage_folder(tmp_path / "file" / "out").__enter__()


def test_another_process_holds_the_lock_until_it_is_killed(tmp_path):
    path = tmp_path / "lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"held\n"
        assert is_locked(path)
        with pytest.raises(LockHeld, match=f"is held by process {other.pid}$"), lock(path):
            pass
        other.kill()
    assert not is_locked(path)
    with lock(path, wait=True):
        assert path.read_text() == str(os.getpid())


def test_written_files_are_read_and_hashed(tmp_path):
    assert write_bytes(tmp_path / "a.bin", b"whole").read_bytes() == b"whole"
    assert read_json(write_json(tmp_path / "facts.json", {"언어": "한국어"})) == {"언어": "한국어"}
    assert read_json("no/such/file.json", default={}) == {}
    assert hash_file(write_text(tmp_path / "a.txt", "강"))[:12] == "d90ed2084b71"
    assert not is_locked("no/such/lock")


@pytest.mark.parametrize("link", ["vocab.txt", "1_Pooling/config.json", "1_Pooling"])
def test_links_out_of_a_folder(tmp_path, link):
    (tmp_path / "secret" / "model").mkdir(parents=True)
    (tmp_path / "model").mkdir()
    path = tmp_path / "model" / link
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(tmp_path / "secret")
    with pytest.raises(ValueError, match=rf"{link} is a link to .*secret, outside the folder of the model"):
        check_links(tmp_path / "model")


def test_links_that_stay(tmp_path):
    """In the folder, to nothing, in the layout of the hub's cache, and the folder or the file that was given itself."""
    model = tmp_path / "models--a--b"
    snapshot = model / "snapshots" / "c0ffee"
    for folder in (snapshot / "1_Pooling", model / "blobs"):
        folder.mkdir(parents=True)
    (model / "blobs" / "1").touch()
    (snapshot / "1_Pooling" / "config.json").symlink_to("../../../blobs/1")
    (snapshot / "vocab.txt").symlink_to("../../blobs/1")
    (snapshot / "again.txt").symlink_to("vocab.txt")
    (snapshot / "gone.txt").symlink_to("/nowhere/at/all")
    (tmp_path / "model").symlink_to(snapshot)
    for name in ("weights.hdf5", "corpus.txt"):
        (tmp_path / name).symlink_to("/etc/hostname")
    for path in (snapshot, tmp_path / "model", tmp_path / "weights.hdf5"):
        check_links(path)
    for name in ("weights.hdf5.data-00000-of-00001", "options.json", "vocab.txt"):
        (tmp_path / name).symlink_to("/etc/hostname")
        with pytest.raises(ValueError, match=f"{name} is a link to"):
            check_links(tmp_path / "weights.hdf5")
        (tmp_path / name).unlink()


def test_a_folder_of_blobs_that_leads_elsewhere(tmp_path):
    snapshot = tmp_path / "models--a--b" / "snapshots" / "c0ffee"
    snapshot.mkdir(parents=True)
    (tmp_path / "models--a--b" / "blobs").symlink_to("/etc")
    (snapshot / "vocab.txt").symlink_to("../../blobs/hostname")
    with pytest.raises(ValueError, match="is a link to /etc/hostname"):
        check_links(snapshot)
