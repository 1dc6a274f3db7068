"""The config file as text: one value put into it with its comments kept, and what is wrong with what it says.

Contract: config.written.
"""

from __future__ import annotations

import os
import re
import tomllib

from cpersona_daemon.shared import files, settings

from .. import exits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cpersona_daemon.shared.settings_table import Setting

_MOST_BYTES = 1 << 20  # as the settings' own reader has it
# A value that stands on one line: a text in quotes, or a word up to blanks or a comment.
_VALUE = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s#\"'\[{][^\s#]*")


class ConfigFile:
    """The file as it was when it was read; ``text`` is '' where there is none. Raises Stop."""

    def __init__(self) -> None:
        self.path = settings.config_path()
        self._real = os.path.realpath(self.path)  # what a link leads to is replaced, and not the link
        self.text = self._read()

    def _read(self) -> str:
        try:
            return files.read(self._real, _MOST_BYTES).decode("utf-8")
        except FileNotFoundError:
            return ""
        except UnicodeDecodeError:
            raise exits.Stop(f"{self.path} is not valid UTF-8; convert it first, for instance with iconv") from None

    def replace(self, text: str) -> None:
        """Put another text in its place, whole and durably. Raises Stop where somebody else changed it meanwhile."""
        if self._read() != self.text:
            raise exits.Stop(f"{self.path} was changed meanwhile; nothing was written, look at it and do it again")
        os.makedirs(os.path.dirname(self._real), 0o700, exist_ok=True)
        mode = os.stat(self._real).st_mode & 0o777 if os.path.exists(self._real) else 0o600
        files.replace(self._real, text.encode(), mode)


def values_of(text: str) -> dict:
    """Return the settings that a config file sets, by their names. Raises ValueError for what is no TOML."""
    try:
        return {str(name).lower(): value for name, value in tomllib.loads(text).items()}
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"it is not valid TOML: {error}") from None


def problems(values: dict) -> list[str]:
    """Return what is wrong with the values of a config file, taken by themselves."""
    return [said.partition(settings.INSTEAD)[0] for said in settings.load({}, config=values).warnings]


def contradictions(values: dict) -> list[str]:
    """Return what contradicts itself in the settings that a config file and this environment make together."""
    return settings.load(config=values).conflicts()


def with_value(text: str, setting: Setting, value: object) -> str:
    """Return the text of a config file with one setting at another value, all else as it is.

    Raises ValueError where the value that stands there takes several lines.
    """
    name, lines = setting.name, text.splitlines(keepends=True)
    key = re.compile(rf"""\s*(["']?){name}\1\s*=\s*""", re.IGNORECASE)
    end = next((at for at, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))
    for at, line in enumerate(lines[:end]):
        if (head := key.match(line)) and (held := _VALUE.match(line, head.end())):
            lines[at] = line[: head.end()] + _literal(value) + line[held.end() :]
            break
    else:
        if end and not lines[end - 1].endswith("\n"):
            lines[end - 1] += "\n"
        lines.insert(end, f"{name} = {_literal(value)}\n")
    made = "".join(lines)
    # Whatever a line looked like: it says what was asked for, and nothing else was changed.
    expected = {**values_of(text), name: value}
    try:
        unchanged = values_of(made) == expected
    except ValueError:
        unchanged = False
    if not unchanged:
        raise ValueError(f"{name} stands there in a form that only `cpersona config edit` can change")
    return made


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    import json

    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
