"""The envelopes of the wire as msgspec Structs, decoded strictly.

What stands inside ``params`` is each method's own business and is decoded for its handler.

Contract: wire.requests.
"""

from __future__ import annotations

from typing import Any

import msgspec


class ClientHello(msgspec.Struct):
    """The first frame from a client. Unknown fields are let pass, so that a later client can be answered."""

    protocol: int
    version: str
    capabilities: list[str] = []
    db: str = ""
    settings_digest: str = ""
    token: str = ""


class DaemonHello(msgspec.Struct):
    """The first frame to a client.

    ``settings`` holds the daemon's set values, secrets masked; ``busy`` is false when the daemon serves nobody else and
    has nothing at work. A client that the access file does not know is told neither: ``settings_digest`` and
    ``settings`` are empty, ``busy`` is true.
    """

    protocol: int
    version: str
    capabilities: list[str]
    db: str
    settings_digest: str
    pid: int
    settings: dict[str, Any]
    busy: bool


class Request(msgspec.Struct, forbid_unknown_fields=True):
    """One call. ``deadline_ms`` None means the method's default; ``progress`` asks for progress frames."""

    id: int | str
    method: str
    params: dict[str, Any] = {}
    deadline_ms: int | None = None
    idempotency_key: str | None = None
    overrides: dict[str, Any] | None = None
    progress: bool = False


class RequestHead(msgspec.Struct):
    """What tells whom to answer; the rest of the request is passed over."""

    id: int | str
    method: str


class Response(msgspec.Struct, omit_defaults=True):
    """One answer: the contract's map unchanged, and beside it the error code when it failed.

    ``id`` is None only where the frame that is answered could not be read.
    """

    id: int | str | None
    response: dict[str, Any]
    code: str | None = None


class Progress(msgspec.Struct):
    """How far a long request has come; an empty map says only that the daemon is alive."""

    id: int | str
    progress: dict[str, Any]
