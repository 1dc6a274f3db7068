"""Handler of exists: a yes-or-no question, answered by words alone.

Contract: exists.words.
"""

from __future__ import annotations

import apsw
import msgspec

from ...model.kinds import MEMORY, Rid, ref_of
from ...storage import existence, keyword
from ...text.terms import parse_query
from ..common import check_question, scope_of
from ..registry import Call, Handler


class ExistsParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str
    text: str
    project_id: str | None = None
    channel: str | None = None
    source_id: str | None = None
    since: str | None = None
    until: str | None = None


async def exists(call: Call) -> dict:
    """Answer `{exists, ref?, match?}`: a row that holds every word (match `words`) or the text itself (`text`)."""
    p, scope = call.params, scope_of(call.params)
    check_question(p.text, "text", blank=False)

    def look(conn: apsw.Connection) -> tuple[Rid, bool] | None:
        if (
            call.settings.fts_enabled
            and (found := existence.holder(conn, p.text, parse_query(p.text), scope)) is not None
        ):
            return found
        # Signs alone are no words, and without the word index there are none: then the text itself is looked for.
        ids = keyword.keyword_scan(conn, p.text, scope, 1)
        return ((MEMORY, ids[0]), True) if ids else None

    found = await call.ctx.db.read(look)
    if found is None:
        return {"exists": False}
    rid, whole = found
    return {"exists": True, "ref": ref_of(rid), "match": "text" if whole else "words"}


HANDLERS = {"exists": Handler(ExistsParams, exists)}
