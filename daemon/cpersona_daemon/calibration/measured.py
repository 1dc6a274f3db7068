"""What is known of a store by measurement: an immutable snapshot, and what of it holds for which model.

Contract: calibration.file.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..model.identity import same_model
from ..shared.settings import Settings

FORMAT = "cpersona-calibration/1"
SCORING_VERSION = "4"
EVERY_AGENT = ""
BALANCED = "balanced"
BETAS = {"strict": 2.0, BALANCED: 1.0, "lenient": 0.5}


def orders_by_confidence(settings: Settings) -> bool:
    """Tell whether the confidence of a row orders it, which replaces every other signal."""
    return settings.confidence_enabled and settings.confidence_ordering == "legacy"


def scoring_version(settings: Settings) -> str:
    """Return what the gate compares: it changes with this program's scoring, and when confidence starts or stops to
    order.
    """
    return f"{SCORING_VERSION}-{'confidence' if orders_by_confidence(settings) else 'fusion'}"


class Threshold(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A measured similarity threshold and how it was asked for, so that it can be measured again the same way."""

    value: float
    method: str
    sample_size: int
    percentile: float
    z_factor: float


class Measured(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One state of the file: an immutable snapshot that also answers the recall pipeline.

    ``thresholds`` and ``betas`` by agent (thresholds: '' for every agent without one of its own);
    ``gates`` by agent, mode, signal and model; ``counts``: the memories that an agent had when it was measured.
    """

    format: str = FORMAT
    model: str = ""
    dimension: int = 0
    scoring_version: str = ""
    thresholds: dict[str, Threshold] = {}
    gates: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    betas: dict[str, float] = {}
    counts: dict[str, int] = {}

    def threshold(self, agent_id: str, model: str = "") -> float | None:
        """Return the similarity threshold measured for an agent, else for all, else None. None of another model."""
        found = self.thresholds.get(agent_id) or self.thresholds.get(EVERY_AGENT)
        return found.value if found is not None and same_model(self.model, model) else None

    def gate(self, agent_id: str, mode: str, signal: str, model: str) -> float | None:
        """Return the gate of one signal on its own scale, or None where none was measured with this model."""
        by_model = self.gates.get(agent_id, {}).get(mode, {}).get(signal, {})
        if model in by_model:
            return by_model[model]
        fitting = [value for known, value in by_model.items() if same_model(known, model)]
        return fitting[0] if len(fitting) == 1 else None

    def beta(self, agent_id: str) -> float:
        """Return how much the agent's precision weighs noise kept out against matches let in; 1.0 unless set."""
        return self.betas.get(agent_id, BETAS[BALANCED])

    def rows(self, agent_id: str) -> int:
        """Return how many memories an agent had when it was measured, 0 where that is not known."""
        return self.counts.get(agent_id, 0)

    def for_model(self, model: str, dimension: int, version: str) -> Measured:
        """Return what of this still holds for a model: everything, or the betas alone when model, dimension or scoring
        changed.
        """
        if self.stale(model, dimension, version):
            return Measured(model=model, dimension=dimension, scoring_version=version, betas=self.betas)
        return msgspec.structs.replace(
            self, model=model or self.model, dimension=dimension or self.dimension, scoring_version=version
        )

    def stale(self, model: str, dimension: int | None, version: str) -> bool:
        """Tell whether this was measured with another model, dimension or scoring. What is unknown ('' or None) is no
        difference.
        """
        if self.scoring_version and self.scoring_version != version:
            return True
        return not same_model(self.model, model) or bool(dimension and self.dimension and dimension != self.dimension)

    def without(self, agent_id: str) -> Measured:
        """Return this without anything about an agent."""
        drop = lambda held: {k: v for k, v in held.items() if k != agent_id}  # noqa: E731
        return msgspec.structs.replace(
            self,
            thresholds=drop(self.thresholds),
            gates=drop(self.gates),
            betas=drop(self.betas),
            counts=drop(self.counts),
        )

    def with_threshold(self, agent_id: str, threshold: Threshold, count: int = 0) -> Measured:
        """Return this with an agent's threshold, measured while it had ``count`` memories (0: not known)."""
        counts = {**self.counts, agent_id: count} if count else self.counts
        return msgspec.structs.replace(self, thresholds={**self.thresholds, agent_id: threshold}, counts=counts)

    def outgrown(self, agent_id: str, count: int) -> bool:
        """Tell whether an agent has twice or half the memories that it had when it was measured. Unknown is no."""
        had = self.counts.get(agent_id)
        return had is not None and not had / 2 < count < had * 2

    def with_gates(self, agent_id: str, mode: str, signals: Iterable[str], found: dict[str, float]) -> Measured:
        """Return this with the gates ``found`` for an agent and mode; a signal of ``signals`` that has none any more
        loses its old one.
        """
        held = {s: v for s, v in self.gates.get(agent_id, {}).get(mode, {}).items() if s not in signals}
        held.update({signal: {self.model: value} for signal, value in found.items()})
        return msgspec.structs.replace(
            self, gates={**self.gates, agent_id: {**self.gates.get(agent_id, {}), mode: held}}
        )

    def with_beta(self, agent_id: str, beta: float | None) -> Measured:
        """Return this with an agent's beta set, or cleared by None."""
        betas = {k: v for k, v in self.betas.items() if k != agent_id}
        if beta is not None:
            betas[agent_id] = beta
        return msgspec.structs.replace(self, betas=betas)

    def without_gates(self, agent_id: str) -> Measured:
        return msgspec.structs.replace(self, gates={k: v for k, v in self.gates.items() if k != agent_id})
