"""What a handler is given and how it is listed.

Contract: answer.shape.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from ..context import Context
from ..shared.settings import Settings
from ..storage.idempotency import Key


@dataclass(frozen=True, slots=True)
class Call:
    """One permitted, decoded request. ``settings`` carries the request's overrides, ``key`` its idempotency key."""

    ctx: Context
    caller: Any
    params: Any
    settings: Settings
    key: Key | None = None
    progress: Callable[[dict], None] | None = None

    def may_all(self, access: str) -> bool:
        """Tell whether the caller may do this (an access class) with every agent, and so may see and mend the store as a whole."""
        return self.ctx.access.permits(self.caller, access, None)


@dataclass(frozen=True, slots=True)
class Method:
    """A method: the Struct its params decode into, its handler, and what it answers while persistence is paused.

    ``paused`` None means that a pause does not concern it.
    """

    params: type[msgspec.Struct]
    handler: Callable[[Call], Awaitable[dict]]
    paused: dict | None = None
