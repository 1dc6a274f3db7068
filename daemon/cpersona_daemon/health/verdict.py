"""From checks to a verdict: run them in one snapshot, mend what can be mended, and say what is left.

Contract: health.checks.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import apsw

from ..calibration.in_force import gate_of_store
from ..context import Context
from ..errors import CorruptDatabase, CPersonaError, PermissionDenied, Refused, translate
from ..storage import memories, past, vector_counts
from . import canaries
from .checks import CHECKS
from .repairs import Repair
from .view import CRITICAL, SEVERITIES, WARN, Issue, View

log = logging.getLogger("cpersona.health")


def chosen(names: Sequence[str] | None, whole: bool) -> list[str]:
    """Return the checks to run, all when none is named; without ``whole`` those of one agent's rows.

    Raises Refused for an unknown one, PermissionDenied for one of the whole store without ``whole``.
    """
    if not names:
        return [name for name in CHECKS if whole or CHECKS[name].of_agent]
    for name in names:
        if name not in CHECKS:
            raise Refused(f"there is no check {name!r}; there are {', '.join(CHECKS)}")
        if not whole and not CHECKS[name].of_agent:
            raise PermissionDenied(
                f"the check {name} looks at the whole store, which takes a grant for every agent (*)"
            )
    return list(dict.fromkeys(names))


async def check_health(
    ctx: Context,
    agent_id: str = "",
    names: Sequence[str] | None = None,
    fix: bool = False,
    deep: bool = False,
    whole: bool = True,
) -> dict:
    """Run the named checks and return check_health's answer.

    ``whole``: whether who asks may look at the whole store and mend it. ``fixable`` marks what a repair is known for.
    With ``fix`` what can be repaired is, of rows those of the agent asked about ('' = all); ``issues`` is then what is
    left, ``fixed`` says what was done.
    """
    run = chosen(names, whole)
    if "canaries" in run:
        await _run_canaries(ctx, agent_id)
    total, issues = await _looked(ctx, agent_id, run, deep)
    fixed = await _mended(ctx, agent_id, issues) if fix else []
    if fixed:
        total, issues = await _looked(ctx, agent_id, run, deep)
    for issue in issues:
        if _repair(issue) is not None:
            issue["fixable"] = True
    summary = {severity: sum(issue["severity"] == severity for issue in issues) for severity in SEVERITIES}
    return {
        "status": "unhealthy" if summary[CRITICAL] else "degraded" if summary[WARN] else "healthy",
        "total_memories": total,
        "issues": issues,
        "severity_summary": summary,
        "checks_run": run,
        "fixed": fixed,
    } | {**await _gate(ctx, agent_id, total), **(await _kept(ctx) if whole and total is not None else {})}


def _repair(issue: Issue) -> Repair | None:
    """Return what mends an issue; what is only worth knowing needs no mending."""
    return CHECKS[issue["check"]].repair if issue["severity"] in (CRITICAL, WARN) else None


async def _mended(ctx: Context, agent_id: str, issues: list[Issue]) -> list[str]:
    """Run every repair that an issue asks for, each once, and return what they did."""
    fixed: list[str] = []
    due = {issue["check"]: repair for issue in issues if (repair := _repair(issue)) is not None}
    for name, repair in due.items():
        fixed += [f"{name}: {what}" for what in await repair(ctx, agent_id)]
    return fixed


async def _run_canaries(ctx: Context, agent_id: str) -> None:
    """Run the saved questions, so that the check of them tells how it is and not how it was."""
    try:
        await canaries.run(ctx, ctx.settings, agent_id)
    except CPersonaError as error:
        log.warning("the canaries could not run: %s", error)  # what keeps them from it is another check's finding


async def _gate(ctx: Context, agent_id: str, total: int | None) -> dict:
    """Return what the agent's blend asks of an answer, where one agent and that mode are looked at."""
    if not agent_id or total is None or ctx.settings.recall_mode != "blend":
        return {}
    size = await ctx.db.read(vector_counts.size, agent_id)
    return {"gate": gate_of_store(ctx, ctx.settings, agent_id, size)}


async def _kept(ctx: Context) -> dict:
    """Return how much is kept of what rows were, where anything is."""
    kept = await ctx.db.read(past.size)
    return {"history": kept} if kept["entries"] else {}


async def _looked(ctx: Context, agent_id: str, names: list[str], deep: bool) -> tuple[int | None, list[Issue]]:
    """Run the checks; a database too damaged for that is an issue too. The number of memories is then None."""
    try:
        return await ctx.db.read(_look, ctx, agent_id, names, deep)
    except (apsw.Error, CorruptDatabase) as error:
        if not isinstance(translate(error), CorruptDatabase):
            raise
        return None, [_damaged("sqlite_integrity", error)]


def _look(
    conn: apsw.Connection, ctx: Context, agent_id: str, names: list[str], deep: bool
) -> tuple[int | None, list[Issue]]:
    view, issues = View(conn, ctx, agent_id, deep), []
    for name in names:
        try:
            issues += [{"check": name, **issue} for issue in CHECKS[name].look(view)]
        except apsw.CorruptError as error:  # a check that stumbles over damage has found it
            issues.append(_damaged(name, error))
    try:
        return memories.total(conn, agent_id), issues
    except apsw.CorruptError:
        return None, issues


def _damaged(check: str, error: Exception) -> Issue:
    return {"check": check, "severity": CRITICAL, "message": f"the database is damaged ({error}); restore a backup"}
