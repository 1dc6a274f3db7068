"""Where the cursor is in a command line that is still being typed: which argument or option value it stands in.

Contract: commands.same.
"""

from . import catalogue, spec


class Place:
    """Where the cursor is: the ``parameter`` whose value it is (None for none), the ``text`` so far and what stands ``before`` it
    in the same word (`--agent=`); the common ``options`` and the ``given`` arguments of the command line.
    """

    __slots__ = ("parameter", "before", "text", "options", "given")

    def __init__(self, parameter, text, before="", options=None, given=()):
        self.parameter, self.text, self.before, self.options, self.given = (
            parameter,
            text,
            before,
            options or {},
            list(given),
        )


def place_of(words):
    """Return the Place of the last of the words behind `cpersona`."""
    *rest, current = words
    rest.reverse()
    command, path, options, given, dashes = None, [], {}, [], False
    flags = _flags(spec.COMMON)
    while rest:
        word = rest.pop()
        if word == "--" and not dashes:
            dashes = True
        elif word[:1] == "-" and len(word) > 1 and not dashes:
            name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
            key, parameter = flags.get(name, (None, None))
            if parameter is not None and parameter.kind != "flag" and not equals:
                if not rest:
                    return Place(parameter, current, options=options, given=given)
                value = rest.pop()
            if key is not None:
                options[key] = value
        elif command is None:
            path.append(word)
            command = _command(path)
            if command is None and len(path) > (path[0] in catalogue.FAMILIES):
                return Place(None, current)  # no command of ours: nothing is known of what follows
            if command is not None:
                flags = _flags({key: spec.COMMON[key] for key in command.common}, command.parameters)
        else:
            given.append(word)
    if current[:1] == "-" and not dashes:
        name, equals, value = current.partition("=")
        parameter = flags.get(name, (None, None))[1]
        return (
            Place(parameter, value, f"{name}=", options, given)
            if equals and name.startswith("--")
            else Place(None, current)
        )
    arguments = [parameter for parameter in command.parameters if not parameter.flags] if command is not None else []
    if len(given) >= len(arguments):
        arguments = arguments[-1:] * (len(given) + 1) if arguments and arguments[-1].many else []
    return Place(arguments[len(given)] if len(given) < len(arguments) else None, current, options=options, given=given)


def _command(path):
    return (
        next((command for command in catalogue.declared(path[0]) if list(command.path) == path), None)
        if path[0] in catalogue.ENTRIES
        else None
    )


def _flags(common, own=()):
    found = {flag: (key, parameter) for key, parameter in common.items() for flag in parameter.flags}
    return found | {flag: (None, parameter) for parameter in own for flag in parameter.flags}
