"""What a server offers: the rows of the table that fit its options, each with its schemas.

Contract: tools.rows, tools.schemas, tools.fixed.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from cpersona_daemon.shared import methods, params

from .table import NOTES, TABLE, Schema, Tool

AXES = {"agent": "agent_id", "project": "project_id"}


@dataclass(frozen=True, slots=True)
class Offer:
    """One tool as it is offered.

    ``takes``: the parameters it may be called with, the fixed ones not among them. ``fixed``: what stands in every
    call. ``meant``: what stands in a call that does not name it.
    """

    name: str
    description: str
    input_schema: Schema
    output_schema: Schema
    annotations: dict[str, bool]
    takes: frozenset[str]
    fixed: dict[str, str] = field(default_factory=dict)
    meant: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Options:
    """What a server was started with.

    ``fixed``: agent_id and project_id where they cannot be left. ``meant``: the axes of the settings, for calls that
    name none.
    """

    everything: bool = False
    read_only: bool = False
    fixed: Mapping[str, str] = field(default_factory=dict)
    meant: Mapping[str, str] = field(default_factory=dict)


def offered(options: Options) -> dict[str, Offer]:
    """Return the tools by name, in the table's order."""
    taken = params.load()
    return {
        tool.name: _offer(tool, taken[tool.name], options)
        for tool in TABLE
        if (tool.usual or options.everything) and _fits(tool, taken[tool.name]["properties"], options)
    }


def _fits(tool: Tool, properties: Schema, options: Options) -> bool:
    """Tell whether a tool keeps to the options: it can be held to what is fixed, and can do without writing."""
    if options.read_only and not (methods.of(tool.name).reads or tool.writes):
        return False
    if "agent_id" in options.fixed and "agent_id" not in properties:
        return False
    return "project_id" not in options.fixed or "project_id" in properties or tool.of_agent


def _offer(tool: Tool, taken: Schema, options: Options) -> Offer:
    own = taken["properties"]
    fixed = {axis: value for axis, value in options.fixed.items() if axis in own}
    closed = {*fixed}
    if options.read_only:
        closed |= {*tool.writes}
    if "project_id" in fixed:
        closed |= {*tool.beyond}
    required = {*taken["required"], *tool.required}
    meant = {axis: options.meant[axis] for axis in _left(own.keys(), required) & options.meant.keys() - fixed.keys()}
    shown = [name for name in own if name not in {*closed, *tool.unlisted}]
    schema = {
        "type": "object",
        "properties": {name: _property(tool, name, own[name], meant) for name in shown},
        "required": [name for name in shown if name in required and name not in meant],
        "additionalProperties": False,
    }
    answer = {"type": "object", "properties": tool.answers, "required": list(tool.always)}
    return Offer(
        tool.name, tool.says, schema, answer, _annotations(tool, options), frozenset(own.keys() - closed), fixed, meant
    )


def _left(own: Set[str], required: Set[str]) -> Set[str]:
    """Return the axes that a call may leave to the settings.

    What has every axis is asked within the settings', as the command line asks it; what has not, only for an agent.
    """
    axes = {"agent_id", "project_id", "channel"}
    return axes if axes <= own else {"agent_id"} & required


def _property(tool: Tool, name: str, schema: Schema, meant: Mapping[str, str]) -> Schema:
    note = tool.notes.get(name, NOTES.get(name))
    out = {**schema, **({} if note is None else {"description": note})}
    return {**out, "default": meant[name]} if name in meant else out


def _annotations(tool: Tool, options: Options) -> dict[str, bool]:
    """Return the hints: a memory is no open world, and what only reads has no more to say."""
    if methods.of(tool.name).reads or (options.read_only and tool.writes):
        return {"readOnlyHint": True, "openWorldHint": False}
    return {
        "readOnlyHint": False,
        "destructiveHint": tool.replaces,
        "idempotentHint": tool.repeats,
        "openWorldHint": False,
    }
