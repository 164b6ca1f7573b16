"""Files of a data set on the hub (`hf://`), read by the hub's own client from a server on the loopback."""

import functools
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

import pytest

from bert_elmo_jax.buckets import objects
from bert_elmo_jax.buckets.cache import fetch

DATA = {"train.csv": b"review,label\ngreat,1\n" * 50, "parts/0.txt": b"one\n", "parts/1.txt": "둘\n".encode()}


class Hub(BaseHTTPRequestHandler):
    """The three answers of the hub that reading needs: about a data set, its files, and ranges of one."""

    def do_GET(self):
        path = unquote(urlsplit(self.path).path)
        self.server.requests.append((path, self.headers.get("range")))
        name = path.removeprefix("/api").removeprefix("/datasets/")
        if name.startswith("team/private"):
            return self.answer(401, b"", {"X-Error-Message": "Invalid credentials in Authorization header"})
        if not name.startswith("team/reviews"):
            return self.answer(404, b"", {"X-Error-Code": "RepoNotFound"})
        if path.startswith("/api/") and (about := self.describe(name)):
            return self.answer(200, json.dumps(about).encode(), {"Content-Type": "application/json"})
        data = self.server.files.get(name.removeprefix("team/reviews/resolve/main/"))
        if data is None:
            return self.answer(404, b"", {"X-Error-Code": "EntryNotFound"})
        start, end = (int(number) for number in self.headers["range"].removeprefix("bytes=").split("-"))
        part = data[start : end + 1]
        if self.server.cuts:
            part = part[: self.server.cuts.pop()]
        return self.answer(206, part, {"Content-Range": f"bytes {start}-{end}/{len(data)}"})

    def describe(self, name):
        subpath = name.removeprefix("team/reviews").removeprefix("/tree/main").removeprefix("/")
        if "/tree/main" not in name:
            return {"id": "team/reviews", "sha": "0" * 40}
        return [
            {"type": "file", "path": file, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
            for file, data in self.server.files.items()
            if file == subpath or f"/{file}".startswith(f"/{subpath}/" if subpath else "/")
        ]

    def answer(self, status, body, headers):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def hub(machine, monkeypatch):
    """Return the server, whose data sets are `team/reviews` and the private `team/private`."""
    import fsspec

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.files, server.requests, server.cuts = dict(DATA), [], []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(fsspec, "filesystem", functools.partial(fsspec.filesystem, endpoint=address))
    yield server
    server.shutdown()
    server.server_close()


def test_a_file_and_a_folder_are_read(hub):
    assert fetch("hf://datasets/team/reviews/train.csv").read_bytes() == DATA["train.csv"]
    folder = fetch("hf://datasets/team/reviews/parts")
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {"0.txt": b"one\n", "1.txt": "둘\n".encode()}


def test_a_copy_is_used_until_the_file_on_the_hub_changes(hub):
    address = "hf://datasets/team/reviews/train.csv"
    first = fetch(address)
    hub.requests.clear()
    assert fetch(address) == first
    assert not [path for path, bytes_asked in hub.requests if bytes_asked]
    hub.files["train.csv"] = b"another,1\n"
    assert fetch(address).read_bytes() == b"another,1\n"
    assert first.read_bytes() == DATA["train.csv"]


def test_ranges_and_cut_connections(hub, monkeypatch):
    monkeypatch.setattr(objects, "RANGE", 400)
    hub.cuts = [3, 0]
    assert fetch("hf://datasets/team/reviews/train.csv").read_bytes() == DATA["train.csv"]
    starts = [bytes_asked.split("-")[0] for _, bytes_asked in hub.requests if bytes_asked]
    assert starts == ["bytes=0"] * 3 + ["bytes=400", "bytes=800"]


@pytest.mark.parametrize(
    ("address", "error", "message"),
    [
        ("hf://datasets/team/reviews/test.csv", FileNotFoundError, "there is no such file or folder"),
        ("hf://datasets/team/novels/train.csv", FileNotFoundError, "team/novels"),
        ("hf://datasets/team/private/train.csv", PermissionError, "hf auth login, or HF_TOKEN"),
    ],
)
def test_unreadable_addresses_raise_one_clear_error(hub, address, error, message):
    with pytest.raises(error, match=message):
        fetch(address)
