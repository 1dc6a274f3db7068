"""Draining the spool: queued writes are carried out in the order of their names, each exactly once.

A client that reaches no daemon leaves a file (``cpersona_cli/wire/spool.py`` writes it). Here it is read, put
through the same dispatch as a request, and removed once that is durable. Its idempotency key makes a
second try after a kill harmless: the kept answer is found and the file goes.

Contract: spool.queue.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import re
import stat
import time
from typing import Any

import msgspec

from ..context import Context
from ..rpc.dispatch import dispatch, session_key
from ..rpc.envelopes import Request
from ..shared import fields, files, methods
from .frames import unfit

log = logging.getLogger("cpersona.spool")

MAX_BYTES = fields.MAX_FRAME_BYTES
# What two looks may miss: a kernel stamps a directory's change with a clock that moves every few milliseconds.
STAMP_SECONDS = 0.1
RETRY_SECONDS = 5.0
READ_PATIENCE_SECONDS = 1.0
_TOKEN = re.compile(rb'("token"\s*:\s*")(?:[^"\\]|\\.)*')  # in what is no queued write and may have been meant as one
# Failures that are not the request's own fault: it stays, and so does everything behind it, until they pass.
WAITED_OUT = frozenset(code for code, (_, again, _) in fields.ERRORS.items() if again) | {"corrupt"}


class Unfit(ValueError):
    """A file that is no queued write; the message says why. ``item`` is the map in it, where it holds one."""

    def __init__(self, why: str, item: dict | None = None) -> None:
        super().__init__(why)
        self.item = item


class Spool:
    """The spool of one database.

    ``look`` is cheap and may be called at any time; ``run`` is the work, one task for life.
    """

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._directory = ctx.places.spool
        self._stamp: int | None = None  # the directory's mtime when it was last seen empty
        self._wake = asyncio.Event()
        self._at_rest = asyncio.Event()
        self._at_rest.set()
        self._not_before = 0.0
        self.drained = 0
        self.problem: str | None = None

    # -- what others ask

    @property
    def busy(self) -> bool:
        """Whether queued writes wait or are being carried out; the daemon stays for them."""
        return not self._at_rest.is_set() or self.look()

    def look(self) -> bool:
        """Have the directory drained if anything may be in it, and tell whether that is so.

        Costs one stat when nothing changed.
        """
        try:
            stamp = os.stat(self._directory).st_mtime_ns
        except OSError:
            return False
        if stamp == self._stamp:
            return False
        if not self._names():
            self._seen_empty(stamp)
            return False
        self._at_rest.clear()
        self._wake.set()
        return True

    async def settled(self) -> None:
        """Wait a moment for what was queued before, so that who reads finds what was promised to be kept."""
        if (self.look() or not self._at_rest.is_set()) and self.problem is None:
            try:
                # Writes need every part of the database; a start is no reason to be impatient.
                await self._ctx.opening.wanted()
            except Exception:
                return  # a part cannot be opened, so nothing can be drained either; the opening has said why
            try:
                async with asyncio.timeout(READ_PATIENCE_SECONDS):
                    await self._at_rest.wait()
            except TimeoutError:
                pass

    def status(self) -> dict:
        """Return how many writes wait, were refused, and were carried out by this process, and what it waits for."""
        failed = len(_json_names(os.path.join(self._directory, "failed")))
        shown: dict[str, Any] = {"waiting": len(self._names()), "failed": failed, "drained": self.drained}
        if self.problem is not None:
            shown["problem"] = self.problem
        return shown

    # -- the work

    async def run(self) -> None:
        """Drain whenever a look found something; never returns."""
        self.look()
        while True:
            await self._wake.wait()
            self._wake.clear()
            pause = self._not_before - self._ctx.clock.monotonic()
            if pause > 0:
                await asyncio.sleep(pause)
            try:
                self.problem = await self._drain()
            except OSError as error:
                self.problem = f"{self._directory} cannot be worked on: {error.strerror}"
            except Exception as error:  # the next try may do better, and nothing is lost meanwhile
                log.error(
                    "draining failed unexpectedly: %s", type(error).__name__, exc_info=log.isEnabledFor(logging.DEBUG)
                )
                self.problem = f"unexpected {type(error).__name__}"
            if self.problem is None:
                self._at_rest.set()
                self.look()
            else:
                log.warning("the spool waits: %s", self.problem)
                self._not_before = self._ctx.clock.monotonic() + RETRY_SECONDS
                self._wake.set()

    async def _drain(self) -> str | None:
        """Carry out what is there, oldest first; return what it has to wait for, None when nothing is left."""
        try:
            problem = _untrusted(self._directory)
        except FileNotFoundError:
            return None
        if problem is not None:
            return problem
        while names := self._names():
            done = []
            try:
                for name in names:
                    if (problem := await self._carry_out(name)) is not None:
                        return problem
                    done.append(name)
            finally:
                if done:  # no power failure brings a finished file back
                    await asyncio.to_thread(files.sync, self._directory)
        await asyncio.to_thread(files.tidy, self._directory)
        self._stamp = None
        return None

    async def _carry_out(self, name: str) -> str | None:
        """Do what one file asks for and remove it, or set it aside with the reason.

        Return what to wait for instead, None where it is done with.
        """
        path = os.path.join(self._directory, name)
        try:
            raw = await asyncio.to_thread(_read, path)
        except FileNotFoundError:
            return None  # taken away by its owner
        except Unfit as error:
            await asyncio.to_thread(self._set_aside, name, None, "invalid_params", str(error))
            return None
        try:
            item, request = _request(raw, name)
        except Unfit as error:
            await asyncio.to_thread(
                self._set_aside, name, error.item or {"raw": _shown(raw)}, "invalid_params", str(error)
            )
            return None
        ctx = self._ctx
        if ctx.pauses.is_paused(session_key(request.params)):
            return "persistence is paused"
        token = item.get("token")
        caller = ctx.access.identify(token if isinstance(token, str) else "", os.getuid())
        response, code = await dispatch(ctx, caller, request)
        if code in WAITED_OUT:
            return f"{request.method} answered {code}"
        if code is not None:
            await asyncio.to_thread(self._set_aside, name, item, code, _reason(response))
            return None
        await asyncio.to_thread(_unlink, path)
        self.drained += 1
        return None

    def _set_aside(self, name: str, item: dict | None, code: str, reason: str) -> None:
        """Move a refused file to failed/, its reason inside; put back into the spool it is tried again.

        A token does not stay.
        """
        log.warning("a queued write was refused (%s) and stands in %s/failed/%s", code, self._directory, name)
        failed = os.path.join(self._directory, "failed")
        _make_directory(failed)
        source, target = os.path.join(self._directory, name), os.path.join(failed, name)
        kept = {key: value for key, value in (item or {}).items() if key != "token"} | {"code": code, "reason": reason}
        if item is None:
            # Not a file that can be read as one: it is moved as it is, and the reason stands beside it.
            files.make_way(target)
            os.rename(source, target)
            source, target = "", target + ".reason"
        files.put(target, json.dumps(kept).encode())
        if source:
            _unlink(source)

    def _names(self) -> list[str]:
        return _json_names(self._directory)

    def _seen_empty(self, stamp: int) -> None:
        self._stamp = stamp if time.time() - stamp / 1e9 > STAMP_SECONDS else None


def _json_names(directory: str) -> list[str]:
    """Return the names of queued files, in their order."""
    try:
        with os.scandir(directory) as entries:
            return sorted(
                (e.name for e in entries if e.name.endswith(".json") and not e.name.startswith(".")), key=_order
            )
    except OSError:
        return []


def _order(name: str) -> tuple:
    """Return what a name is sorted by: `<time_ns>-<pid>-<seq>` as numbers, any other name behind them."""
    try:
        return (0, *map(int, name.removesuffix(".json").split("-")))
    except ValueError:
        return (1, name)


def _untrusted(directory: str) -> str | None:
    """Return why files of a directory are not carried out; None where it is ours and nobody else writes there."""
    info = os.lstat(directory)
    if not stat.S_ISDIR(info.st_mode):
        return f"{directory} is not a directory"
    if info.st_uid != os.getuid() or info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others can write to {directory}; run chmod 700 on it"
    return None


def _read(path: str) -> bytes:
    try:
        descriptor = files.opened(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Unfit(f"it cannot be read: {error.strerror}") from None
    with os.fdopen(descriptor, "rb") as handle:
        info = os.fstat(handle.fileno())
        if info.st_uid != os.getuid():
            raise Unfit("it is not a file of this user")
        if info.st_size > MAX_BYTES:
            raise Unfit(f"it is larger than {MAX_BYTES} bytes")
        return handle.read()


def _request(raw: bytes, name: str) -> tuple[dict, Request]:
    """Return a file's map and the request it stands for. Raises Unfit."""
    try:
        item = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise Unfit("it is not valid JSON") from None
    if not isinstance(item, dict):
        raise Unfit("it is not a JSON object")
    method, params, key = item.get("method"), item.get("params"), item.get("idempotency_key")
    if not isinstance(method, str) or not methods.of(method).queueable:
        raise Unfit(f"{method!r} is not a method that can be queued", item)
    if not isinstance(params, dict):
        raise Unfit("its params are not an object", item)
    if (problem := unfit(params)) is not None:
        raise Unfit(problem, item)
    # The name is unique to its file, so a file without a key is carried out once as well.
    return item, Request(
        id=0, method=method, params=params, idempotency_key=key if isinstance(key, str) and key else f"spool:{name}"
    )


def _reason(response: dict) -> str:
    why = response.get("reason") or response.get("error") or "refused"
    return f"permission denied for client {response.get('client_id')}" if why == "permission_denied" else str(why)


def _shown(raw: bytes) -> str:
    raw = _TOKEN.sub(rb"\1***", raw)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(raw).decode("ascii")


def _make_directory(path: str) -> None:
    """Make a directory, 0700, where none is; what stands there instead gets another name."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            files.set_aside(path)
            os.mkdir(path, 0o700)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
