"""What was in force before the last change of each agent's calibration, in a small file of its own.

A change of an agent keeps that agent's numbers alone, so that measuring one agent never costs another its way back.
Losing this file loses nothing but that way: one that is missing or damaged counts as empty.

Contract: calibration.rollback.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from ..errors import Refused, of_file
from ..shared import files
from .measured import Measured

LARGEST_FILE = 64 * 1024 * 1024


class _Kept(msgspec.Struct, forbid_unknown_fields=True):
    """``model``, ``dimension`` and ``scoring_version`` say what it was measured with; ``held`` has the agent's part of
    each map.
    """

    model: str
    dimension: int
    scoring_version: str
    held: dict[str, Any]


class Previous:
    """The file. Every field of a ``Measured`` that is a map is keyed by agent."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._kept: dict[str, _Kept] | None = None

    def keep(self, before: Measured, after: Measured) -> None:
        """Remember what ``before`` held for each agent that ``after`` changes. Raises StorageFailure with nothing
        changed.
        """
        maps = _maps(before)
        same = (before.model, before.dimension, before.scoring_version) == (
            after.model,
            after.dimension,
            after.scoring_version,
        )
        changed = {
            agent
            for name, held in maps.items()
            for agent in {*held, *getattr(after, name)}
            if not same or held.get(agent) != getattr(after, name).get(agent)
        }
        if changed:
            kept = dict(self._load())
            for agent in changed:
                part = {name: msgspec.to_builtins(held[agent]) for name, held in maps.items() if agent in held}
                kept[agent] = _Kept(before.model, before.dimension, before.scoring_version, part)
            self._save(kept)

    def restored(self, current: Measured, agent_id: str) -> Measured:
        """Return ``current`` with what was kept for an agent in place of what it holds. Raises Refused."""
        kept = self._load().get(agent_id)
        whose = f"agent {agent_id!r}" if agent_id else "the whole store"
        if kept is None:
            raise Refused(f"no earlier calibration of {whose} is known; nothing was changed")
        if kept.held and current.stale(kept.model, kept.dimension, kept.scoring_version):
            raise Refused(
                f"the earlier calibration of {whose} was measured with another model or scoring; nothing was changed"
            )
        changes = {}
        for name, held in _maps(current).items():
            part = {agent: value for agent, value in held.items() if agent != agent_id}
            if name in kept.held:
                part[agent_id] = kept.held[name]
            changes[name] = part
        return msgspec.convert(msgspec.to_builtins(msgspec.structs.replace(current, **changes)), Measured)

    def forget(self, agent_id: str) -> None:
        """Drop what was kept for an agent."""
        kept = dict(self._load())
        if kept.pop(agent_id, None) is not None:
            self._save(kept)

    def _load(self) -> dict[str, _Kept]:
        if self._kept is None:
            self._kept = {}
            try:
                checksum, _, body = files.read(self.path, LARGEST_FILE).partition(b"\n")
                if hashlib.sha256(body).hexdigest().encode() == checksum:
                    self._kept = msgspec.json.decode(body, type=dict[str, _Kept])
            except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
                pass  # as if nothing had been kept
        return self._kept

    def _save(self, kept: dict[str, _Kept]) -> None:
        body = msgspec.json.encode(kept, order="sorted") + b"\n"
        try:
            files.put(self.path, hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
        except OSError as error:
            raise of_file(error, "nothing changed, since the earlier calibration cannot be kept") from error
        self._kept = kept


def _maps(measured: Measured) -> dict[str, dict]:
    return {name: value for name in measured.__struct_fields__ if isinstance(value := getattr(measured, name), dict)}
