"""How a command is declared: its words, its parameters, its help. Imports nothing, so that declarations cost nothing.

A file of ``commands/`` declares its words with ``command``; ``app`` turns a declaration into a Typer command.
The docstring of the function is the help: its first line is the short form.
"""

TYPE_CHECKING = False  # as typing has it, which takes longer to load than a command takes to run
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping
    from typing import Any


class Parameter:
    """One argument or option. ``kind`` is text, int, float or flag; ``many`` may be repeated; ``least`` bounds a
    number from below.

    ``choices`` are the only words that it takes. ``values`` is what a shell offers for it: words, or the name of one of
    the sources in ``commands/_complete.py``; '' where nobody can know.
    """

    __slots__ = (
        "name",
        "flags",
        "kind",
        "default",
        "help",
        "metavar",
        "many",
        "required",
        "choices",
        "least",
        "values",
    )

    def __init__(
        self,
        name: str,
        flags: tuple[str, ...],
        kind: str,
        default: "Any",
        help: str,
        metavar: str | None,
        many: bool,
        required: bool,
        choices: tuple[str, ...],
        least: int | None = None,
        values: str | tuple[str, ...] = "",
    ) -> None:
        self.name, self.flags, self.kind, self.default, self.help = name, flags, kind, default, help
        self.metavar, self.many, self.required = metavar, many, required
        self.choices, self.least, self.values = choices, least, values


class Command:
    """A declared command: ``path`` is its words after `cpersona`, ``run(session, **values)`` answers an exit status."""

    __slots__ = ("path", "parameters", "common", "epilog", "run")

    def __init__(
        self,
        path: tuple[str, ...],
        parameters: tuple[Parameter, ...],
        common: tuple[str, ...],
        epilog: str | None,
        run: "Callable[..., int | None]",
    ) -> None:
        self.path, self.parameters, self.common, self.epilog, self.run = path, parameters, common, epilog, run

    @property
    def help(self) -> str:
        return self.run.__doc__ or ""


def argument(
    name: str,
    help: str,
    *,
    many: bool = False,
    required: bool = True,
    metavar: str | None = None,
    values: str | tuple[str, ...] = "",
) -> Parameter:
    """Declare a positional argument."""
    return Parameter(name, (), "text", None, help, metavar or name.upper(), many, required, (), None, values)


def option(
    flags: str,
    help: str,
    *,
    kind: str = "text",
    default: "Any" = None,
    metavar: str | None = None,
    many: bool = False,
    choices: tuple[str, ...] = (),
    name: str | None = None,
    least: int | None = None,
    values: str | tuple[str, ...] = "",
) -> Parameter:
    """Declare an option; ``flags`` is a space-separated list whose last long flag names it unless ``name`` does."""
    words = tuple(flags.split())
    name = name or [w for w in words if w.startswith("--")][-1][2:].replace("-", "_")
    return Parameter(name, words, kind, default, help, metavar, many, False, choices, least, values)


COMMON = {
    "db": option("--db", "The database file [env CPERSONA_DB_PATH].", metavar="FILE", values="files"),
    "host": option(
        "--host",
        "The machine whose memories are meant, reached through ssh [env CPERSONA_HOST].",
        metavar="[USER@]MACHINE",
    ),
    "agent": option(
        "--agent", "Whose memory is meant [env CPERSONA_AGENT; default: default].", metavar="NAME", values="agents"
    ),
    "project": option(
        "--project",
        "The project axis; '' is the global pool [env CPERSONA_PROJECT].",
        metavar="NAME",
        values="projects",
    ),
    "channel": option("--channel", "The channel axis [env CPERSONA_CHANNEL].", metavar="NAME", values="channels"),
    "session": option(
        "--session", "Your session's key: `pause --session KEY` keeps what is written with it out.", metavar="KEY"
    ),
    "json": option(
        "--json",
        "Print the daemon's whole answer as JSON; a row is its `ref`, your own key its `id`.",
        kind="flag",
        default=False,
    ),
    "quiet": option("-q --quiet", "Print no notes on stderr, only failures and warnings.", kind="flag", default=False),
}
# Of what may take long: here, because a command that is usually quick has them too and loads nothing for them.
WAIT = option(
    "--wait", "Return when the vectors are there too; Ctrl-C leaves them to the background.", kind="flag", default=False
)
PROGRESS = option(
    "--progress", "Say on stderr how far it is, in lines where that is no terminal.", kind="flag", default=False
)
# What `--json=NAME,…` stands for, in a command that has it.
JSON_FIELDS = "--json-fields"
AXES = ("agent", "project", "channel", "json", "quiet", "db", "host")
AGENT = ("agent", "json", "quiet", "db", "host")
ROWS = ("agent", "project", "json", "quiet", "db", "host")  # for a command that is given single rows
PLAIN = ("json", "quiet", "db", "host")
HERE = ("json", "quiet", "db")  # for one about this machine
WRITES = ("session",)  # beside one of these, for a command that writes


def spelled(word: str, flags: "Container[str]") -> str:
    """Return a word of a command line as the option that it stands for, where the command has these flags."""
    return JSON_FIELDS + word[len("--json") :] if word.startswith("--json=") and JSON_FIELDS in flags else word


def stray(command: Command, options: "Mapping[str, Any]") -> list[str]:
    """Return the keys of given options that a command does not have: those that stood before its words."""
    return [key for key in COMMON if options.get(key) not in (None, False) and key not in command.common]


def command(
    path: str, *parameters: Parameter, common: tuple[str, ...] = AXES, epilog: str | None = None
) -> "Callable[[Callable[..., int | None]], Command]":
    """Declare the decorated function as the command of these words; its module lists it in COMMANDS.

    ``epilog`` ends its help.
    """

    def declare(run: "Callable[..., int | None]") -> Command:
        return Command(tuple(path.split()), parameters, common, epilog, run)

    return declare
