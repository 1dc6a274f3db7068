"""From a request to its answer: find the method, permit, check for a pause, decode, run, shape failures.

Contract: answer.shape, wire.requests, progress.committed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module

import msgspec

from ..context import Context
from ..errors import CPersonaError, InvalidParams, translate
from ..shared import fields, methods
from ..shared.methods import METHODS, UNKNOWN, Method
from ..shared.settings import BadValue
from ..storage.idempotency import Key
from .access import Caller
from .envelopes import Request
from .registry import Call, Handler

log = logging.getLogger(__name__)

_AGENT_KEYS = ("agent_id", "source_agent_id", "target_agent_id")


class _Handlers(Mapping[str, Handler]):
    """The handlers by method. Looking one up loads its family's file: when it is first asked for, or in the background.

    numpy and the rooms that few calls enter are no part of the way to the first answer.
    """

    def __init__(self) -> None:
        self._loaded: dict[str, Handler] = {}

    def __getitem__(self, name: str) -> Handler:
        handler = self._loaded.get(name)
        if handler is None:
            self._loaded.update(import_module(f".handlers.{METHODS[name].family}", __package__).HANDLERS)
            handler = self._loaded[name]
        return handler

    def __contains__(self, name: object) -> bool:
        return name in METHODS

    def __iter__(self) -> Iterator[str]:
        return iter(METHODS)

    def __len__(self) -> int:
        return len(METHODS)

    def is_loaded(self, name: str) -> bool:
        return name in self._loaded


HANDLERS = _Handlers()


async def dispatch(
    ctx: Context, caller: Caller | None, request: Request, progress: Callable[[dict], None] | None = None
) -> tuple[dict, str | None]:
    """Answer one request: the contract's response and an error code, None on success. Raises only CancelledError."""
    started, method = ctx.clock.monotonic(), methods.of(request.method)
    response, code = await _answer(ctx, caller, request, method, progress)
    ctx.opening.begin()
    ctx.status.record(method.name, ctx.clock.monotonic() - started, code)
    return response, code


async def _answer(
    ctx: Context, caller: Caller | None, request: Request, method: Method, progress: Callable[[dict], None] | None
) -> tuple[dict, str | None]:
    if method is UNKNOWN:
        return method.failed(
            f"there is no method {request.method!r}; `cpersona call --help` lists them"
        ), "unknown_method"
    if caller is None or not _permitted(ctx, caller, method, request.params):
        client = caller.client_id if caller is not None else "unknown"
        return {
            "ok": False,
            "error": "permission_denied",
            "tool": method.name,
            "client_id": client,
        }, "permission_denied"
    try:
        response = await _run(ctx, caller, request, method, progress)
    except Exception as error:
        return _failure(ctx, method, error)
    return response, "refused" if response.get("ok") is False else None


async def _run(
    ctx: Context, caller: Caller, request: Request, method: Method, progress: Callable[[dict], None] | None
) -> dict:
    """Return what the method's handler answers once the parts that it needs are open, or what a pause has it answer."""
    name = method.name
    if not (method.early or ctx.opening.passed):
        await ctx.opening.in_turn()
    handler = HANDLERS[name] if HANDLERS.is_loaded(name) else await asyncio.to_thread(HANDLERS.__getitem__, name)
    if method.paused is not None and ctx.pauses.is_paused(session_key(request.params)):
        return dict(method.paused)
    params = _decode(request.params, handler.params)
    settings, key = ctx.settings.with_overrides(request.overrides), _key(caller, request)
    if key is None or method.limited:
        return await handler.answer(Call(ctx, caller, params, settings, key, progress))
    with ctx.runs.followed(caller.client_id, key.text, progress) as note:
        return await handler.answer(Call(ctx, caller, params, settings, key, note))


def _failure(ctx: Context, method: Method, error: Exception) -> tuple[dict, str]:
    """Return the answer and the code of a request that ended in an exception."""
    if isinstance(error, BadValue):
        return method.failed(str(error)), "invalid_params"
    ours, name = translate(error), method.name
    if isinstance(ours, CPersonaError):
        return method.failed(str(ours)), ours.code
    # The text of an unexpected exception may quote stored content, so the log gets its place, not its words.
    log.error("%s failed unexpectedly: %s", name, type(error).__name__, exc_info=log.isEnabledFor(logging.DEBUG))
    ctx.status.warn(f"{name} failed unexpectedly: {type(error).__name__}")
    return {"error": f"unexpected {type(error).__name__} in {name}; `cpersona daemon logs` says more"}, "internal"


def _permitted(ctx: Context, caller: Caller, method: Method, params: dict) -> bool:
    agents = [params[k] for k in _AGENT_KEYS if isinstance(params.get(k), str) and params[k]]
    return all(ctx.access.permits(caller, method.access, agent) for agent in (agents or [None]))


def _key(caller: Caller, request: Request) -> Key | None:
    """Return the idempotency key of a request, bound to it, or None. Raises InvalidParams for one that is none."""
    text = request.idempotency_key
    if text is None:
        return None
    if not 0 < len(text) <= fields.MAX_KEY_LENGTH:
        raise InvalidParams(f"idempotency_key has {len(text)} characters; it has 1 to {fields.MAX_KEY_LENGTH}")
    return Key.of(text, caller.client_id, request.method, request.params)


def session_key(params: dict) -> str:
    """Return whose pause a request heeds; '' is everyone without a key."""
    key = params.get("session_key")
    return key if isinstance(key, str) else ""


def _decode(params: dict, struct: type[msgspec.Struct]) -> msgspec.Struct:
    try:
        return msgspec.convert(params, struct, strict=True)
    except msgspec.ValidationError as error:
        raise InvalidParams(_plain(str(error))) from None


def _plain(text: str) -> str:
    """Turn msgspec's wording into ours: what is wrong, and with which parameter."""
    message, _, place = text.partition(" - at `$")
    place = place.rstrip("`").lstrip(".")
    if message.startswith("Object contains unknown field"):
        return f"unknown parameter {message.split('`')[1]!r}" + (f" in {place}" if place else "")
    if message.startswith("Object missing required field"):
        return f"parameter {message.split('`')[1]!r} is missing" + (f" in {place}" if place else "")
    return f"parameter {place!r}: {message}" if place else message
