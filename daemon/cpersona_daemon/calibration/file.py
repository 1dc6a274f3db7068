"""What was measured about a store, in one small file beside the database.

Readers look at an immutable snapshot; a change writes the whole file anew (0600, temp + fsync + rename) and
only then replaces the snapshot, so that a failed write changes nothing. A file that is damaged or not ours is
moved aside and counts as absent.

Contract: calibration.file, files.damage.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
import threading
from collections import Counter
from collections.abc import Callable

import msgspec

from ..errors import of_file
from ..shared import files
from .measured import BETAS, FORMAT, Measured
from .previous import LARGEST_FILE, Previous


class _Envelope(msgspec.Struct, forbid_unknown_fields=True):
    checksum: str
    calibration: msgspec.Raw


class CalibrationFile:
    """The file and its current snapshot. Every method may be called from any thread; none raises for a bad file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.backup_path, self.damaged_path = path + ".bak", path + ".damaged"
        self._previous = Previous(path + ".previous")
        self.problem: str | None = None
        self._guard = threading.Lock()
        self._forgotten: Counter[str] = Counter()
        self.turn = asyncio.Lock()  # one measurement at a time
        self.exists = False
        self.tried: dict[str, int] = {}  # with how many rows an agent was last measured unasked
        self._current = self._load()

    @property
    def current(self) -> Measured:
        """The snapshot that holds now; it never changes."""
        return self._current

    # -- what the recall pipeline asks

    def threshold(self, agent_id: str, model: str = "") -> float | None:
        return self._current.threshold(agent_id, model)

    def gate(self, agent_id: str, mode: str, signal: str, model: str) -> float | None:
        return self._current.gate(agent_id, mode, signal, model)

    def beta(self, agent_id: str) -> float:
        return self._current.beta(agent_id)

    def rows(self, agent_id: str) -> int:
        return self._current.rows(agent_id)

    def precision(self, agent_id: str) -> str | None:
        """Return the name of an agent's precision, None when none was set."""
        beta = self._current.betas.get(agent_id)
        return next((name for name, value in BETAS.items() if value == beta), None)

    def stale(self, model: str, dimension: int | None, version: str) -> bool:
        """Tell whether nothing is measured, or it was measured with another model, dimension or scoring version."""
        return not self._current.thresholds or self._current.stale(model, dimension, version)

    def summary(self) -> dict:
        """Return what `daemon_status` shows: counts and identities, no agent names."""
        now = self._current
        out = {
            "measured": self.exists,
            "model": now.model,
            "dimension": now.dimension,
            "scoring_version": now.scoring_version,
            "thresholds": len(now.thresholds),
            "gates": sum(len(signals) for modes in now.gates.values() for signals in modes.values()),
            "precisions": len(now.betas),
        }
        if self.problem:
            out["problem"] = self.problem
        return out

    # -- changing it

    def forgets(self, agent_id: str) -> int:
        """Return how often an agent was forgotten; a measurement begun before that must not be kept."""
        return self._forgotten[agent_id]

    def forget(self, agent_id: str) -> None:
        """Remove everything that was measured or set for an agent. Raises StorageFailure."""
        with self._guard:
            self._forgotten[agent_id] += 1
            self._previous.forget(agent_id)
            changed = self._current.without(agent_id)
            if changed != self._current:
                self._replace(changed)

    def update(self, change: Callable[[Measured], Measured]) -> Measured:
        """Replace the snapshot by ``change(snapshot)`` and return it, once it is on disk.

        The old file is kept as a backup when model, dimension or scoring version changed. Raises StorageFailure.
        """
        with self._guard:
            changed = change(self._current)
            if self.exists and self._current.stale(changed.model, changed.dimension, changed.scoring_version):
                self._back_up()
            self._previous.keep(self._current, changed)
            self._replace(changed)
            return changed

    def earlier(self, agent_id: str) -> Measured:
        """Return what ``roll_back`` would put in force. Raises Refused."""
        with self._guard:
            return self._previous.restored(self._current, agent_id)

    def roll_back(self, agent_id: str) -> tuple[Measured, Measured]:
        """Return an agent to what was in force before its last change, and return the snapshots before and after.

        Doing it twice is doing nothing. Raises Refused where nothing earlier is known or it was of another model.
        """
        with self._guard:
            before = self._current
            changed = self._previous.restored(before, agent_id)
            self._previous.keep(before, changed)
            self._replace(changed)
            return before, changed

    def _replace(self, changed: Measured) -> None:
        body = msgspec.json.encode(changed, order="sorted")
        document = {"calibration": msgspec.Raw(body), "checksum": _checksum(body)}
        try:
            files.put(self.path, msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")
        except OSError as error:
            raise of_file(error, "nothing changed, since the calibration file cannot be written") from error
        self._current, self.exists, self.problem = changed, True, None

    def _back_up(self) -> None:
        try:
            files.put(self.backup_path, files.read(self.path, LARGEST_FILE))
        except FileNotFoundError:
            return  # somebody removed it; there is nothing to keep
        except OSError as error:
            raise of_file(error, "nothing changed, since the old calibration file cannot be backed up") from error

    # -- reading it

    def _load(self) -> Measured:
        try:
            aside = files.make_way(self.path)
            if aside is not None:
                name = os.path.basename(aside)
                self.problem = f"{files.kind(aside)} stood in the calibration file's place; it was moved to {name}"
            raw = files.read(self.path, LARGEST_FILE + 1)
        except FileNotFoundError:
            return Measured()
        except OSError as error:
            self.problem = f"the calibration file cannot be read ({error.strerror}); recall goes on without it"
            return Measured()
        try:
            measured = _decode(raw)
        except ValueError as error:
            self.problem = (
                f"the calibration file is damaged or not ours ({error});"
                f" it was moved to {os.path.basename(self.damaged_path)}"
            )
            try:
                files.make_way(self.damaged_path)
                os.replace(self.path, self.damaged_path)
            except OSError as failure:
                self.problem = (
                    f"the calibration file is damaged or not ours ({error})"
                    f" and cannot be moved aside ({failure.strerror})"
                )
            return Measured()
        self.exists = True
        return measured


def _decode(raw: bytes) -> Measured:
    """Return the content of a file. Raises ValueError with what is wrong."""
    if len(raw) > LARGEST_FILE:
        raise ValueError("it is too large")
    try:
        envelope = msgspec.json.decode(raw, type=_Envelope)
        measured = msgspec.json.decode(envelope.calibration, type=Measured)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ValueError("its shape is not that of a calibration") from None
    if measured.format != FORMAT:
        raise ValueError("its format is another one")
    if envelope.checksum != _checksum(msgspec.json.encode(measured, order="sorted")):
        raise ValueError("its checksum differs")
    numbers = [t.value for t in measured.thresholds.values()] + list(measured.betas.values())
    numbers += [
        v
        for modes in measured.gates.values()
        for signals in modes.values()
        for models in signals.values()
        for v in models.values()
    ]
    if not all(map(math.isfinite, numbers)):
        raise ValueError("it holds a number that is not finite")
    return measured


def _checksum(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
