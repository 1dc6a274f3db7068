"""What a recall says of the rows in its scope that its question could not be compared with by meaning."""

from __future__ import annotations

from ..embedding.values import Advice
from ..model.scope import Scope


def advice(unusable: int, waiting: int, scope: Scope) -> Advice | None:
    """Return what to say of ``unusable`` rows without a usable vector, ``waiting`` of which are listed for one; None of none.

    Words alone find them. The counts know neither source nor age, so that under a scope narrowed by these they are upper bounds.
    """
    if not unusable:
        return None
    bound = "up to " if scope.source_id or scope.as_of else ""
    evidence = f"{bound}{unusable} rows in scope without a usable vector, {waiting} rows listed for embedding"
    if waiting >= unusable:
        what = (
            "1 row still waits for its vector and is"
            if unusable == 1
            else f"{unusable} rows still wait for their vectors and are"
        )
        return Advice(
            "hint",
            f"{bound}{what} found by words alone until then",
            evidence,
            "ask again later; `cpersona daemon status` shows how many are left",
        )
    what = (
        "1 row has no vector that this question can be compared with and is"
        if unusable == 1
        else (f"{unusable} rows have no vector that this question can be compared with and are")
    )
    listed = "" if not waiting else "; 1 of them waits for one" if waiting == 1 else f"; {waiting} of them wait for one"
    return Advice(
        "hint",
        f"{bound}{what} found by words alone{listed}",
        evidence,
        "`cpersona health --fix` has every such row embedded in the background",
    )
