"""The Typer tree, built from the declarations in ``commands/``, one command at a time.

A command is built when it is called, completed or asked for help, so that no call pays for the others.
Building, help and completion touch neither daemon nor database.
"""

import inspect
import os
import sys
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand, TyperGroup

from cpersona_daemon import __version__
from cpersona_daemon.shared import fields

from ..exits import Usage
from . import catalogue, guessing, spec
from .place import Place

_TYPES = {"text": str, "int": int, "float": float, "flag": bool}
_INTRODUCTION = "A durable, honest memory for agents, scripts and people, offline."
_HALF = 44
_SCREEN = 24
_HELP_NAMES = {"help_option_names": ["-h", "--help"]}


class Ways:
    """What a parsed command line comes to: ``run(command, options, values)`` runs it, ``offered(place)`` completes it.

    They are handed in, because what a command works with (session, wire, terminal) stands above its declaration.
    """

    def __init__(
        self, run: Callable[[spec.Command, dict, dict], int], offered: Callable[[Place], list[tuple[str, str]]]
    ) -> None:
        self.run, self.offered = run, offered


def build() -> typer.Typer:
    """Return the whole tree as the Typer application that completion scripts and ``run`` share."""
    app = typer.Typer(
        name="cpersona",
        cls=Root,
        help=_INTRODUCTION,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=_HELP_NAMES,
    )
    app.callback()(_root_callback())
    return app


def run(arguments: list[str], ways: Ways | None = None) -> int:
    """Parse ``arguments``, run the command they name and return its exit status.

    Without ``ways`` it can only explain: help, and what is wrong. Raises Usage and what the command raises.
    """
    completing = bool(os.environ.get("_CPERSONA_COMPLETE"))
    if not arguments and not completing:
        print(help_screen(), end="", file=sys.stderr)
        return fields.EXIT_USAGE
    root = typer.main.get_command(build())
    try:
        if completing:
            return root.main(arguments, prog_name="cpersona", standalone_mode=False, obj=ways)
        # Not through main(): it makes an exit status of its own from a reader that left and from an interrupt.
        with root.make_context("cpersona", list(arguments), obj=ways) as context:
            return root.invoke(context) or fields.EXIT_OK
    except typer.Exit as leave:
        return leave.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None
    except Exception as error:
        # Typer's own reports carry show() and exit_code; everything else goes on its way.
        if not hasattr(error, "show"):
            raise
        raise _usage(error) from None


def _usage(error: Any) -> Usage:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "cpersona"
    where = path.removeprefix("cpersona").strip()
    # Typer names the type of a bounded number after its bounds.
    message = error.format_message().strip()
    message = (message[:1].lower() + message[1:].rstrip(".")).replace(
        " is not a valid int range", " is not a valid int"
    )
    if context is not None and isinstance(context.command, Single):
        said = guessing.unreadable(context.command.declared, context.command.given, message)
        if said is not None:
            return Usage(said)
    return Usage(f"{where + ': ' if where else ''}{message}; see `{path} --help`")


class Root(TyperGroup):
    """The top of the tree: names come from the catalogue, commands are built on demand, help is one screen."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = dict.fromkeys(catalogue.ENTRIES)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if not ctx.resilient_parsing and args[0] not in catalogue.ENTRIES:
            raise Usage(guessing.unknown("", args))
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, name: str) -> Any:
        if name not in catalogue.ENTRIES:
            return None
        if name in catalogue.FAMILIES:
            return Family(name)
        return built(catalogue.declared(name)[0])

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(help_screen())

    def shell_complete(self, ctx: Any, incomplete: str) -> list:
        named = list(catalogue.ENTRIES.items())
        return _completions(incomplete, named) or super(TyperGroup, self).shell_complete(ctx, incomplete)


class Single(TyperCommand):
    """A command by itself. Its usage line names what must be given as it is, where Typer puts braces around it.

    ``declared`` is its declaration, ``given`` the words behind it, for a message about words that cannot be read.
    """

    declared: spec.Command
    given: list[str]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        self.given = list(args)
        flags = {flag for parameter in self.declared.parameters for flag in parameter.flags}
        end = args.index("--") if "--" in args else len(args)
        try:
            return super().parse_args(ctx, [*(spec.spelled(word, flags) for word in args[:end]), *args[end:]])
        except Exception as raised:
            # Of an option that lacks its value the parser does not say whose it is.
            error: Any = raised
            if getattr(error, "ctx", ctx) is None:
                error.ctx = ctx
            raise

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


class Family(TyperGroup):
    """A command that has commands of its own, such as `daemon`; alone it does what ``catalogue.UNNAMED`` says."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, help=catalogue.FAMILIES[name], rich_markup_mode=None, context_settings=_HELP_NAMES)
        self._name = name
        self._declared = {command.path[1]: command for command in catalogue.declared(name)}
        self.commands: Any = dict.fromkeys(self._declared)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing and (
            not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names)
        ):
            args = [catalogue.UNNAMED[self._name], *args]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if not ctx.resilient_parsing and args[0] not in self._declared:
            raise Usage(guessing.unknown(self._name, args))
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, name: str) -> Any:
        return built(self._declared[name]) if name in self._declared else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _first_line(command.help)) for name, command in self._declared.items()])

    def shell_complete(self, ctx: Any, incomplete: str) -> list:
        named = [(name, _first_line(command.help)) for name, command in self._declared.items()]
        return _completions(incomplete, named) or super(TyperGroup, self).shell_complete(ctx, incomplete)


def built(command: spec.Command) -> Any:
    """Return one declared command as Typer's command object."""
    app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)
    app.command(
        name=command.path[-1], cls=Single, help=_help(command.help), epilog=command.epilog, context_settings=_HELP_NAMES
    )(_callback(command))
    made: Any = typer.main.get_command(app)
    made.declared = command
    return made


def _help(text: str) -> str:
    """Return a docstring as help: the example keeps its lines, everything else is wrapped to the screen."""
    return inspect.cleandoc(text).replace("\n\nExample", "\n\n\b\nExample")


def _callback(command: spec.Command) -> Callable[..., int]:
    common = [spec.COMMON[name] for name in command.common]
    common_names = {p.name: key for key, p in ((k, spec.COMMON[k]) for k in command.common)}

    def callback(context: typer.Context, **values: Any) -> Any:
        options = dict(context.find_root().params)
        for parameter, key in common_names.items():
            value = values.pop(parameter)
            if value not in (None, False):
                options[key] = value
        _check(command, options)
        return context.obj.run(command, options, values)

    _sign(
        callback,
        [inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)],
        [*command.parameters, *common],
    )
    return callback


def _check(command: spec.Command, options: dict) -> None:
    """Raise Usage for an option before the words of a command that does not have it: it would have no effect."""
    name = " ".join(command.path)
    for key in spec.stray(command, options):
        taken = ", ".join(spec.COMMON[other].flags[0] for other in command.common)
        raise Usage(
            f"{name} takes no {spec.COMMON[key].flags[-1]}, of the common options only {taken};"
            f" see `cpersona {name} --help`"
        )


def _root_callback() -> Callable[..., None]:
    def callback(**values: Any) -> Any:
        pass

    version = inspect.Parameter(
        "version",
        inspect.Parameter.KEYWORD_ONLY,
        default=False,
        annotation=Annotated[
            bool,
            typer.Option(
                "--version", "-V", help="Print the version and leave.", is_eager=True, callback=_print_version
            ),
        ],
    )
    _sign(callback, [], list(spec.COMMON.values()), [version])
    return callback


def _print_version(value: bool) -> None:
    if value:
        print(f"cpersona {__version__}")
        raise typer.Exit()


def _sign(
    function: Any,
    before: list[inspect.Parameter],
    parameters: Iterable[spec.Parameter],
    after: Iterable[inspect.Parameter] = (),
) -> None:
    """Give a function the signature that Typer reads: one keyword for each declared parameter."""
    signed = [*before, *(_signature(p) for p in parameters), *after]
    function.__signature__ = inspect.Signature(signed)
    function.__annotations__ = {p.name: p.annotation for p in signed}


def _signature(parameter: spec.Parameter) -> inspect.Parameter:
    base: Any = Literal[parameter.choices] if parameter.choices else _TYPES[parameter.kind]
    if parameter.many:
        base = list[base]
    elif parameter.kind != "flag" and parameter.default is None and not parameter.required:
        base = base | None
    offers = _offers(parameter) if parameter.values not in ("", "files") else None
    meta: Any
    if parameter.flags:
        meta = typer.Option(
            *parameter.flags, help=parameter.help, metavar=parameter.metavar, min=parameter.least, autocompletion=offers
        )
    else:
        meta = typer.Argument(help=parameter.help, metavar=parameter.metavar, show_default=False, autocompletion=offers)
    default = inspect.Parameter.empty if parameter.required else () if parameter.many else parameter.default
    return inspect.Parameter(
        parameter.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[base, meta]
    )


def _offers(parameter: spec.Parameter) -> Callable[[typer.Context, str], list[tuple[str, str]]]:
    """Return what Typer calls to complete a parameter's value: the values that the completion scripts offer too."""

    def complete(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
        given = {**ctx.find_root().params, **{name: value for name, value in ctx.params.items() if value is not None}}
        options = {key: given.get(key) for key in spec.COMMON}
        return ctx.find_root().obj.offered(
            Place(parameter, incomplete, options=options, given=given.get("words") or ())
        )

    return complete


def help_screen() -> str:
    """Return what `cpersona --help` prints: every command in its group, within 80 columns and one screen."""
    lines = ["Usage: cpersona [OPTIONS] COMMAND [ARGS]...", *_wrapped(_INTRODUCTION), ""]
    for title, entries in catalogue.GROUPS:
        cells = [f"{', '.join(_sharing(name)):<12} {phrase}" for name, phrase, *place in entries if not place]
        for at in range(0, len(cells), 2):
            left = f"{title if at == 0 else '':<8} {cells[at]}"
            lines.append(f"{left:<{_HALF}} {cells[at + 1] if at + 1 < len(cells) else ''}".rstrip())
    lines += [
        "",
        *_wrapped(
            "Common options: --db FILE, --host, --agent, --project, --channel NAME, --json, -q; alone: "
            "--version, --install-completion. `cpersona COMMAND --help` has examples."
        ),
    ]
    while len(lines) > _SCREEN and "" in lines:
        lines.remove("")  # room for a row of commands more
    return "\n".join(lines) + "\n"


def _sharing(name: str) -> list[str]:
    """Return an entry's name and the words that share its place."""
    return [name, *(word for word, place in catalogue.PLACE_OF.items() if place == name)]


def _wrapped(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, 79)


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0].split(". ")[0].split(": ")[0].rstrip(".")


def _completions(incomplete: str, named: Iterable[tuple[str, str]]) -> list:
    """Return the (name, phrase) pairs that begin like the word so far, in Typer's form; no command is built for it."""
    from typer._click.shell_completion import CompletionItem

    return (
        []
        if incomplete.startswith("-")
        else [CompletionItem(name, help=phrase) for name, phrase in named if name.startswith(incomplete)]
    )
