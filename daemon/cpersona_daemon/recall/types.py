"""The values that travel through a recall. Text enters only at the end, when the survivors are read.

Contract: recall.stages, gate.signal.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ..embedding.values import Advice
from ..model.kinds import PROFILE, Rid, ref_of
from ..model.scope import Scope
from ..model.signals import PRECEDENCE, Signal
from ..storage.as_then import Shown
from ..text.passages import Span
from ..text.question import Question

if TYPE_CHECKING:
    import numpy as np  # a start answers what needs no vector before this is loaded

BLEND, CASCADE = "blend", "cascade"  # the modes that are told from the others
NEAR, PART, FAR, PASSAGE, EPISODE_FTS, MEMORY_FTS, KEYWORD, RECENT = (
    "vector_near",
    "vector_part",
    "vector_far",
    "vector_passage",
    "episode_fts",
    "memory_fts",
    "memory_keyword",
    "recent",
)
VECTOR_CHANNELS = (NEAR, PART, FAR, PASSAGE)


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked of the library: no clamping, no preview, the caller decides.

    ``also_lexical`` holds other names of what the query mentions; only the full-text channels see them.
    ``absolute`` shows the real cosine of rows found by words alone; nothing else moves. ``fold``: rows that say nearly
    the same may stand as one. ``beta``: a precision for this question in place of the agent's.
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
    absolute: bool = False
    fold: bool = True
    beta: float | None = None

    @property
    def accounted(self) -> bool:
        """Whether the answer carries an account."""
        return self.trace or self.why_not is not None


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """The question as a vector (float32, unit length), and the floor below which a row is no candidate.

    ``part`` is the question with nothing but its multilingual part, of unit length; None where it has none or the mode
    asks for none.
    """

    vector: np.ndarray
    model: str
    floor: float
    part: np.ndarray | None = None


class Scan(NamedTuple):
    """A vector channel with the scan positions [start, stop) that it looks at and how many rows it hands over."""

    channel: str
    start: int
    stop: int
    cut: int


@dataclass(frozen=True, slots=True)
class Ranked:
    """One ranked list that a channel hands to the fusion, best first. Rank is the position, 0-based;
    ``scores`` are cosines or bm25, None for a channel that gives none; ``excluded`` rows keep their rank under rrf.
    """

    channel: str
    rids: tuple[Rid, ...]
    scores: tuple[float, ...] | None
    excluded: frozenset[Rid] = frozenset()


class Meant(NamedTuple):
    """What the meaning of a row, or of a ``passage`` of it, has of the question's: the cosine, and how far it stands
    above its background.
    """

    cosine: float | None
    similarity: float | None
    passage: Span | None = None


class Read(NamedTuple):
    """What was read of a row: its text, the instant it tells of, and a bit for each term of the question it holds."""

    text: str
    instant: float | None
    terms: int


@dataclass(frozen=True, slots=True)
class Scored:
    """The parts of a blend's score; they add up to it unless that would be below 0. ``cosine`` is None without a
    vector; ``reranked`` is what a reranker added or took.
    """

    cosine: float | None
    similarity: float
    coverage: float
    words: float
    lent: float = 0.0
    identified: bool = False
    reranked: float = 0.0

    @property
    def own(self) -> float:
        return max(0.0, self.similarity + self.words)

    @property
    def lends(self) -> float:
        """What neighbours get a share of. An identifier names its row and none beside it."""
        return max(0.0, self.similarity) if self.identified else self.own

    @property
    def score(self) -> float:
        return max(0.0, self.own + self.lent + self.reranked)


@dataclass(frozen=True, slots=True)
class Moved:
    """A row stands before ``over``, which says nearly the same, because the question is about ``asked``; it passed
    ``places`` rows.
    """

    asked: str
    over: Rid
    places: int

    def told(self) -> dict[str, Any]:
        """Return it as answers and traces carry it."""
        return {"asked": self.asked, "over": ref_of(self.over), "places": self.places}


@dataclass(frozen=True, slots=True)
class Lifted:
    """A row tells of the time that the question names as ``asked``, and passed so many rows of other times."""

    asked: str
    places: int

    def told(self) -> dict[str, Any]:
        """Return it as answers and traces carry it."""
        return {"asked": self.asked, "places": self.places}


@dataclass(frozen=True, slots=True)
class Candidate:
    """One row on its way through fusion, penalty, gate, autocut and prior. Absent values are None.

    The first five are its value of each signal; ``confidence`` only where it orders the rows. ``coverage`` and
    ``scored`` belong to a blend: the share of the question that the row holds, and the parts of the score.
    ``identified``: it holds an identifier of the question that few rows hold. ``version``: it was lifted over another
    row that says nearly the same, ``lifted``: over rows of another time than the question names. ``quoted``: it holds
    everything that the question quotes. ``rerank``: what a reranker said of it, 0 to 1. ``folded`` rows say nearly the
    same as this one, which stands for them. ``passage`` is the one of a long row that is nearest to the question;
    ``reserved``: the row was seated for it, beyond the limit. ``has_vector`` false: no vector list could have held the
    row. ``shown_only``: the cosine was computed for display after everything was decided, so it is no signal.
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
    lifted: Lifted | None = None
    quoted: bool = False
    rerank: float | None = None
    folded: tuple[Rid, ...] = ()
    passage: Span | None = None
    reserved: bool = False

    @property
    def is_profile(self) -> bool:
        return self.rid == PROFILE

    def with_(self, **changes: Any) -> Candidate:
        return replace(self, **changes)

    def value(self, signal: Signal) -> float | None:
        """Return the row's value of a signal."""
        found: float | None = getattr(self, signal)
        return found

    def first(self, signals: tuple[Signal, ...]) -> float | None:
        """Return the row's value of the first of some signals that it has."""
        return next((value for signal in signals if (value := self.value(signal)) is not None), None)

    def signal(self) -> tuple[Signal, float] | None:
        """Return the signal that the gate compares and its value; None for a row that no branch scored."""
        for signal in PRECEDENCE:
            value: float | None = getattr(self, signal)
            if value is not None and not (signal is Signal.COSINE and self.shown_only):
                return signal, value
        return None


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the result with all its data. ``text`` is the displayed text, whole, ``passage`` where in it the
    passage stands that is nearest to the question. ``changed_since``: it is shown as it is today where it was to be
    shown as it was.
    """

    candidate: Candidate
    ref: str | None
    text: str
    source: Any
    timestamp: str
    msg_id: str = ""
    match_reason: dict[str, Any] | None = None
    confidence: dict[str, Any] | None = None
    passage: Span | None = None
    record: Any = None
    changed_since: bool = False


@dataclass(slots=True)
class Result:
    """What a recall found: ``rows`` best first. The handlers reverse, preview and cap.

    ``question`` is what was asked, as it was read. ``absent`` are the identifiers of it that no row holds. ``advice``
    is what the answer must say about vectors that were missing or a question that was none, ``failure`` why the
    question had no vector: None where it had one, needed none or no embedder is configured. ``size`` is how many rows
    are in scope. ``left_out`` names rows that belong here and cannot be given out, ``not_held`` quoted words, all that
    was asked for, that no row holds. ``shown`` is how many rows are known as they were, of an answer as of an instant.
    """

    question: Question
    rows: list[Row] = field(default_factory=list)
    absent: tuple[str, ...] = ()
    gate_fallback: bool = False
    advice: list[Advice] = field(default_factory=list)
    failure: str | None = None
    left_out: list[dict[str, Any]] = field(default_factory=list)
    considered: int = 0
    gated: int = 0
    size: int = 0
    best_missed: dict[str, Any] | None = None
    not_held: tuple[str, ...] = ()
    trace: dict[str, Any] | None = None
    shown: Shown | None = None

    @property
    def wordless(self) -> bool:
        return self.question.wordless
