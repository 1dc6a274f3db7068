"""How a long piece of work says how far it is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[dict], None]  # called with {stage?, done, total}
