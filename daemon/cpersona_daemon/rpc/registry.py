"""What a handler is given and how it is listed; all else of a method stands in its row in ``shared.methods``.

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
from .access import Caller


@dataclass(frozen=True, slots=True)
class Call:
    """One permitted, decoded request. ``settings`` carries the request's overrides, ``key`` its idempotency key.

    ``progress`` may be called from any thread.
    """

    ctx: Context
    caller: Caller
    params: Any
    settings: Settings
    key: Key | None = None
    progress: Callable[[dict], None] | None = None

    def may_all(self, access: str) -> bool:
        """Tell whether the caller has this access to every agent, and so may see and mend the store as a whole."""
        return self.ctx.access.permits(self.caller, access, None)


@dataclass(frozen=True, slots=True)
class Handler:
    """Who answers a method: the Struct that its params decode into, and what is run with the call."""

    params: type[msgspec.Struct]
    answer: Callable[[Call], Awaitable[dict]]
