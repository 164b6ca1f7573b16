"""Parts of a file of arrays: the file is the same wherever writing was stopped."""

import json
import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import h5py
import numpy as np
import pytest

from bert_elmo_jax.inference.array_file import Parts
from bert_elmo_jax.inference.output_file import Finished

TEXTS = ["강가의 은행", ["the", "river"], "a", "강가의 은행", 'with "quotes"\x00']
SETTINGS = {"batch_size": 32, "layers": [0, 1]}


def arrays():
    return [np.random.default_rng(n).normal(size=(2, n + 1, 4)).astype(np.float32) for n in range(len(TEXTS))]


def drain(steps, count=None):
    for n, _ in enumerate(steps, start=1):
        if n == count:
            break


def write(path, size=2, settings=SETTINGS):
    """Continue a run that was stopped; return how many arrays it already had."""
    with Parts(path) as parts:
        if not parts.resume(settings):
            parts.begin(settings)
        done = parts.done
        drain(parts.write(arrays()[done:], size))
        parts.merge(TEXTS)
    return done


def read(path):
    with h5py.File(path) if path.suffix != ".npz" else np.load(path) as file:
        stored_arrays = {name: file[name][()] for name in file}
    index = stored_arrays.pop("sentence_to_index", None)
    return stored_arrays, None if index is None else json.loads(index[0])


@pytest.mark.parametrize("ending", ["h5", "hdf5", "npz"])
def test_the_file_holds_every_array(tmp_path, ending):
    write(tmp_path / f"a.{ending}")
    stored_arrays, index = read(tmp_path / f"a.{ending}")
    assert set(stored_arrays) == set("01234")
    for n, array in enumerate(arrays()):
        assert stored_arrays[str(n)].dtype == np.float32
        assert np.array_equal(stored_arrays[str(n)], array)
    if ending != "npz":  # of two equal texts the last counts, as in a dictionary
        assert index == {"강가의 은행": "3", "the river": "1", "a": "2", 'with "quotes"\x00': "4"}
    assert sorted(path.name for path in tmp_path.iterdir()) == [f".a.{ending}.request", f"a.{ending}"]


@pytest.mark.parametrize("ending", ["h5", "npz"])
@pytest.mark.parametrize("size", [1, 2, 5, 9])
def test_the_same_bytes_however_it_was_stopped(tmp_path, ending, size):
    write(tmp_path / f"whole.{ending}", size)
    for stop in range(1, len(TEXTS) + 1):
        path = tmp_path / f"{stop}.{ending}"
        with Parts(path) as parts:
            parts.begin(SETTINGS)
            drain(parts.write(arrays(), size), stop)
        assert write(path, size) == (stop - 1) // size * size
        assert path.read_bytes() == (tmp_path / f"whole.{ending}").read_bytes()


def test_drafts_and_parts_after_a_gap_are_made_anew(tmp_path):
    path = tmp_path / "a.h5"
    with Parts(path) as parts:
        parts.begin(SETTINGS)
        drain(parts.write(arrays(), 2), 3)
    folder = tmp_path / "a.h5.partial"
    (folder / "draft").write_bytes(b"\x93NUMPY half of an array")
    (folder / "whole.h5").write_bytes(b"half of a file")
    assert write(path) == 2
    assert len(read(path)[0]) == len(TEXTS)
    path = tmp_path / "a.npz"
    with Parts(path) as parts:
        parts.begin(SETTINGS)
        drain(parts.write(arrays(), 1))
    files = sorted((tmp_path / "a.npz.partial").glob("*.arrays"))
    assert len(files) == 5
    files[2].unlink()
    assert write(path, 1) == 2
    assert np.array_equal(read(path)[0]["4"], arrays()[4])


def test_a_stop_while_all_is_put_together(tmp_path, monkeypatch):
    path = tmp_path / "a.h5"
    write(tmp_path / "whole.h5")
    calls = []

    def report():
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt

    with Parts(path) as parts, pytest.raises(KeyboardInterrupt):
        parts.begin(SETTINGS)
        drain(parts.write(arrays(), 2))
        parts.merge(TEXTS, report)
    assert not path.exists()
    monkeypatch.setattr("bert_elmo_jax.inference.array_file._clean", lambda folder: None)
    assert write(path) == len(TEXTS)  # and a stop between the last two steps
    monkeypatch.undo()
    assert path.read_bytes() == (tmp_path / "whole.h5").read_bytes()
    assert (tmp_path / "a.h5.partial").is_dir()
    Parts(path)
    names = [".a.h5.request", ".whole.h5.request", "a.h5", "whole.h5"]
    assert sorted(file.name for file in tmp_path.iterdir()) == names


def test_the_same_settings_once_more_find_the_file_complete(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "a.h5"
    write(Path("~/a.h5"))
    content = path.read_bytes()
    with Parts(path) as parts, pytest.raises(Finished, match=r"complete already, by the same command: 5 examples"):
        parts.resume(SETTINGS)
    with Parts(path) as parts, pytest.raises(FileExistsError, match="exists; remove it, or write to another file"):
        parts.resume({**SETTINGS, "batch_size": 64})
    assert path.read_bytes() == content
    path.write_bytes(b"somebody's")
    with Parts(path) as parts, pytest.raises(FileExistsError, match="exists; remove it, or write to another file"):
        parts.resume(SETTINGS)
    path.unlink()
    assert write(path) == 0 and path.read_bytes() == content


def test_files_and_settings_of_another_run_are_refused(tmp_path):
    path = tmp_path / "foreign.h5"
    with Parts(path) as parts:
        parts.begin(SETTINGS)
    path.write_bytes(b"somebody's")
    with pytest.raises(FileExistsError, match="exists; remove it"):
        Parts(path)
    assert (tmp_path / "foreign.h5.partial" / "asked.json").is_file()
    path = tmp_path / "a.h5"
    with Parts(path) as parts:
        parts.begin(SETTINGS)
        drain(parts.write(arrays(), 2), 3)
    changed = r"batch_size was 32, is 64. Finish that run with its settings, or remove the folder"
    for settings, message in [
        ({**SETTINGS, "batch_size": 64}, changed),
        ({"layers": [0, 1]}, "batch_size was 32, is None"),
        ({**SETTINGS, "layers": [0], "model": "ab"}, r"layers was \[0, 1\], is \[0\]; model was None, is 'ab'"),
    ]:
        with Parts(path) as parts, pytest.raises(ValueError, match=message):
            parts.resume(settings)
    assert write(path) == 2
    path = tmp_path / "b.h5"
    for content in (b"", b"[3]", b"7", b'{"batch_size": 3', b"\xff"):
        with Parts(path) as parts:
            parts.begin(SETTINGS)
        (tmp_path / "b.h5.partial" / "asked.json").write_bytes(content)
        with Parts(path) as parts, pytest.raises(ValueError, match=r"asked\.json is damaged .* to start again"):
            parts.resume(SETTINGS)


def test_a_damaged_part_is_named(tmp_path):
    path = tmp_path / "a.h5"
    with Parts(path) as parts:
        parts.begin(SETTINGS)
        drain(parts.write(arrays(), 2))
        part = sorted(parts.folder.glob("*.arrays"))[1]
        part_bytes = part.read_bytes()
        for content in (part_bytes[:-5], part_bytes[:9], b"", b"x" * len(part_bytes)):
            part.write_bytes(content)
            with pytest.raises(ValueError, match=rf"{part.name} is damaged .*: remove it, and run"):
                parts.merge(TEXTS)
    part.unlink()
    assert write(path) == 2
    assert len(read(path)[0]) == len(TEXTS)


def test_two_runs_at_once(tmp_path):
    path = tmp_path / "a.h5"
    with Parts(path) as first, Parts(path) as second:
        first.begin(SETTINGS)
        for attempt in (lambda: second.resume(SETTINGS), lambda: second.begin(SETTINGS)):
            with pytest.raises(ValueError, match=r"another run is writing .*a\.h5; wait for it, or stop it first"):
                attempt()
    assert write(path) == 0


def test_invalid_targets(tmp_path):
    (tmp_path / "there.h5").touch()
    (tmp_path / "folder.npz").mkdir()
    for name, error, message in (
        ("a.csv", ValueError, r"a\.csv ends in \.csv; use \.h5, \.hdf5 or \.npz"),
        ("a", ValueError, "ends in nothing"),
        ("none/a.h5", FileNotFoundError, "there is no folder .*none to write a.h5 into; make it first"),
        ("there.h5", FileExistsError, "exists; remove it"),
        ("folder.npz", FileExistsError, "exists; remove it"),
    ):
        with pytest.raises(error, match=message):
            Parts(tmp_path / name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_to(tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(PermissionError, match="is not writable: use another, or change its permissions"):
        Parts(tmp_path / "a.h5")


FULL = """
    import resource, sys
    from pathlib import Path
    import numpy as np
    from bert_elmo_jax.inference.array_file import Parts

    for limit in (50_000, 100_000, 1_000_000):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        with Parts(Path(sys.argv[1])) as parts:
            if not parts.resume({}):
                parts.begin({})
            try:
                for _ in parts.write([np.ones((1, 100, 100), np.float32)] * (8 - parts.done), 2):
                    pass
                parts.merge("abcdefgh")
            except OSError as error:
                print(error.errno, parts.done)
"""


@pytest.mark.parametrize("ending", ["h5", "npz"])
def test_a_full_disk(tmp_path, ending):
    """A limit on the size of files acts like a full disk; first a part exceeds it, then the whole file."""
    path = tmp_path / f"a.{ending}"
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(FULL), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["27", "0", "27", "8"]
    assert len(read(path)[0]) == 8


def test_files_that_another_run_has_finished_are_not_written_over(tmp_path):
    for ending in (".h5", ".npz"):
        path = tmp_path / f"vectors{ending}"
        with Parts(path) as late:  # looks at once, and then loads its model
            with Parts(path) as early:
                early.begin({"layers": [0]})
                list(early.write([np.zeros((1, 2, 3), np.float32)], size=1))
                early.merge(["강"])
            with pytest.raises(FileExistsError, match="exists; remove it, or write to another file"):
                late.begin({"layers": [1]})
    names = [".vectors.h5.request", ".vectors.npz.request", "vectors.h5", "vectors.npz"]
    assert sorted(file.name for file in tmp_path.iterdir()) == names
