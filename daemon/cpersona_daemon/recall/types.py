"""The values that travel through a recall. Text enters only at the end, when the survivors are read.

Contract: contracts.md §3 to §7.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..model.kinds import PROFILE, Rid
from ..model.scope import Scope
from ..text.terms import parse_query

if TYPE_CHECKING:
    from ..embedding.values import Advice
    from .scoring.blend import Scored
    from .stages.versions import Moved


NEAR, PART, FAR, EPISODE_FTS, MEMORY_FTS, KEYWORD, RECENT = (
    "vector_near",
    "vector_part",
    "vector_far",
    "episode_fts",
    "memory_fts",
    "memory_keyword",
    "recent",
)


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked of the library: no clamping, no preview, the caller decides.

    ``also_lexical`` holds other names of what the query mentions; only the full-text channels see them.
    ``absolute`` shows the real cosine of rows found by words alone; nothing else moves.
    """

    text: str
    scope: Scope
    limit: int
    deep: bool = False
    exclude: tuple[str, ...] = ()
    also_lexical: tuple[str, ...] = ()
    wait_seconds: float = 5.0
    trace: bool = False
    why_not: Rid | None = None
    count_recalls: bool = True
    absolute: bool = False

    @property
    def blank(self) -> bool:
        return not self.text.strip()

    @property
    def wordless(self) -> bool:
        """Whether something is asked and no word, number or emoji is in it: nothing to look for but the very characters."""
        return not self.blank and not parse_query(self.text).terms


@dataclass(frozen=True, slots=True)
class Ranked:
    """One ranked list that a channel hands to the fusion, best first. Rank is the position, 0-based;
    ``scores`` are cosines or bm25, None for a channel that gives none; ``excluded`` rows keep their rank under rrf.
    """

    channel: str
    rids: tuple[Rid, ...]
    scores: tuple[float, ...] | None
    excluded: frozenset[Rid] = frozenset()


@dataclass(frozen=True, slots=True)
class Candidate:
    """One row on its way through fusion, penalty, gate, autocut and prior. Absent values are None.

    ``coverage`` and ``scored`` belong to a blend: the share of the question that the row holds, and the parts of the score.
    ``identified``: it holds an identifier of the question that few rows hold. ``version``: it was lifted over another
    row that says nearly the same.
    ``has_vector`` false: no vector list could have held the row. ``shown_only``: the cosine was computed for
    display after everything was decided, so it is no signal.
    """

    rid: Rid
    cosine: float | None = None
    rrf: float | None = None
    rsf: float | None = None
    blend: float | None = None
    confidence: float | None = None
    has_vector: bool = True
    lexical: bool = False
    shown_only: bool = False
    prior: float | None = None
    coverage: float | None = None
    identified: bool = False
    scored: Scored | None = None
    version: Moved | None = None

    @property
    def is_profile(self) -> bool:
        return self.rid == PROFILE

    def with_(self, **changes: Any) -> Candidate:
        return replace(self, **changes)

    def signal(self, legacy: bool) -> tuple[str, float] | None:
        """Return the name and value that the gate compares: confidence (legacy only), blend, rsf, cosine, rrf; None for an unscored row."""
        if legacy and self.confidence is not None:
            return "confidence", self.confidence
        for name in ("blend", "rsf", "cosine", "rrf"):
            value = getattr(self, name)
            if value is not None and not (name == "cosine" and self.shown_only):
                return name, value
        return None


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the result with all its data. ``text`` is the displayed text, whole."""

    candidate: Candidate
    ref: str | None
    text: str
    source: Any
    timestamp: str
    msg_id: str = ""
    match_reason: dict | None = None
    confidence: dict | None = None
    record: Any = None


@dataclass(slots=True)
class Result:
    """What a recall found: ``rows`` best first. The boundary reverses, previews and caps.

    ``advice`` is what the answer must say about vectors that were missing or a question that was none, ``failure`` why
    the question had no vector: None where it had one, needed none or no embedder is configured. ``left_out`` names rows that belong here and cannot be given out.
    """

    rows: list[Row] = field(default_factory=list)
    gate_fallback: bool = False
    advice: list[Advice] = field(default_factory=list)
    failure: str | None = None
    left_out: list[dict] = field(default_factory=list)
    wordless: bool = False
    considered: int = 0
    gated: int = 0
    best_missed: dict | None = None
    trace: dict | None = None
