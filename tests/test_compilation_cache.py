"""The user's cache of compiled programs: its folder, its size limit, and that its errors never stop a program."""

import os
import subprocess
import sys
import time
import zlib

import filelock
import jax
import pytest
import zstandard

from bert_elmo_jax import compilation_cache
from bert_elmo_jax.compilation_cache import LOCK, default_folder, delete_others, delete_unfinished, share_compiled
from bert_elmo_jax.runs.start_run import cache_compiled

from . import compiled_programs

NAMES = ("jax_compilation_cache_dir", "jax_compilation_cache_max_size", "jax_persistent_cache_min_compile_time_secs",
         "jax_enable_compilation_cache")  # fmt: skip
SUM = """
import jax, sys, warnings
from bert_elmo_jax.compilation_cache import share_compiled
warnings.simplefilter("error")
print(share_compiled() is not None, float(jax.jit(lambda x: (x @ x).sum())(jax.numpy.ones((8, 8)))))
"""


@pytest.fixture
def nothing_chosen(monkeypatch, tmp_path):
    """Provide a user's default environment, as in a notebook, with a temporary home directory."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.delenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS")
    saved = {name: jax.config.values[name] for name in NAMES}
    jax.config.update("jax_compilation_cache_dir", None)
    jax.config.update("jax_enable_compilation_cache", True)
    yield
    for name, value in saved.items():
        jax.config.update(name, value)


@pytest.mark.usefixtures("nothing_chosen")
def test_it_lies_in_the_users_caches_and_is_bounded(tmp_path):
    folder = share_compiled(limit=2**20)
    assert folder == default_folder() and folder.is_dir()
    assert folder.parent == tmp_path / "caches" / "bert_elmo_jax" / "compiled"
    assert [jax.config.values[name] for name in NAMES[:3]] == [str(folder), 2**19, compilation_cache.SHORTEST]
    assert share_compiled() is None  # it is chosen already


@pytest.mark.usefixtures("nothing_chosen")
def test_the_folder_that_many_runs_share_takes_its_place(tmp_path):
    share_compiled()
    cache_compiled(tmp_path / "sweep")
    assert [jax.config.values[name] for name in NAMES[:3]] == [str(tmp_path / "sweep"), -1, 0.0]


def test_the_environment_decides(monkeypatch):
    before = jax.config.values[NAMES[0]]
    assert before == os.environ["JAX_COMPILATION_CACHE_DIR"]
    assert share_compiled() is None and jax.config.values[NAMES[0]] == before


@pytest.mark.usefixtures("nothing_chosen")
def test_it_can_be_turned_off():
    jax.config.update("jax_enable_compilation_cache", False)
    assert share_compiled() is None and jax.config.values[NAMES[0]] is None


def test_the_cache_is_on_again_even_after_an_error():
    before = jax.config.values[NAMES[3]]
    with pytest.raises(KeyError), compilation_cache.no_cache():
        assert not jax.config.values[NAMES[3]]
        raise KeyError
    assert before and jax.config.values[NAMES[3]]


@pytest.mark.usefixtures("nothing_chosen")
def test_a_folder_that_cannot_be_used_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    assert share_compiled(tmp_path / "file") is None and share_compiled(tmp_path / "file" / "below") is None
    monkeypatch.setattr(os, "access", lambda *arguments: False)
    assert share_compiled(tmp_path / "read only") is None
    assert jax.config.values[NAMES[0]] is None


def test_unfinished_entries_go_and_others_stay(tmp_path):
    for name, size, used in (("whole", 9, 8), ("empty", 0, 8), ("alone", 9, None), ("short", 9, 3)):
        (tmp_path / f"{name}-cache").write_bytes(b"x" * size)
        if used is not None:
            (tmp_path / f"{name}-atime").write_bytes(b"x" * used)
    delete_unfinished(tmp_path)
    assert {path.name for path in tmp_path.glob("*-*")} == {"whole-cache", "whole-atime"}


def test_entries_that_were_swapped_go_and_others_stay(tmp_path):
    """JAX does not compare an entry with its name, so it would compute one program's result for the other."""
    for number, name in enumerate(("one", "two", "three", "four")):
        (tmp_path / f"{name}-cache").write_bytes(b"x" * 9)
        (tmp_path / f"{name}-atime").write_bytes(b"x" * 8)
        os.utime(tmp_path / f"{name}-cache", (number, number))
    delete_unfinished(tmp_path)
    (tmp_path / "one-cache").rename(tmp_path / "between")
    (tmp_path / "two-cache").rename(tmp_path / "one-cache")
    (tmp_path / "between").rename(tmp_path / "two-cache")
    (tmp_path / "three-cache").write_bytes(b"y" * 9)
    delete_unfinished(tmp_path)
    assert [path.name for path in tmp_path.glob("*-cache")] == ["four-cache"]
    (tmp_path / "entries.json").write_text("{")
    delete_unfinished(tmp_path)
    assert (tmp_path / "four-cache").exists()


def test_folders_of_other_versions_are_bounded_too(tmp_path):
    for age, name in enumerate(("own", "new", "old", "older")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a-cache").write_bytes(b"x" * 100)
        os.utime(tmp_path / name / "a-cache", (1e9 - age, 1e9 - age))
    delete_others(tmp_path / "own", limit=250)
    assert {path.name for path in tmp_path.iterdir()} == {"own", "new", "old"}


def test_a_second_process_reads_what_the_first_has_compiled(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    environment |= {"XDG_CACHE_HOME": str(tmp_path), "JAX_LOG_COMPILES": "0"}
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", SUM], env=environment, capture_output=True, text=True, check=True)
        assert (done.stdout, done.stderr) == ("True 512.0\n", "")
    (folder,) = (tmp_path / "bert_elmo_jax" / "compiled").iterdir()
    assert any(folder.glob("*-cache"))


def test_the_programs_of_the_tests_are_kept_and_tidied(tmp_path):
    valid_file, old, cut, other = (tmp_path / f"{name}-cache" for name in ("whole", "old", "cut", "other"))
    data = zstandard.ZstdCompressor().compress(b"program" * 99)
    for file in (valid_file, old):
        file.write_bytes(data)
    cut.write_bytes(data[:-9])
    other.write_bytes(zlib.compress(b"program"))
    os.utime(old, (0, 0))
    compiled_programs.tidy(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([valid_file, other])
    compiled_programs.tidy(tmp_path, now=time.time() + 15 * 86_400)
    compiled_programs.tidy(tmp_path / "missing")
    assert not list(tmp_path.iterdir())


def test_a_lock_that_another_process_keeps_is_waited_for_once(nothing_chosen, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(compilation_cache, "PATIENCE", 0.1)
    (tmp_path / "x-cache").write_bytes(b"x")
    (tmp_path / "x-atime").write_bytes(bytes(8))
    with filelock.FileLock(tmp_path / LOCK):
        assert share_compiled(tmp_path) is None
    assert "is held by another process: compiled programs are neither read nor kept" in caplog.text


def test_a_folder_of_others_is_not_used(nothing_chosen, caplog):
    folder = default_folder()
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert share_compiled() is None
    assert "all users can write into it" in caplog.text
