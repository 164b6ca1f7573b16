"""Outputs are never destroyed, are written by one process at a time, and continue after a kill."""

import os
import stat
import threading
from pathlib import Path

import pytest

from bert_elmo_jax.files import naming
from bert_elmo_jax.inference.output_file import LineFile, Lines, find_output, find_record, open_lines


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1"])
def test_names_of_standard_output(name, capsys):
    assert find_output(name) is None
    with open_lines(None) as out:
        out.add(["a", "b"], 2)
    assert capsys.readouterr().out == "a\nb\n"


def test_links_are_followed(tmp_path):
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("real.csv")
    (tmp_path / "new.csv").symlink_to("later.csv")
    with open_lines(find_output(str(tmp_path / "link.csv"), overwrite=True), overwrite=True) as out:
        out.begin(None)
        out.add(["new"], 1)
    with open_lines(find_output(str(tmp_path / "new.csv"))) as out:
        out.begin(None)
        out.add(["later"], 1)
    assert (tmp_path / "link.csv").is_symlink() and (tmp_path / "real.csv").read_text() == "new\n"
    assert (tmp_path / "new.csv").is_symlink() and (tmp_path / "later.csv").read_text() == "later\n"


def test_a_pipe_stays_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    got = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_text()))
    reader.start()
    with open_lines(find_output(str(tmp_path / "pipe"))) as out:
        out.begin({"model": "a"})
        out.add(["a", "b"], 2)
    reader.join()
    assert got == ["a\nb\n"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="this system has no /dev/full")
def test_a_full_device_is_an_error_that_names_it():
    before = Path("/dev/full").stat().st_mode
    out = open_lines(find_output("/dev/full"))
    assert type(out) is Lines
    with pytest.raises(OSError, match=r"\[Errno 28\] No space left on device: '/dev/full'"), out:
        out.add(["a"], 1)
    assert Path("/dev/full").stat().st_mode == before


REFUSED = [  # name of the output, and the message
    ("", "--output= is empty: give the name of a file, or - for standard output"),
    (" ", "--output= is empty"),
    ("folder", "folder is a folder: give the name of a file, such as folder/out.jsonl"),
    ("thesis.docx", "thesis.docx exists: give another name, or --overwrite to replace it"),
    ("input.csv", "input.csv would replace the input: give another name"),
    ("hard.csv", "hard.csv would replace the input"),
    ("soft.csv", "soft.csv would replace the input"),
]


def test_names_that_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("thesis.docx").write_text("a thesis")
    Path("input.csv").write_text("text\n")
    os.link("input.csv", "hard.csv")
    Path("soft.csv").symlink_to("input.csv")
    for name, message in REFUSED:
        for overwrite in (False, True) if "input" in message else (False,):  # not even with --overwrite
            with pytest.raises((ValueError, OSError), match=message):
                find_output(name, "input.csv", overwrite=overwrite)
    assert Path("thesis.docx").read_text() == "a thesis"


def test_none_of_several_inputs_is_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "b.csv"):
        Path(name).write_text("text\n")
    with pytest.raises(ValueError, match=r"b\.csv would replace the input: give another name"):
        find_output("b.csv", "a.csv", "b.csv", overwrite=True)
    assert find_output("c.csv", "a.csv", "b.csv") == tmp_path / "c.csv"


def test_one_process_at_a_time(tmp_path):
    path = tmp_path / "out.csv"
    with LineFile(path) as first:
        first.begin(None)
        with (
            pytest.raises(ValueError, match=rf"process {os.getpid()} is writing .*out.csv: wait for it"),
            LineFile(path),
        ):
            pass
        first.add(["a"], 1)
    assert path.read_text() == "a\n"
    with pytest.raises(FileExistsError, match="exists"), LineFile(path):  # written while this process came here
        pass
    assert [file.name for file in tmp_path.iterdir()] == ["out.csv"]


def test_the_same_request_once_more_finds_its_file_complete(tmp_path, capsys):
    path = tmp_path / "out.csv"
    with LineFile(path) as out:
        out.begin({"a": 1})
        out.add(["x", "y"], 2)
    record = find_record(path)
    assert find_output(str(path)) == path and record.is_file()
    with LineFile(path) as out:
        out.begin({"a": 1})
        raise AssertionError("the block ends there")
    assert out.finished == 2 and "complete already, by the same command: 2 examples" in capsys.readouterr().err
    for request in ({"a": 2}, None):
        with pytest.raises(FileExistsError, match="give another name, or --overwrite"), LineFile(path) as out:
            out.begin(request)
    path.write_text("changed")
    with pytest.raises(FileExistsError), LineFile(path) as out:
        out.begin({"a": 1})
    path.unlink()  # killed after the record was written, and before the file got its name
    with LineFile(path) as out:
        out.begin({"a": 1})
        out.add(["x"], 1)
    assert path.read_text() == "x\n" and sorted(file.name for file in tmp_path.iterdir()) == [record.name, "out.csv"]
    with LineFile(path, overwrite=True) as out:
        out.begin(None)
        out.add(["z"], 1)
    assert [file.name for file in tmp_path.iterdir()] == ["out.csv"]


def stop_after(path, groups, request):
    with pytest.raises(KeyboardInterrupt), LineFile(path, mark=b"\xef\xbb\xbf") as out:
        out.begin(request)
        for lines in groups:
            if not out.skip(len(lines)):
                out.add(lines, len(lines))
        out.header.append("late")
        raise KeyboardInterrupt


def test_a_stopped_output_continues(tmp_path):
    path, request = tmp_path / "out.csv", {"model": "0a", "stop": ("a",)}
    with pytest.raises(KeyboardInterrupt), LineFile(path, mark=b"\xef\xbb\xbf") as out:
        out.begin(request)
        out.header.append("text")
        assert not out.skip(2)
        out.add(["a", "b"], 2)
        raise KeyboardInterrupt
    assert not path.exists()
    with open(tmp_path / "out.csv.partial" / "lines", "ab") as file:
        file.write("half a 글".encode()[:-1])  # as after a kill
    with LineFile(path, mark=b"\xef\xbb\xbf") as out:
        out.begin(request)
        assert (out.done, out.header) == (2, ["text"])
        assert out.skip(2) and not out.skip(1)
        out.add(["c"], 1)
    assert path.read_bytes() == b"\xef\xbb\xbfa\nb\nc\n"
    assert sorted(file.name for file in tmp_path.iterdir()) == [".out.csv.request", "out.csv"]


def test_another_request_or_a_damaged_partial_file_begins_again(tmp_path):
    path, request = tmp_path / "out.csv", {"model": "0a"}
    for again, damaged in (({"model": "1b"}, None), (None, None), (request, "progress.json"), (request, "lines")):
        path.unlink(missing_ok=True)
        stop_after(path, [["a"], ["b"]], request)
        if damaged:
            (tmp_path / "out.csv.partial" / damaged).write_bytes(b"{")
        with LineFile(path) as out:
            out.begin(again)
            assert out.done == 0 and not out.skip(1)
            out.add(["c"], 1)
        assert path.read_text() == "c\n"


def test_files_of_others_stay_and_nothing_is_left_of_an_empty_output(tmp_path):
    with pytest.raises(KeyError), LineFile(tmp_path / "out.csv") as out:
        out.begin({"model": "0a"})
        raise KeyError
    assert not list(tmp_path.iterdir())
    (tmp_path / "out.csv.partial").mkdir()
    (tmp_path / "out.csv.partial" / "thesis.docx").touch()
    with LineFile(tmp_path / "out.csv") as out:
        out.begin(None)
        out.add(["a"], 1)
    assert [file.name for file in (tmp_path / "out.csv.partial").iterdir()] == ["thesis.docx"]


def test_only_errors_of_writes_get_a_name():
    with pytest.raises(OSError, match=r"\[Errno 30\] Read-only file system: 'a'"), naming("a"):
        raise OSError(30, "Read-only file system")
    with pytest.raises(OSError, match=r"^a socket$"), naming("a"):
        raise OSError("a socket")
    with pytest.raises(FileNotFoundError, match="'b'"), naming("a"):
        raise FileNotFoundError(2, "No such file", "b")
