"""One recall under way: what it works with, what one stage leaves to another, and what each noted for the account.

Contract: recall.stages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import apsw

from ..embedding.values import Declared
from ..model.kinds import Rid
from ..model.signals import Signal
from ..shared.settings import Settings
from ..text.passages import Span
from ..text.question import Question
from ..text.times import AskedTime
from ..vectors.backend import Vectors
from .rows import Rows
from .scoring.fusion import Votes
from .scoring.gate import UNGATED, Thresholds
from .types import Candidate, Query, Ranked, Read, Scan, VectorQuery


@dataclass(slots=True)
class Account:
    """What each stage did. Stages leave here what they have in hand anyway; nothing is drawn until somebody asks.

    ``words`` is what the full-text channels did by channel, only of a recall that is accounted for. ``votes`` are each
    row's shares of its fused score by list. ``weightless`` rows were found and had nothing to weigh. ``not_held`` is
    what the question quotes, and nothing else asks, where no row holds it. ``time`` is the time that it names, where
    rows are lifted for that. ``considered`` is what was scored, before any weight; then come the rows as the gate
    ``kept`` them and left them ``below``, what was ``cut`` or fell behind as a ``tail``, what was ``folded`` into which
    row, and what was ``ordered`` before and ``returned`` after the limit; ``reserved`` rows stand beside those.
    """

    words: dict[str, dict[str, Any]] = field(default_factory=dict)
    keyword_fallback: str | None = None
    votes: Votes = field(default_factory=Votes)
    weightless: frozenset[Rid] = frozenset()
    not_held: tuple[str, ...] = ()
    time: AskedTime | None = None
    considered: Sequence[Candidate] = ()
    kept: Sequence[Candidate] = ()
    below: Sequence[Candidate] = ()
    cut: Sequence[Candidate] = ()
    folded: dict[Rid, Rid] = field(default_factory=dict)
    tail: Sequence[Candidate] = ()
    ordered: Sequence[Candidate] = ()
    returned: Sequence[Candidate] = ()
    reserved: frozenset[Rid] = frozenset()


@dataclass(slots=True)
class Run:
    """One recall inside its read snapshot.

    ``sense`` is the share of the question's words that the embedder knows. ``declared`` is what it says of its cosines,
    ``measured`` the calibrated gate of each signal that has one, found when the agent had ``measured_rows`` memories,
    ``beta`` the agent's precision, ``embedded_per_second`` how fast rows get their vectors, as far as that is known,
    ``cosine_scale`` where a confidence begins and ends to count a cosine. ``depth`` is
    how many rows each channel hands over, ``scans`` are the vector channels. ``as_written`` holds the rows before the
    gate for the question without its other names, None where it has none. ``reranked`` is what a reranker said of rows
    and their texts.

    From ``lists`` on stand the values that one stage leaves to others: which passages of a row are near, by their ids,
    what a blend read of the rows, how many rows and passages are in scope, None where nobody counted, by what factor
    better (1 or more) the question must be met for what no row holds, which of its identifiers none holds, what the
    gate compared with, and whether rows came back that it had refused.
    """

    conn: apsw.Connection
    settings: Settings
    query: Query
    question: Question
    vector: VectorQuery | None
    vectors: Vectors
    now: float
    depth: int
    scans: Sequence[Scan] = ()
    sense: float = 1.0
    declared: Declared | None = None
    measured: Mapping[Signal, float] = field(default_factory=dict)
    measured_rows: int = 0
    embedded_per_second: float | None = None
    beta: float = 1.0
    cosine_scale: tuple[float, float] = (0.0, 1.0)
    as_written: Sequence[Candidate] | None = None
    reranked: Mapping[tuple[Rid, str], float] = field(default_factory=dict)

    lists: Sequence[Ranked] = ()
    near: dict[Rid, dict[int, Span]] = field(default_factory=dict)
    read: dict[Rid, Read] = field(default_factory=dict)
    size: int | None = None
    unfamiliarity: float = 1.0
    absent: tuple[str, ...] = ()
    limits: Thresholds = UNGATED
    rescued: bool = False
    account: Account = field(default_factory=Account)
    rows: Rows = field(init=False)

    def __post_init__(self) -> None:
        self.rows = Rows(self.conn, self.query.scope, self.vectors)

    def look_deeper(self, depth: int) -> None:
        """Have each channel hand over so many rows the next time it is asked."""
        self.scans = [scan._replace(cut=depth) if scan.cut == self.depth else scan for scan in self.scans]
        self.depth = depth

    def without_other_names(self) -> Run:
        """Return the same recall for the question as written, at its beginning."""
        return replace(
            self,
            query=replace(self.query, also_lexical=()),
            question=self.question.as_written(),
            lists=(),
            near={},
            read={},
            size=None,
            unfamiliarity=1.0,
            absent=(),
            account=Account(),
        )
