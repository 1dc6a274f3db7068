"""The entry of `cpersona`: run one command, say what failed in one line, leave with an honest status.

Everything that is heavy is imported later, by the part that needs it: Typer in ``app``, the wire in
``client``, rich in ``render``. A plain command line is read without Typer (``quick``).

Contract: output.streams, exit.status.
"""

import os
import sys

# The C half alone: `signal` itself loads enum and functools.
from _signal import SIG_IGN, SIGINT, default_int_handler, getsignal, signal

from cpersona_daemon.shared import fields

TYPE_CHECKING = False  # as typing has it, which takes longer to load than a command takes to run
if TYPE_CHECKING:
    from .declare.spec import Command

# The word by which a completion script asks what may stand where the cursor is.
COMPLETE = "__complete"


def entry() -> None:
    """Run the process's command line and end the process. Never returns.

    The interpreter's own end takes a command's memory apart piece by piece, a fifth of its start; nothing of
    ours waits for that, so the system frees it at once.
    """
    try:
        if getsignal(SIGINT) is not SIG_IGN:
            signal(SIGINT, default_int_handler)
        status = main()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                pass  # whatever could not be written has made the status what it is
    except KeyboardInterrupt:  # outside of the command, where there is nothing to be said
        status = fields.EXIT_INTERRUPTED
    os._exit(status)


def main(argv: list[str] | None = None) -> int:
    """Run the command that ``argv`` names (default: the process's own) and return its exit status."""
    # An option with a value that may be left out takes the next word for it; this one's word stays the question.
    arguments = [
        "--explain-all" if word == "--explain=all" else word for word in (sys.argv[1:] if argv is None else argv)
    ]
    _fill_closed_streams()
    try:
        from .fast import quick
        from .terminal import output

        if arguments[:1] == [COMPLETE]:
            from .commands import _complete

            return _complete.main(arguments[1:])
        status = _run(quick.plain(arguments), arguments)
        output.flush()
        return status
    except KeyboardInterrupt:
        _silence_stdout()
        return fields.EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader has gone, as `head` does: what the shell reports for a program that SIGPIPE ended.
        _silence_stdout()
        return 141
    except Exception as error:
        return _failed(error, arguments)


def _run(plain: "tuple[Command, dict, dict] | None", arguments: list[str]) -> int:
    """Run a plain command line as it was read, any other one as Typer reads it, and return the exit status."""
    from . import session

    if plain is not None:
        return session.run(*plain)
    from .commands import _complete
    from .declare import app

    return app.run(arguments, app.Ways(session.run, _complete.offered))


def _fill_closed_streams() -> None:
    """Occupy standard descriptors that the caller closed, so that no socket or file of ours takes their place.

    What stands in for a closed stdout is not writable: data that nobody can read is a failure, not a success.
    """
    for number, name, mode, flags in (
        (0, "stdin", "r", os.O_RDONLY),
        (1, "stdout", "w", os.O_RDONLY),
        (2, "stderr", "w", os.O_WRONLY),
    ):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, flags)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115  # it outlives us


# What to do about a file that cannot be used, by the name of its error.
_FILE_HINTS = {
    FileNotFoundError: "check the path",
    IsADirectoryError: "name a file in it",
    NotADirectoryError: "check the path",
    PermissionError: "look at its owner and mode with `ls -ld`",
}


def _failed(error: Exception, arguments: list[str]) -> int:
    """Say a failure in one line and return its status; one that is no report of ours goes on its way."""
    status = getattr(error, "exit_status", None)
    if status is not None:
        line = str(error)
        from .terminal import failure

        hint = failure.named(getattr(error, "hint", ""), [word for word in arguments if not word.startswith("-")])
        if hint and hint not in line:
            line = f"{line}; {hint}"
    elif isinstance(error, OSError):
        status, line = fields.EXIT_FAILED, f"{error.filename or 'input or output'}: {error.strerror or error}"
        if type(error) in _FILE_HINTS:
            line = f"{line}; {_FILE_HINTS[type(error)]}"
    else:
        raise error
    try:
        sys.stdout.flush()
    except OSError:
        _silence_stdout()
    from .terminal import output

    output.to_stderr(f"cpersona: {line}")
    return status


def _silence_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's last flush has nothing to complain about."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)
    except OSError:
        pass
