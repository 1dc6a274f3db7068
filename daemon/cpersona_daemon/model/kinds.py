"""The kinds of rows, and the refs that name one: the only place that knows which table belongs to which kind."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Kind(StrEnum):
    """A kind of row. Its value is the prefix of its refs, and what the database's columns named ``kind`` hold.

    ``table`` holds the rows, ``vectors`` their vectors, by their ids in ``row_column``, ``fts`` their words, ``terms``
    in how many rows a word stands.
    A plain string with the same letters is equal to it, so that a kind read from the database needs no look-up.
    """

    table: str
    vectors: str
    fts: str
    terms: str
    row_column: str

    MEMORY = "mem", "memories", "memory_vectors", "memory_fts", "memory_terms"
    EPISODE = "ep", "episodes", "episode_vectors", "episode_fts", "episode_terms"

    def __new__(cls, prefix: str, table: str = "", vectors: str = "", fts: str = "", terms: str = "") -> Kind:
        kind = str.__new__(cls, prefix)
        kind._value_ = prefix
        kind.table, kind.vectors, kind.fts, kind.terms, kind.row_column = table, vectors, fts, terms, "id"
        return kind

    def ref(self, row_id: int) -> str:
        """Return the ref of a row of this kind: `mem:N` or `ep:N`."""
        return f"{self._value_}:{row_id}"

    @property
    def rows(self) -> Kind:
        """The kind of the rows that its vectors are of."""
        return self


class PassageKind(StrEnum):
    """The passages of the long rows of a kind. Its value stands for them in the backlog, and before their ids.

    ``rows`` is the kind of those rows, ``vectors`` the table of the passages, each with its vector, ``row_column`` what
    names its row there.
    """

    rows: Kind
    vectors: str
    row_column: str

    OF_MEMORY = "mem+", Kind.MEMORY, "memory_passages"
    OF_EPISODE = "ep+", Kind.EPISODE, "episode_passages"

    def __new__(cls, name: str, rows: Kind = Kind.MEMORY, vectors: str = "") -> PassageKind:
        kind = str.__new__(cls, name)
        kind._value_ = name
        kind.rows, kind.vectors, kind.row_column = rows, vectors, "row_id"
        return kind


VectorKind = Kind | PassageKind  # what an index is kept of

MEMORY, EPISODE = Kind.MEMORY, Kind.EPISODE
PASSAGES = {kind.rows: kind for kind in PassageKind}
Rid = tuple[str, int]  # the kind of a row and its id in that kind's table
PROFILE: Rid = ("profile", 0)  # the row that describes an agent; it has no ref


def ref_of(rid: Rid) -> str | None:
    """Return `mem:N` or `ep:N`, None for the profile row."""
    return f"{rid[0]}:{rid[1]}" if rid[0] in (MEMORY, EPISODE) else None


def parse_ref(ref: object) -> Rid | None:
    """Return the row that `mem:N` or `ep:N` names, or None for anything else."""
    if not isinstance(ref, str):
        return None
    kind, colon, digits = ref.partition(":")
    if not colon or kind not in (MEMORY, EPISODE) or not digits.isascii() or not digits.isdigit():
        return None
    number = int(digits) if len(digits) <= 19 else 0
    return (Kind(kind), number) if 0 < number < 2**63 else None


def by_kind(rids: Iterable[Rid]) -> dict[Kind, list[int]]:
    """Return the ids of each kind, memories first."""
    wanted: dict[Kind, list[int]] = {Kind.MEMORY: [], Kind.EPISODE: []}
    for kind, row_id in rids:
        wanted[kind].append(row_id)  # type: ignore[index]  # a plain "mem" is equal to its Kind
    return wanted


def by_vector_kind(ids: Iterable[Rid]) -> dict[VectorKind, list[int]]:
    """Return the ids of each kind of rows and of passages, memories first."""
    wanted: dict[VectorKind, list[int]] = {kind: [] for kind in (*Kind, *PassageKind)}
    for kind, row_id in ids:
        wanted[kind].append(row_id)  # type: ignore[index]  # as above
    return wanted
