"""What an embedder is, whoever does the work.

Contract: contracts.md §5 (profiles), §12 (identity, normalised vectors, failures).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..errors import EmbeddingFailure
from .turns import Piece, at_once

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class Part:
    """The numbers [start, stop) of a vector that are a vector of their own, and the share they have of a cosine."""

    start: int
    stop: int
    share: float


@dataclass(frozen=True, slots=True, eq=False)
class Questions:
    """Questions about anything, which hardly a store answers: what an embedder's vectors of questions have in common anyway.

    ``vectors`` is float32 of shape (texts, dimension), rows of unit length; ``mean`` is theirs, float64.
    """

    texts: tuple[str, ...]
    vectors: np.ndarray
    mean: np.ndarray


@dataclass(frozen=True, slots=True)
class Profile:
    """Where an embedder's cosines lie: used where neither a person nor a measurement gives the number.

    ``background`` is the mean cosine of texts that have nothing to do with each other. ``part`` is the part of the
    vectors that compares texts of different languages, None where the whole vector does. ``questions`` are
    questions about anything, None where nobody embedded any.
    """

    admission: float
    min_similarity: float
    cosine_floor: float
    cosine_ceil: float
    background: float = 0.2
    part: Part | None = None
    questions: Questions | None = None


class Advice(NamedTuple):
    """What an answer must say about vectors that it lacked; ``severity`` is hint or fault."""

    severity: str
    reason: str
    evidence: str
    runbook: str


class Embedded(NamedTuple):
    """One vector, float32 of unit length, and the identity of the model that made it, '' when unknown."""

    vector: np.ndarray
    model: str


class Batch(NamedTuple):
    """Vectors and the identity of the model that made them, which belong together even while a service changes its model.

    ``vectors`` is float32 of shape (texts, dimension), rows of unit length; ``model`` is '' when unknown.
    """

    vectors: np.ndarray
    model: str


class Embedder(Protocol):
    """Turns texts into unit vectors. Calls block, and several threads may call ``embed`` at once.

    ``identity`` names the model and its version, '' when unknown. ``dimension`` is None until known.
    ``resident`` says whether there is a model in memory that takes time to load. ``slice_size`` is the
    number of texts of one call that answers soon; ``query_threads`` how many queries may be under way.
    """

    name: str
    profile: Profile | None
    resident: bool
    slice_size: int
    query_threads: int

    @property
    def identity(self) -> str: ...

    @property
    def dimension(self) -> int | None: ...

    def expect(self, model: str, dimension: int) -> None:
        """Learn what the database's vectors are, so that an answer of another width can be refused."""

    def load(self) -> None:
        """Make ``embed`` ready. Raises EmbeddingFailure with what is missing and how to mend it."""

    def unload(self) -> None:
        """Give memory and connections back; ``load`` brings the model again."""

    def embed(self, texts: list[str], piece: Piece = at_once) -> Batch:
        """Return one unit row a text. Raises EmbeddingFailure; never a part of the answer.

        ``piece(kind, work)`` does one piece of the work, as short a one as the model allows, so that others can come in between.
        """


_BUILTIN = "builtin:"


def may_change_width(known: str, answered: str) -> bool:
    """Tell whether two identities are certainly two models, so that their widths may differ.

    An unknown identity could be the same model; only the builtin one is never served by anybody else.
    """
    if known.startswith(_BUILTIN) != answered.startswith(_BUILTIN):
        return True
    return bool(known) and bool(answered) and known != answered


def unit_rows(raw: np.ndarray) -> np.ndarray:
    """Return the rows scaled to unit length as float32; raises EmbeddingFailure on a zero or non-finite row."""
    import numpy as np  # a start answers what needs no vector before numpy is loaded

    rows = np.asarray(raw, dtype=np.float64)
    if not np.isfinite(rows).all():
        raise EmbeddingFailure("the embedder answered a number that is not finite")
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    if not (largest > 0).all():
        raise EmbeddingFailure("the embedder answered a vector of zeros")
    rows = rows / largest  # keeps the squares of very large and very small numbers in range
    return np.ascontiguousarray(rows / np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None], dtype=np.float32)
