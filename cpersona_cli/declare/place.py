"""Where the cursor is in a command line that is still being typed: which argument or option value it stands in.

Contract: commands.same.
"""

from __future__ import annotations

from . import catalogue, spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from .spec import Command, Parameter

    Flags = dict[str, tuple[str | None, Parameter]]


class Place:
    """Where the cursor is: the ``parameter`` whose value it is (None for none), the ``text`` so far and what stands
    ``before`` it in the same word (`--agent=`); the common ``options`` and the ``given`` arguments of the line.
    """

    __slots__ = ("parameter", "before", "text", "options", "given")

    def __init__(
        self,
        parameter: Parameter | None,
        text: str,
        before: str = "",
        options: Mapping[str, Any] | None = None,
        given: Iterable[str] = (),
    ) -> None:
        self.parameter, self.text, self.before = parameter, text, before
        self.options, self.given = options or {}, list(given)


def place_of(words: list[str]) -> Place:
    """Return the Place of the last of the words behind `cpersona`."""
    *before, current = words
    line = _Line(before)
    if line.unknown:
        return Place(None, current)  # no command of ours: nothing is known of what follows
    if line.valued is not None:
        return Place(line.valued, current, options=line.options, given=line.given)
    if current[:1] == "-" and not line.dashes:
        name, equals, value = spec.spelled(current, line.flags).partition("=")
        if not equals or not name.startswith("--"):
            return Place(None, current)
        return Place(
            line.flags.get(name, (None, None))[1], value, current.partition("=")[0] + "=", line.options, line.given
        )
    return Place(line.argument(), current, options=line.options, given=line.given)


class _Line:
    """The words before the cursor, read as far as they go.

    ``valued`` is the option whose value comes next, ``unknown`` says that the command is none of ours.
    """

    def __init__(self, words: list[str]) -> None:
        self.command: Command | None = None
        self.flags: Flags = _flags(spec.COMMON)
        self.options: dict[str, str] = {}
        self.given: list[str] = []
        self.valued: Parameter | None = None
        self.dashes = self.unknown = False
        self._path: list[str] = []
        self._key: str | None = None
        for word in words:
            self._read(word)
            if self.unknown:
                break

    def _read(self, word: str) -> None:
        if self.valued is not None:
            self._keep(word)
        elif word == "--" and not self.dashes:
            self.dashes = True
        elif _is_option(word, self.dashes):
            self._option(word)
        elif self.command is None:
            self._name(word)
        else:
            self.given.append(word)

    def _option(self, word: str) -> None:
        name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        self._key, parameter = self.flags.get(name, (None, None))
        if parameter is not None and parameter.kind != "flag" and not equals:
            self.valued = parameter
        else:
            self._keep(value)

    def _keep(self, value: str) -> None:
        if self._key is not None:
            self.options[self._key] = value
        self.valued = None

    def _name(self, word: str) -> None:
        self._path.append(word)
        first = self._path[0]
        declared = catalogue.declared(first) if first in catalogue.ENTRIES else ()
        self.command = next((command for command in declared if list(command.path) == self._path), None)
        if self.command is not None:
            common = {key: spec.COMMON[key] for key in self.command.common}
            self.flags = _flags(common) | {flag: (None, p) for p in self.command.parameters for flag in p.flags}
        else:
            self.unknown = len(self._path) > (first in catalogue.FAMILIES)

    def argument(self) -> Parameter | None:
        """Return the argument that comes next, None where there is none."""
        arguments = [p for p in self.command.parameters if not p.flags] if self.command is not None else []
        if len(self.given) < len(arguments):
            return arguments[len(self.given)]
        return arguments[-1] if arguments and arguments[-1].many else None


def _is_option(word: str, dashes: bool) -> bool:
    return word[:1] == "-" and len(word) > 1 and not dashes


def _flags(common: Mapping[str, Parameter]) -> Flags:
    return {flag: (key, parameter) for key, parameter in common.items() for flag in parameter.flags}
