"""The isolation axes of a read as SQL conditions, in one place.

Contract: scope.axes, scope.source, time.between, time.asof.
"""

from __future__ import annotations

from ..model.kinds import EPISODE, MEMORY, Kind
from ..model.scope import Scope
from .hidden import seen

_KIND_OF = {kind.table: kind for kind in Kind}


def axes_sql(scope: Scope, alias: str = "", everyone: bool = False) -> tuple[str, list]:
    """Return the condition on agent, project and channel with its parameters; with ``everyone`` on the last two.

    ``alias`` ends in a dot.
    """
    sql, params = ("1", []) if everyone else (f"{alias}agent_id = ?", [scope.agent_id])
    if scope.project_id == "":
        sql += f" AND {alias}project_id = ''"
    elif scope.project_id is not None:
        sql += f" AND {alias}project_id IN (?, '')"
        params.append(scope.project_id)
    if scope.channel:
        sql += f" AND {alias}channel IN (?, '')"
        params.append(scope.channel)
    return sql, params


def time_sql(scope: Scope, alias: str = "") -> tuple[str, list]:
    """Return the condition on when a row was stored, with AND before it; '' where any time will do."""
    bounds = [(">=", scope.since), ("<=", scope.latest)]
    return (
        "".join(f" AND {alias}created_at {compared} ?" for compared, instant in bounds if instant),
        [instant for _, instant in bounds if instant],
    )


def stored_sql(scope: Scope, alias: str = "", everyone: bool = False) -> tuple[str, list]:
    """Return the condition on the axes, and on when a row was stored."""
    (sql, params), (time, instants) = axes_sql(scope, alias, everyone), time_sql(scope, alias)
    return sql + time, params + instants


def pool_sql(scope: Scope, table: str) -> tuple[str, list]:
    """Return the condition on the rows of a table that are there to choose from: neither source, ``since`` nor
    ``until`` narrows it.
    """
    return row_sql(scope.pool, table)


def row_sql(scope: Scope, table: str, alias: str = "", everyone: bool = False) -> tuple[str, list]:
    """Return the condition on rows of a table, of any source: the axes, when they were stored, and that they are not
    hidden; as of an instant also that they have not changed since. Those that have are read from what is kept of them.

    It is the whole condition on episodes.
    """
    sql, params = stored_sql(scope, alias, everyone)
    sql += f" AND {seen(table, f'{alias}id')}"
    if scope.as_of:
        row_id = f"{alias or table + '.'}id"
        sql += f" AND NOT EXISTS (SELECT 1 FROM past WHERE past.kind = ? AND past.row_id = {row_id} AND past.at > ?)"
        params = [*params, _KIND_OF[table], scope.as_of]
    return sql, params


def kind_sql(scope: Scope, kind: str, alias: str = "") -> tuple[str, list]:
    """Return the whole condition on rows of a kind."""
    return memory_sql(scope, alias) if kind == MEMORY else row_sql(scope, EPISODE.table, alias)


def memory_sql(scope: Scope, alias: str = "") -> tuple[str, list]:
    """Return the whole condition on memories, the source included."""
    sql, params = row_sql(scope, MEMORY.table, alias)
    if scope.source_id and scope.source_is_prefix:
        sql += f" AND substr({alias}source_id, 1, ?) = ?"
        params += [len(scope.source_id), scope.source_id]
    elif scope.source_id:
        sql += f" AND {alias}source_id = ?"
        params.append(scope.source_id)
    return sql, params
