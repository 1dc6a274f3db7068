"""From a request to its answer: find the method, permit, check for a pause, decode, run, shape failures.

Contract: answer.shape, wire.requests.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

import msgspec

from ..context import Context
from ..errors import CPersonaError, InvalidParams, translate
from ..shared import fields
from ..shared.settings import BadValue
from ..storage.idempotency import Key
from .registry import Call, Method

log = logging.getLogger(__name__)

# Which file of this package holds the handlers of which methods. A file is loaded when it is first asked for, or in the
# background after a start: numpy and the rooms that few calls enter are no part of the way to the first answer.
FAMILIES = {
    "memories": (
        "store",
        "update_memory",
        "delete_memory",
        "lock_memory",
        "unlock_memory",
        "archive_episode",
        "delete_episode",
        "update_profile",
        "get_profile",
        "list_memories",
        "list_episodes",
        "get_contents",
    ),
    "recall": ("recall", "recall_with_context"),
    "existence": ("exists",),
    "axes": ("list_axes",),
    "notes": ("replace_notes",),
    "associations": ("declare_associations", "list_associations", "traverse", "reconstruct"),
    "pausing": ("pause_persistence", "resume_persistence", "persistence_status"),
    "daemon": ("daemon_status", "daemon_stop"),
    "canaries": ("add_canary", "list_canaries", "run_canaries", "remove_canary"),
    "calibration": ("calibrate_threshold", "set_recall_precision", "get_recall_precision"),
    "transfer": ("export_memories", "import_memories", "merge_memories", "undo_batch", "delete_agent_data"),
    "backup": ("backup_database",),
    "health": ("check_health", "reindex"),
}

# What needs neither vectors nor embedder nor calibration: a daemon answers it before these are open.
EARLY = frozenset(
    {
        "list_memories",
        "list_episodes",
        "get_contents",
        "get_profile",
        "list_axes",
        "pause_persistence",
        "resume_persistence",
        "persistence_status",
        "daemon_stop",
    }
)


class _Methods(Mapping[str, Method]):
    """The method table by name. Looking an entry up loads its file."""

    def __init__(self) -> None:
        self._families = {name: family for family, names in FAMILIES.items() for name in names}
        self._loaded: dict[str, Method] = {}

    def __getitem__(self, name: str) -> Method:
        method = self._loaded.get(name)
        if method is None:
            self._loaded.update(import_module(f".handlers.{self._families[name]}", __package__).METHODS)
            method = self._loaded[name]
        return method

    def __contains__(self, name: object) -> bool:
        return name in self._families

    def __iter__(self) -> Iterator[str]:
        return iter(self._families)

    def __len__(self) -> int:
        return len(self._families)

    def is_loaded(self, name: str) -> bool:
        return name in self._loaded


METHODS = _Methods()

failure = fields.failure
_AGENT_KEYS = ("agent_id", "source_agent_id", "target_agent_id")


async def dispatch(
    ctx: Context, caller: Any, request: Any, progress: Callable[[dict], None] | None = None
) -> tuple[dict, str | None]:
    """Answer one request: the contract's response and an error code, None on success. Raises only CancelledError."""
    started = ctx.clock.monotonic()
    response, code = await _answer(ctx, caller, request, progress)
    ctx.opening.begin()
    ctx.status.record(request.method if request.method in METHODS else "unknown", ctx.clock.monotonic() - started, code)
    return response, code


async def _answer(
    ctx: Context, caller: Any, request: Any, progress: Callable[[dict], None] | None
) -> tuple[dict, str | None]:
    name, params = request.method, request.params
    if name not in METHODS:
        return {"error": f"there is no method {name!r}; `cpersona call --help` lists them"}, "unknown_method"
    if not _permitted(ctx, caller, name, params):
        client = caller.client_id if caller is not None else "unknown"
        return {"ok": False, "error": "permission_denied", "tool": name, "client_id": client}, "permission_denied"
    try:
        if name not in EARLY and not ctx.opening.passed:
            await ctx.opening.in_turn()
        method = METHODS[name] if METHODS.is_loaded(name) else await asyncio.to_thread(METHODS.__getitem__, name)
        if method.paused is not None and ctx.pauses.is_paused(_session_key(params)):
            return dict(method.paused), None
        call = Call(
            ctx,
            caller,
            _decode(params, method.params),
            ctx.settings.with_overrides(request.overrides),
            _key(caller, request),
            progress,
        )
        response = await method.handler(call)
    except BadValue as error:
        return failure(name, str(error)), "invalid_params"
    except CPersonaError as error:
        return failure(name, str(error)), error.code
    except Exception as error:
        ours = translate(error)
        if isinstance(ours, CPersonaError):
            return failure(name, str(ours)), ours.code
        # The text of an unexpected exception may quote stored content, so the log gets its place, not its words.
        log.error("%s failed unexpectedly: %s", name, type(error).__name__, exc_info=log.isEnabledFor(logging.DEBUG))
        ctx.status.warn(f"{name} failed unexpectedly: {type(error).__name__}")
        return {"error": f"unexpected {type(error).__name__} in {name}; `cpersona daemon logs` says more"}, "internal"
    return response, "refused" if response.get("ok") is False else None


def _permitted(ctx: Context, caller: Any, name: str, params: dict) -> bool:
    access = fields.METHODS[name][0]
    agents = [params[k] for k in _AGENT_KEYS if isinstance(params.get(k), str) and params[k]]
    return all(ctx.access.permits(caller, access, agent) for agent in (agents or [None]))


def _key(caller: Any, request: Any) -> Key | None:
    """Return the idempotency key of a request, bound to it, or None. Raises InvalidParams for one that is none."""
    text = request.idempotency_key
    if text is None:
        return None
    if not 0 < len(text) <= fields.MAX_KEY_LENGTH:
        raise InvalidParams(f"idempotency_key has {len(text)} characters; it has 1 to {fields.MAX_KEY_LENGTH}")
    return Key.of(text, caller.client_id, request.method, request.params)


def _session_key(params: dict) -> str:
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
