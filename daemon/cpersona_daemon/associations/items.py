"""An item of a reconstruct: the candidates that belong together, and the evidence that joined them.

Contract: associations.reconstruct.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import apsw

from ..model.scope import Scope
from ..storage.associations import Relation
from . import records, roles
from .bundles import Bundle
from .evidence import Evidence
from .records import Record


@dataclass(frozen=True, slots=True)
class Item:
    """Candidates, best first, and each piece of evidence with its record."""

    bundle: Bundle
    evidence: tuple[tuple[Evidence, Record], ...]

    @property
    def texts(self) -> tuple[Record, Sequence[Record]]:
        """Return what there is to quote: the head, and the others in the order of their worth."""
        return self.bundle.head, [*self.bundle.records[1:], *(record for _, record in self.evidence)]

    def shown(self, quoted: dict, relations: Iterable[Relation]) -> dict:
        """Return the item as the answer shows it, around its ``quoted`` text."""
        return {
            "content": quoted["content"],
            "head_ref": self.bundle.head.ref,
            "claims": roles.claims(self.bundle.records, self.bundle.why, self.evidence, relations),
            **quoted,
        }


def with_evidence(
    conn: apsw.Connection, scope: Scope, bundles: list[Bundle], found: list[list[Evidence]]
) -> tuple[list[Item], list[dict]]:
    """Return an item for each bundle, and name the evidence that cannot be given out."""
    known, left_out = records.read(conn, scope, [one.rid for evidence in found for one in evidence])
    items = [
        Item(bundle, tuple((one, known[one.rid]) for one in evidence if one.rid in known))
        for bundle, evidence in zip(bundles, found, strict=True)
    ]
    return items, left_out
