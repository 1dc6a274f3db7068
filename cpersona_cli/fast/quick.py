"""The short way to a command: parse the usual command line from its declaration, without loading Typer.

The declarations that Typer's commands are built from (``spec``) are the table here too. Whatever is not
plain (help, completion, grouped short options, an error of any kind) is left to Typer, before anything
was done, so that there is one help, one set of messages, and one meaning of a command line.
Tests hold both to the same values, requests, output and exit status.

Contract: speed.client, commands.same.
"""

import os

from ..declare import catalogue, spec

TYPE_CHECKING = False  # as typing has it, which takes longer to load than a command takes to run
if TYPE_CHECKING:
    from typing import Any

    from ..declare.spec import Command, Parameter

# Numbers that need no judgement: as many digits as every interpreter reads at once.
_DIGITS = 18


class Unusual(Exception):
    """The command line is not one of the plain ones; Typer reads it."""


def plain(arguments: list[str]) -> "tuple[Command, dict, dict] | None":
    """Return what ``parse`` does of a plain command line, None of one that is left to Typer."""
    if "_CPERSONA_COMPLETE" in os.environ:
        return None
    try:
        return parse(arguments)
    except Unusual:
        return None


def parse(arguments: list[str]) -> "tuple[Command, dict, dict]":
    """Return (command, options that every command shares, values of its own parameters). Raises Unusual."""
    rest = list(reversed(arguments))
    options: dict[str, Any] = {}
    flags = {flag: (key, parameter) for key, parameter in spec.COMMON.items() for flag in parameter.flags}
    while rest and _is_option(rest[-1]):
        key, value = _option(flags, rest)
        options[key] = value
    command = _command(rest)
    values = {p.name: [] if p.many else p.default for p in command.parameters}
    _place(command, _options(command, rest, options, values), values)
    if spec.stray(command, options):
        raise Unusual
    return command, options, values


def _options(command: "Command", rest: list[str], options: dict, values: dict) -> list[str]:
    """Take the options out of the words behind a command, and return the words that are none. Raises Unusual."""
    flags: dict[str, tuple[str | None, Parameter]] = {
        flag: (key, spec.COMMON[key]) for key in command.common for flag in spec.COMMON[key].flags
    }
    flags.update({flag: (None, parameter) for parameter in command.parameters for flag in parameter.flags})
    words: list[str] = []
    while rest:
        word = rest[-1]
        if word == "--":
            rest.pop()
            return words + rest[::-1]
        if not _is_option(word):
            words.append(rest.pop())
            continue
        rest[-1] = word = spec.spelled(word, flags)
        parameter = _named(flags, word)[1]
        key, value = _option(flags, rest)
        if key is not None:
            options[key] = value
        elif parameter.many:
            values[parameter.name].append(value)
        else:
            values[parameter.name] = value
    return words


def _command(rest: list[str]) -> "Command":
    """Take the words of a command and return its declaration. Raises Unusual."""
    name = rest.pop() if rest else ""
    if name not in catalogue.ENTRIES:
        raise Unusual
    path: tuple[str, ...] = (name,)
    if name in catalogue.FAMILIES:
        if not rest:
            raise Unusual
        path += (rest.pop(),)
    for command in catalogue.declared(name):
        if command.path == path:
            return command
    raise Unusual


def _is_option(word: str) -> bool:
    return word[:1] == "-" and len(word) > 1


def _named(flags: "dict[str, tuple[Any, Parameter]]", word: str) -> "tuple[Any, Parameter]":
    """Return what an option's word stands for. Raises Unusual for one that is not known as it stands."""
    known = flags.get(word.partition("=")[0] if word.startswith("--") else word)
    if known is None:
        raise Unusual
    return known


def _option(flags: "dict[str, tuple[Any, Parameter]]", rest: list[str]) -> "tuple[Any, Any]":
    """Take one option with its value and return (key, value). Raises Unusual."""
    word = rest.pop()
    key, parameter = _named(flags, word)
    _, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
    if parameter.kind == "flag":
        if equals:
            raise Unusual
        return key, True
    if not equals:
        if not rest:
            raise Unusual
        value = rest.pop()
    return key, _converted(parameter, value)


def _converted(parameter: "Parameter", text: str) -> "str | int | float":
    """Return the value of a text that can only mean one thing. Raises Unusual."""
    if parameter.choices and text not in parameter.choices:
        raise Unusual
    if parameter.choices or parameter.kind == "text":
        return text
    value = _whole(text) if parameter.kind == "int" else _fraction(text)
    if parameter.least is not None and value < parameter.least:
        raise Unusual
    return value


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise Unusual
    return int(text)


def _fraction(text: str) -> float:
    whole, point, part = text.partition(".")
    _whole(whole + part)
    if point and not (whole and part):
        raise Unusual
    return float(text)


def _place(command: "Command", given: list[str], values: dict) -> None:
    """Give the words that are no options to the command's arguments, in order. Raises Unusual when they do not fit."""
    words = given[::-1]
    for parameter in command.parameters:
        if parameter.flags:
            continue
        if parameter.many:
            values[parameter.name], words = words[::-1], []
        elif words:
            values[parameter.name] = _converted(parameter, words.pop())
        if parameter.required and values[parameter.name] in (None, []):
            raise Unusual
    if words:
        raise Unusual
