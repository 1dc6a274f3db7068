"""The short way to a command: parse the usual command line from its declaration, without loading Typer.

The declarations that Typer's commands are built from (``spec``) are the table here too. Whatever is not
plain (help, completion, grouped short options, an error of any kind) is left to Typer, before anything
was done, so that there is one help, one set of messages, and one meaning of a command line.
Tests hold both to the same values, requests, output and exit status.

Contract: shared/quality.md, "Speed and size".
"""

import os

from ..declare import catalogue, spec

# Numbers that need no judgement: as many digits as every interpreter reads at once.
_DIGITS = 18


class Unusual(Exception):
    """The command line is not one of the plain ones; Typer reads it."""


def run(arguments):
    """Run the command that a plain command line names and return its exit status; None, with nothing done, leaves it to Typer."""
    if "_CPERSONA_COMPLETE" in os.environ:
        return None
    try:
        command, options, values = parse(arguments)
    except Unusual:
        return None
    from ..session import Session

    session = Session(" ".join(command.path), options)
    try:
        return command.run(session, **values) or 0
    finally:
        session.close()


def parse(arguments):
    """Return (command, options that every command shares, values of its own parameters). Raises Unusual."""
    rest = list(reversed(arguments))
    options = {}
    flags = {flag: (key, parameter) for key, parameter in spec.COMMON.items() for flag in parameter.flags}
    while rest and _is_option(rest[-1]):
        key, value = _option(flags, rest)
        options[key] = value
    if not rest:
        raise Unusual
    command = _command(rest)
    values = {p.name: [] if p.many else p.default for p in command.parameters}
    flags = {flag: (key, spec.COMMON[key]) for key in command.common for flag in spec.COMMON[key].flags}
    flags.update({flag: (None, parameter) for parameter in command.parameters for flag in parameter.flags})
    positional = []
    while rest:
        word = rest[-1]
        if word == "--":
            rest.pop()
            positional += reversed(rest)
            break
        if not _is_option(word):
            positional.append(rest.pop())
            continue
        parameter = _named(flags, word)[1]
        key, value = _option(flags, rest)
        if key is not None:
            options[key] = value
        elif parameter.many:
            values[parameter.name].append(value)
        else:
            values[parameter.name] = value
    if spec.stray(command, options):
        raise Unusual
    _place(command, positional, values)
    return command, options, values


def _command(rest):
    """Take the words of a command and return its declaration. Raises Unusual."""
    name = rest.pop()
    if name not in catalogue.ENTRIES:
        raise Unusual
    path = (name,)
    if name in catalogue.FAMILIES:
        if not rest:
            raise Unusual
        path += (rest.pop(),)
    for command in catalogue.declared(name):
        if command.path == path:
            return command
    raise Unusual


def _is_option(word):
    return word[:1] == "-" and len(word) > 1


def _named(flags, word):
    """Return what an option's word stands for. Raises Unusual for one that is not known as it stands."""
    known = flags.get(word.partition("=")[0] if word.startswith("--") else word)
    if known is None:
        raise Unusual
    return known


def _option(flags, rest):
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


def _converted(parameter, text):
    """Return the value of a text that can only mean one thing. Raises Unusual."""
    if parameter.choices:
        if text not in parameter.choices:
            raise Unusual
        return text
    if parameter.kind == "text":
        return text
    whole, point, part = text.partition(".")
    digits = whole + part
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS) or (
        point and (parameter.kind == "int" or not whole or not part)
    ):
        raise Unusual
    value = int(text) if parameter.kind == "int" else float(text)
    if parameter.least is not None and value < parameter.least:
        raise Unusual
    return value


def _place(command, words, values):
    """Give the words that are no options to the command's arguments, in their order. Raises Unusual when they do not fit."""
    words = list(reversed(words))
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
