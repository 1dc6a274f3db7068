"""The settings in a backup: which may be written on another machine, and which never are.

What leads somewhere (a path, an address, a socket), what is secret and what this version does not know stays where it
was; a backup may have been changed by somebody who would like a daemon to read his access file, or to send texts to
him.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ...shared import files
from ...shared.settings import CONFIG, BadValue, Settings, parse
from ...shared.settings_table import BY_NAME, CLIENT, DAEMON, RETRIEVAL, TABLE

MOST_BYTES = 1 << 20
MOST_NAME = 100
_LEADS_AWAY = ("path", "address")


class Misshapen(Exception):
    """What stands in the place of settings is of another shape; the message says how."""


@dataclass(frozen=True, slots=True)
class Kept:
    """``values``: every setting of the backup.

    Of those of its config file ``fit`` may be written, ``unfit`` says why the others may not.
    """

    values: dict[str, Any]
    fit: dict[str, Any]
    unfit: dict[str, str]


def settings_of(settings: Settings) -> dict:
    """Return what a person set: `{name: {value, origin}}`.

    Secrets are left out, and what belongs to one machine's places.
    """
    return {
        s.name: {"value": value, "origin": settings.origin(s.name)}
        for s in TABLE
        if s.scope in (CLIENT, DAEMON, RETRIEVAL)
        and s.kind != "path"
        and settings.is_set(s.name)
        and (value := s.open_part(getattr(settings, s.name))) is not None
    }


def read(path: str) -> Kept:
    """Return the settings of an unpacked backup; one without any has none. Raises Misshapen."""
    try:
        kept = json.loads(files.read(path, MOST_BYTES))
    except FileNotFoundError:
        return Kept({}, {}, {})
    except (ValueError, RecursionError):
        raise Misshapen("they are not JSON") from None
    if not isinstance(kept, dict):
        raise Misshapen("they are not a map")
    values: dict[str, Any] = {}
    fit: dict[str, Any] = {}
    unfit: dict[str, str] = {}
    for name, entry in kept.items():
        value, origin = _entry(name, entry)
        values[name] = value
        if origin != CONFIG:
            continue  # an environment is not written into a file
        if (why := _unfit(name, value)) is not None:
            unfit[name] = why
        else:
            fit[name] = parse(BY_NAME[name], value)
    _leave_out_contradictions(fit, unfit)
    return Kept(values, fit, unfit)


def _entry(name: str, entry: Any) -> tuple[Any, str]:
    """Return the value of a setting and where it came from. Raises Misshapen."""
    value, origin = (entry.get("value"), entry.get("origin")) if isinstance(entry, dict) else (None, None)
    named = len(name) <= MOST_NAME and name.isprintable()
    if not named or not isinstance(value, (bool, int, float, str)) or not isinstance(origin, str):
        raise Misshapen(f"{name[:MOST_NAME]!r} is not a value with its origin")
    return value, origin


def _unfit(name: str, value: Any) -> str | None:
    """Return why a setting is not to be written on another machine, None where it may be."""
    setting = BY_NAME.get(name)
    if setting is None:
        return "this version knows no such setting"
    if setting.scope not in (CLIENT, DAEMON, RETRIEVAL) or setting.kind in _LEADS_AWAY or setting.secret:
        return "it says where something lies, whom something is sent to, or a secret; set it yourself"
    try:
        parse(setting, value)
    except BadValue as error:
        return str(error)
    return None


def _leave_out_contradictions(fit: dict[str, Any], unfit: dict[str, str]) -> None:
    """Take out what would keep a daemon from starting with the settings that are left."""
    defaults = {setting.name: setting.default for setting in TABLE}
    for name in sorted(fit):
        if problems := Settings({**defaults, name: fit[name]}, {}).conflicts():
            unfit[name] = problems[0]
            del fit[name]
    if problems := Settings({**defaults, **fit}, {}).conflicts():
        unfit.update(dict.fromkeys(fit, problems[0]))
        fit.clear()


def as_toml(values: dict[str, Any]) -> str:
    """Return the text of a config file that says these values."""
    # JSON escapes all that TOML wants escaped, but for one character.
    return "".join(
        f"{name} = {json.dumps(value, ensure_ascii=False)}\n".replace("\x7f", "\\u007f")
        for name, value in sorted(values.items())
    )
