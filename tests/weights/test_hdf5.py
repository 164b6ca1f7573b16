"""HDF5 files: listing their content without reading it, and errors for other files."""

import h5py
import numpy as np
import pytest

from bert_elmo_jax.weights import hdf5
from bert_elmo_jax.weights.hdf5 import holds, read_hdf5


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "weights.hdf5"
    with h5py.File(path, "w") as file:
        file["강/embedding"] = np.arange(6, dtype=">f8").reshape(2, 3)
        file["note"] = "한국어"
        file.create_dataset("nothing", data=h5py.Empty("f4"))
        file.create_group("group/inner")
        file["again"] = h5py.SoftLink("/group")
        file["circle"] = file["/"]
    return path


def test_tensors_groups_and_names_of_a_file(file):
    tensors, groups = read_hdf5(file)
    shapes = {"강/embedding": (2, 3), "note": (), "nothing": ()}
    assert {name: tensor.shape for name, tensor in tensors.items()} == shapes
    assert tensors["강/embedding"].dtype == "float64"
    assert tensors["강/embedding"].read().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert groups >= {"강", "group", "group/inner"}
    assert holds(file, ("embedding", "강/embedding"))
    assert holds(file, ("group",))
    assert not holds(file, ("embedding", "강/word"))


@pytest.mark.parametrize("look", [read_hdf5, lambda path: holds(path, ("a",))])
def test_unreadable_files_are_refused(tmp_path, file, look):
    with pytest.raises(FileNotFoundError, match=r"absent\.hdf5"):
        look(tmp_path / "absent.hdf5")
    with pytest.raises(IsADirectoryError):
        look(tmp_path)
    (tmp_path / "page.hdf5").write_text("<!doctype html>")
    with pytest.raises(ValueError, match=r"page\.hdf5 is not an HDF5 file but a web page"):
        look(tmp_path / "page.hdf5")
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=rf"of {len(content) // 2:,} bytes is cut short or damaged .*truncated"):
        look(file)


def test_groups_that_hold_each_other_many_times_are_refused(tmp_path, monkeypatch):
    """Thirty groups with two names of the next each: a billion names."""
    with h5py.File(tmp_path / "w.hdf5", "w") as file:
        inner = file.create_group("group")
        for number in range(30):
            outer = file.create_group(f"group_{number}")
            outer["a"] = outer["b"] = inner
            inner = outer
    with pytest.raises(ValueError, match=r"w\.hdf5 has more than 10,000 names"):
        read_hdf5(tmp_path / "w.hdf5")
    monkeypatch.setattr(hdf5, "MOST_NAMES", 40)
    with h5py.File(tmp_path / "w.hdf5", "w") as file:
        for number in range(41):
            file.create_group(str(number))
    with pytest.raises(ValueError, match=r"more than 40 groups"):
        read_hdf5(tmp_path / "w.hdf5")


def test_numbers_that_were_never_written_are_refused(tmp_path):
    for options, written in ({}, 0), ({"chunks": (4, 2)}, 4), ({"chunks": (4, 2), "compression": "gzip"}, 0):
        with h5py.File(tmp_path / "w.hdf5", "w") as file:
            dataset = file.create_dataset("kernel", (8, 2), "f4", fillvalue=0.5, **options)
            if written:
                dataset[:written] = 1
        with pytest.raises(ValueError, match=r"kernel should have 64 bytes of numbers, and \d+ bytes are stored"):
            read_hdf5(tmp_path / "w.hdf5")
    with h5py.File(tmp_path / "w.hdf5", "w") as file:
        file.create_dataset("zeros", data=np.zeros((1 << 24, 2), np.float32), chunks=(1 << 20, 2), compression="gzip")
    with pytest.raises(ValueError, match=r"zeros should have 134,217,728 bytes of numbers"):
        read_hdf5(tmp_path / "w.hdf5")


def test_a_dataset_by_two_names_and_links_in_a_circle(tmp_path):
    with h5py.File(tmp_path / "w.hdf5", "w") as file:
        file["a/one"] = np.ones(2, np.float32)
        file["b/two"] = file["a/one"]
        file["b/soft"] = h5py.SoftLink("/a/one")
        file["b/nowhere"] = h5py.SoftLink("/gone")
        file["a/again"] = h5py.SoftLink("/a")
    tensors, groups = read_hdf5(tmp_path / "w.hdf5")
    assert {"a/one", "b/two", "b/soft"} <= set(tensors)
    assert {"a", "b", "a/again"} <= groups
    assert tensors["b/soft"].read().tolist() == [1, 1]
    assert "b/nowhere" not in tensors


def store_elsewhere(file):
    file.create_dataset("a/kernel", shape=(4,), dtype="f4", external=[("/etc/passwd", 0, h5py.h5f.UNLIMITED)])


def link_elsewhere(file):
    file["a/kernel"] = h5py.ExternalLink("/etc/hostname", "/kernel")


def link_through_another_name(file):
    file["a/kernel"] = h5py.SoftLink("/z/kernel")
    file["z"] = h5py.ExternalLink("/etc/hostname", "/")


def gather_from_elsewhere(file):
    layout = h5py.VirtualLayout(shape=(4,), dtype="f4")
    layout[:] = h5py.VirtualSource("/etc/hostname", "kernel", shape=(4,))
    file.create_virtual_dataset("a/kernel", layout)


NOT_HERE = r"the numbers of a/kernel are stored in /etc/passwd\. A file of a model may not name another file"
OTHER_FILES = [
    (store_elsewhere, NOT_HERE),
    (link_elsewhere, r"a/kernel is a link to /etc/hostname. .* ask its author for one"),
    (link_through_another_name, r"z is a link to /etc/hostname"),
    (gather_from_elsewhere, r"a/kernel is a virtual dataset, put together from /etc/hostname"),
]


@pytest.mark.parametrize(("harm", "message"), OTHER_FILES)
def test_other_files_are_refused(tmp_path, harm, message):
    with h5py.File(tmp_path / "weights.hdf5", "w") as file:
        harm(file)
        file["again/circle"] = file["/"]
    with pytest.raises(ValueError, match=rf"weights\.hdf5: {message}"):
        read_hdf5(tmp_path / "weights.hdf5")


def test_names_are_looked_up_without_opening_other_files(tmp_path):
    path = tmp_path / "weights.hdf5"
    with h5py.File(path, "w") as file:
        link_through_another_name(file)
        file["b"] = h5py.SoftLink("/a")
        file["number"] = 1
    assert holds(path, ("a/kernel",)) and not holds(path, ("number/a", "absent/a"))
    for name in ("z/kernel", "b/kernel"):
        with pytest.raises(ValueError, match="z is a link to /etc/hostname"):
            holds(path, (name,))
