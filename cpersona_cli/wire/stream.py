"""Frames through one connected socket: never two sides that wait for each other, never a wait without an end.

Contract: wire.frames
"""

import time

from cpersona_daemon.shared import fields
from cpersona_daemon.shared.peer import peer_pid

from ..fast.codec import packb, unpackb
from .dial import NO_SIGNAL, CallFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Socket
    from collections.abc import Callable

    Wait = Callable[[int, float], bool]  # (descriptor, seconds) -> whether it can be read

_RECEIVE_BYTES = 1 << 18


class Gone(Exception):
    """The daemon at the other end went away."""


def packed(envelope: dict) -> bytes:
    """Return an envelope as a frame.

    A lone surrogate travels as it is: that text is not accepted is the daemon's to say, in the method's own shape.
    """
    body = packb(envelope)
    return len(body).to_bytes(fields.LENGTH_BYTES, "big") + body


class Stream:
    """A connected socket and what has arrived of the next frame. ``place`` is the path that failures name."""

    def __init__(self, sock: "Socket", place: str) -> None:
        self._sock, self._place, self._buffer = sock, place, bytearray()

    def close(self) -> None:
        """Close the socket; what has arrived is dropped."""
        self._sock.close()

    def write(self, frame: bytes, seconds: float) -> None:
        """Send a frame, taking in answers meanwhile, so that two full buffers never wait for each other.

        Raises Gone, and CallFailed("timed_out") when nobody reads.
        """
        rest, deadline = memoryview(frame), time.monotonic() + seconds
        self._sock.settimeout(0)
        while rest:
            try:
                rest = rest[self._sock.send(rest, NO_SIGNAL) :]
            except BlockingIOError:
                self._make_room(deadline)
            except OSError:
                # It may have answered, or said why, before it closed; that is still to be read.
                if not self._take_in() and not self._buffer:
                    raise Gone from None
                return

    def _make_room(self, deadline: float) -> None:
        import select

        poller = select.poll()
        poller.register(self._sock.fileno(), select.POLLIN | select.POLLOUT)
        ready = poller.poll(max(deadline - time.monotonic(), 0) * 1000)
        if not ready:
            raise CallFailed("timed_out", f"{self._who()} does not read what it is sent")
        if ready[0][1] & select.POLLIN and not self._take_in():
            raise Gone

    def _take_in(self) -> bool:
        """Move what has arrived into the buffer; false at the end of the stream."""
        try:
            got = self._sock.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._buffer += got
        return bool(got)

    def read(self, deadline: float, wait: "Wait | None" = None) -> dict:
        """Return the next frame as a map.

        Raises Gone, CallFailed("timed_out") at the deadline, and what ``wait`` raises, which loses nothing.
        """
        while True:
            body = self._whole_frame()
            if body is not None:
                try:
                    frame = unpackb(body)
                except Exception:
                    frame = None
                if not isinstance(frame, dict):
                    raise self._foreign()
                return frame
            self._buffer += self._received(deadline, wait)

    def _whole_frame(self) -> bytes | None:
        """Take the next frame out of the buffer, None while it is not whole."""
        buffer, size = self._buffer, fields.LENGTH_BYTES
        if len(buffer) < size:
            return None
        length = int.from_bytes(buffer[:size], "big")
        if length > fields.MAX_FRAME_BYTES:
            raise self._foreign()
        if len(buffer) < size + length:
            return None
        body = bytes(buffer[size : size + length])
        del buffer[: size + length]
        return body

    def _received(self, deadline: float, wait: "Wait | None") -> bytes:
        """Return what arrives next."""
        left = deadline - time.monotonic()
        try:
            if left <= 0 or (wait is not None and not wait(self._sock.fileno(), left)):
                raise TimeoutError
            self._sock.settimeout(left)
            got = self._sock.recv(_RECEIVE_BYTES)
        except TimeoutError:
            raise CallFailed("timed_out", f"{self._who()} does not answer") from None
        except OSError:
            raise Gone from None
        if not got:
            raise Gone
        return got

    def _foreign(self) -> CallFailed:
        return CallFailed("protocol", f"what answers at {self._place} does not speak our protocol")

    def _who(self) -> str:
        try:
            return f"the daemon (pid {peer_pid(self._sock)})"
        except OSError:
            return "the daemon"
