"""The reference implementation's export and import, as far as they were observed from outside, and two stores of it
side by side.

Its import refuses associations of anybody but agent and operator, and passes over fields that it does not know.
"""

from __future__ import annotations

import base64
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from typing import Any

from reference_kit import USED, insert


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def export(conn: sqlite3.Connection, version: str = "1.2", embeddings: bool = True) -> list[dict]:
    """Return the lines of the reference's export: 1.0 has no associations, 1.2 has folders."""
    conn.row_factory = sqlite3.Row
    found = {table: [dict(row) for row in conn.execute(f"SELECT * FROM {table}")] for table in (*USED, "folders")}
    members = [dict(row) for row in conn.execute("SELECT * FROM folder_members")]
    conn.row_factory = None
    out = [_line(kind, row, embeddings) for kind in ("memory", "episode") for row in found[_TABLE[kind]]]
    out += [{"_type": "profile", **_without(row, "id")} for row in found["profiles"]]
    if version != "1.0":
        for row in found["entities"]:
            aliases = [a["alias"] for a in found["entity_aliases"] if a["entity_id"] == row["id"]]
            out.append({"_type": "entity", **_without(row, "normalized"), "aliases": aliases})
        out += [
            {"_type": "mention", "entity": row["entity_id"], **_without(row, "entity_id")}
            for row in found["entity_mentions"]
        ]
        out += [{"_type": "relation", **row} for row in found["relations"]]
    if version == "1.2":
        out += [{"_type": "folder", **row} for row in found["folders"]]
        out += [{"_type": "folder_member", **row} for row in members]
    kinds = Counter(line["_type"] for line in out)
    header = {
        "_type": "header",
        "version": f"cpersona-export/{version}",
        "agent_id": "",
        "exported_at": "2026-08-01T00:00:00+00:00",
        "memory_count": kinds["memory"],
        "episode_count": kinds["episode"],
        "has_profile": kinds["profile"] > 0,
    }
    return [header, *out]


_TABLE = {"memory": "memories", "episode": "episodes"}


def _as_value(text: str) -> str:
    """Return a text of JSON in the one form of its value, any other as it is."""
    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except ValueError:
        return text


def _without(row: dict, *names: str) -> dict:
    return {key: value for key, value in row.items() if key not in names}


def _line(kind: str, row: dict, embeddings: bool) -> dict:
    line = {"_type": kind, **_without(row, "embedding", "embedding_model")}
    for name in ("source", "metadata") if kind == "memory" else ():
        value = _loaded(row[name])
        if not isinstance(value, dict):
            line |= {name: {}, f"{name}_text": row[name]}
        else:
            line[name] = value
    if embeddings and row["embedding"] is not None:
        line["embedding_b64"] = base64.b64encode(row["embedding"]).decode()
        line["embedding_model"] = row["embedding_model"]
    return line


def take(conn: sqlite3.Connection, lines: Iterator[dict] | list[dict]) -> list[str]:
    """Take the lines of an export in as the reference does, and return what it refuses: associations of anybody but
    agent and operator, and metadata that is no object. Fields that it does not know are passed over.
    """
    refused: list[str] = []
    ids: dict[tuple[str, int], int] = {}

    def ref(text: str) -> str:
        kind, _, old = text.partition(":")
        return f"{kind}:{ids[kind, int(old)]}"

    for number, line in enumerate(lines, 1):
        kind = line["_type"]
        try:
            if line.get("declared_by", "agent") not in ("agent", "operator"):
                raise ValueError(f"declared_by {line['declared_by']!r}")
            if kind in _TABLE:
                short = "mem" if kind == "memory" else "ep"
                ids[short, line["id"]] = insert(conn, _TABLE[kind], **_row(conn, _TABLE[kind], line))
            elif kind == "profile":
                insert(conn, "profiles", **_row(conn, "profiles", line))
            elif kind == "entity":
                row = _row(conn, "entities", line) | {"normalized": line["name"].casefold()}
                ids["entity", line["id"]] = new = insert(conn, "entities", **row)
                for alias in line["aliases"]:
                    insert(conn, "entity_aliases", entity_id=new, alias=alias, normalized=alias.casefold())
            elif kind == "mention":
                row = _row(conn, "entity_mentions", line) | {"ref": ref(line["ref"])}
                insert(conn, "entity_mentions", entity_id=ids["entity", line["entity"]], **row)
            elif kind == "relation":
                ends = {f"{end}_id": ids[line[f"{end}_kind"], line[f"{end}_id"]] for end in ("subject", "object")}
                anchor = ref(line["anchor_ref"]) if line["anchor_ref"] else ""
                insert(conn, "relations", **(_row(conn, "relations", line) | ends | {"anchor_ref": anchor}))
            elif kind != "header":
                raise ValueError(f"unknown _type {kind!r}")
        except (ValueError, KeyError) as error:
            refused.append(f"line {number}: {error!r}")
    conn.commit()
    return refused


def _row(conn: sqlite3.Connection, table: str, line: dict) -> dict:
    """Return the columns of a table that a line has, its id apart."""
    columns = {row[1] for row in conn.execute(f"PRAGMA table_info({table})")} - {"id"}
    row = {name: value for name, value in line.items() if name in columns}
    for name in ("source", "metadata"):
        if name in row:
            if not isinstance(row[name], dict):
                raise ValueError(f"{name} is no object")
            text = line.get(f"{name}_text") if not row[name] else None
            row[name] = text or json.dumps(row[name], ensure_ascii=False)
    if line.get("embedding_b64"):
        row["embedding"] = base64.b64decode(line["embedding_b64"])
    if "resolved" in row:
        row["resolved"] = int(row["resolved"])
    return row


# -- two stores side by side


def compared(before: sqlite3.Connection, after: sqlite3.Connection) -> list[tuple[str, str, int, int, str]]:
    """Return (table, field, rows, equal ones, a word on the others) for every field of every table."""
    out = []
    one, other = _comparable(before), _comparable(after)
    for table, rows in one.items():
        keys = sorted(rows, key=repr)
        for name in next(iter(rows.values())):
            differ = [
                f"{rows[key][name]!r} -> {other[table].get(key, {}).get(name, 'no row')!r}"
                for key in keys
                if rows[key][name] != other[table].get(key, {}).get(name, other)
            ]
            out.append((table, name, len(keys), len(keys) - len(differ), differ[0][:90] if differ else ""))
        if strangers := set(other[table]) - set(rows):
            out.append((table, "(more rows)", 0, len(strangers), repr(min(strangers, key=repr))))
    return out


def _comparable(conn: sqlite3.Connection) -> dict[str, dict[Any, dict]]:
    """Return the rows of each table by what tells them apart; ids, which are new in every store, by what they name."""
    conn.row_factory = sqlite3.Row
    found = {table: [dict(row) for row in conn.execute(f"SELECT * FROM {table}")] for table in USED}
    conn.row_factory = None
    named: dict[str, Any] = {}
    for table, short, name in (("memories", "mem", "content"), ("episodes", "ep", "summary")):
        for row in found[table]:
            named[f"{short}:{row['id']}"] = (row["agent_id"], row["project_id"], row["channel"], row[name])
    for row in found["entities"]:
        named[f"entity:{row['id']}"] = (row["agent_id"], row["name"])
    keys = {
        "memories": lambda row: named[f"mem:{row['id']}"],
        "episodes": lambda row: named[f"ep:{row['id']}"],
        "profiles": lambda row: (row["agent_id"], row["user_id"]),
        "entities": lambda row: named[f"entity:{row['id']}"],
        "entity_aliases": lambda row: (named[f"entity:{row['entity_id']}"], row["alias"]),
        "entity_mentions": lambda row: (named[f"entity:{row['entity_id']}"], named[row["ref"]]),
        "relations": lambda row: (
            named[f"{row['subject_kind']}:{row['subject_id']}"],
            row["predicate"],
            named[f"{row['object_kind']}:{row['object_id']}"],
            row["project_id"],
        ),
    }

    def resolved(row: dict) -> dict:
        out = dict(row)
        out.pop("id", None)
        for name in ("source", "metadata"):
            if name in out:
                out[name] = _as_value(out[name])
        for name in ("ref", "anchor_ref"):
            if out.get(name):
                out[name] = named[out[name]]
        for name in ("subject", "object"):
            if f"{name}_id" in out:
                out[f"{name}_id"] = named[f"{out[f'{name}_kind']}:{out[f'{name}_id']}"]
        if "entity_id" in out:
            out["entity_id"] = named[f"entity:{out['entity_id']}"]
        return out

    return {table: {keys[table](row): resolved(row) for row in rows} for table, rows in found.items()}
