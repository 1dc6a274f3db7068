"""Handler of exists: a yes-or-no question, answered by words alone.

Contract: exists.words.
"""

from __future__ import annotations

import msgspec

from ...errors import InvalidParams
from ...model.kinds import MEMORY, ref_of
from ...storage import existence, keyword
from ...text.terms import parse_query
from ..common import scope_of
from ..registry import Call, Handler
from .recall import MAX_QUERY_LENGTH


class ExistsParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str
    text: str
    project_id: str | None = None
    channel: str | None = None
    source_id: str | None = None


async def exists(call: Call) -> dict:
    """Answer `{exists, ref?, match?}`: a row that holds every word (match `words`), or the text itself (match `text`)."""
    p, scope = call.params, scope_of(call.params)
    if not p.text.strip() or len(p.text) > MAX_QUERY_LENGTH or "\0" in p.text:
        raise InvalidParams(f"the text has 1 to {MAX_QUERY_LENGTH} characters and no NUL")

    def look(conn):
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
