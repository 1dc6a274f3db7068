"""A bare connection for tests that must send what no client would."""

from __future__ import annotations

import socket

import msgpack

from cpersona_daemon.shared import fields

HELLO = {
    "protocol": fields.PROTOCOL,
    "version": "test",
    "capabilities": [],
    "db": "",
    "settings_digest": "",
    "token": "",
}


class Raw:
    """A bare connection that sends bytes as they are given."""

    def __init__(self, path: str):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(path)

    def send(self, value: dict | list | bytes) -> None:
        body = value if isinstance(value, bytes) else msgpack.packb(value, unicode_errors="surrogatepass")
        try:
            self.sock.sendall(len(body).to_bytes(4, "big") + body)
        except BrokenPipeError:
            pass  # refused before it had spoken; the reason is there to read

    def read(self) -> dict | None:
        head = self._exactly(4)
        return None if head is None else msgpack.unpackb(self._exactly(int.from_bytes(head, "big")))

    def greet(self) -> Raw:
        self.send(HELLO)
        assert self.read()["protocol"] == fields.PROTOCOL
        return self

    def _exactly(self, size: int) -> bytes | None:
        out = b""
        while len(out) < size:
            try:
                got = self.sock.recv(size - len(out))
            except ConnectionResetError:
                return None
            if not got:
                return None
            out += got
        return out
