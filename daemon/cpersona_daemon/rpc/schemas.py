"""The parameters of every method as JSON Schema, made from the Structs that decode them.

`python -m cpersona_daemon.rpc.schemas` writes them to ``shared/params.json``, where a client finds them that loads
neither msgspec nor a handler; a test holds the two equal.

Contract: tools.schemas.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from ..shared import params
from .dispatch import HANDLERS

_NOT_SAID = ("title", "description", "$defs")


def schemas() -> dict[str, dict]:
    """Return method -> the schema of its params, one self-contained object each."""
    return {name: _of(HANDLERS[name].params) for name in HANDLERS}


def _of(struct: type[msgspec.Struct]) -> dict:
    whole = msgspec.json.schema(struct)
    return _plain(whole, whole.get("$defs", {}))


def _plain(schema: dict, named: dict) -> dict:
    """Return a schema with what it refers to put in its place, and without what says nothing."""
    told = _meant(schema, named)
    said = {key: value for key, value in told.items() if key not in _NOT_SAID}
    # An empty default says no more than leaving the parameter out does.
    if "default" in said and said["default"] in (None, "", [], False):
        del said["default"]
    if "properties" in said:
        said["properties"] = {name: _plain(kind, named) for name, kind in said["properties"].items()}
    if "items" in said:
        said["items"] = _plain(said["items"], named)
    return said


def _meant(schema: dict, named: dict) -> dict:
    """Return what a reference stands for, and of what may be null what it is otherwise: null is leaving it out."""
    if "$ref" in schema:
        return _meant(named[schema["$ref"].rpartition("/")[2]], named)
    if "anyOf" not in schema:
        return schema
    kinds = [kind for kind in schema["anyOf"] if kind != {"type": "null"}]
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**(_meant(kinds[0], named) if len(kinds) == 1 else {"anyOf": kinds}), **rest}


def text() -> str:
    """Return the file's text: a line for each method."""
    lines = (f"{json.dumps(name)}: {json.dumps(schema)}" for name, schema in schemas().items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    Path(params.FILE).write_text(text(), "utf-8")
