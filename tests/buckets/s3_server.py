"""A real S3 server on the loopback, and a relay in front of it that cuts connections."""

import contextlib
import logging
import socket
import threading


@contextlib.contextmanager
def run_s3(pytest):
    """Yield the address of an S3 server of moto, or skip the test where moto or s3fs is not installed."""
    pytest.importorskip("s3fs", reason="needs s3fs: the extra `buckets`")
    server_module = pytest.importorskip("moto.server", reason="needs moto and flask: the extra `dev`")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def client_environment(endpoint):
    """Return the environment variables with the server's address and credentials."""
    return {
        "AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
    }  # fmt: skip


class Relay:
    """Passes connections on to a server, and cuts the first `cuts` long answers after `limit` bytes."""

    def __init__(self, endpoint, cuts, limit):
        host, port = endpoint.removeprefix("http://").split(":")
        self._target, self.cuts, self._limit = (host, int(port)), cuts, limit
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                threading.Thread(target=self._pass, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self._pass, args=(server, client, True), daemon=True).start()

    def _pass(self, source, target, answers):
        sent = 0
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
                sent += len(data)
                if answers and self.cuts and sent > self._limit:
                    self.cuts -= 1
                    break
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self):
        """Accept no more connections."""
        self._listener.close()
