"""`cpersonad`: the daemon of the database that the settings name. `--help` and `--version` import nothing heavy.

Contract: daemon.life.
"""

import os
import sys

USAGE = """\
usage: cpersonad [--foreground] [--ready-fd N]
       cpersonad --restore FILE [--check | --settings]
       cpersonad --doctor

Serve the cpersona database that CPERSONA_DB_PATH and the config file name, until
SIGTERM, `cpersona daemon stop`, or CPERSONA_IDLE_TIMEOUT seconds without work.
`cpersona` starts it by itself; a service manager runs `cpersonad --foreground`.

  --foreground   write the log to standard error instead of the log file
  --ready-fd N   write one line of JSON to descriptor N once ready, or why not
  --restore FILE put a backup in the place of the database while no daemon has
                 it, and print one line of JSON; `cpersona restore` calls this
  --check        with --restore: verify the backup and change nothing
  --settings     with --restore: write its settings where there is no config file
  --doctor       look at the installation and print one line of JSON a check
  --version      print the version
  --help         print this
"""


class _Asked:
    """What the command line asks for."""

    foreground = False
    check = False
    settings = False
    restore: str | None = None
    ready_fd: int | None = None


# What a word of the command line sets; ``--restore FILE`` and ``--ready-fd N`` take the next word as well.
_SWITCHES = {"--foreground": "foreground", "--check": "check", "--settings": "settings"}
_VALUES: dict[str, tuple[str, type]] = {"--restore": ("restore", str), "--ready-fd": ("ready_fd", int)}


def main(argv: list[str] | None = None) -> int:
    """Run the daemon and return its exit status.

    0, that of the error that kept it from starting, or 130 for a Ctrl-C before it could serve.
    """
    try:
        return _run(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        return 130  # fields.EXIT_INTERRUPTED; a second Ctrl-C must meet no import any more


def _run(words: list[str]) -> int:
    """Do what the words ask for, the first of them that asks for something at once, and return the exit status."""
    asked, left = _Asked(), list(words)
    while left:
        word = left.pop(0)
        if word in _AT_ONCE:
            return _AT_ONCE[word]()
        if word in _SWITCHES:
            setattr(asked, _SWITCHES[word], True)
        elif word in _VALUES and left and (_VALUES[word][1] is str or left[0].isdigit()):
            name, kind = _VALUES[word]
            setattr(asked, name, kind(left.pop(0)))
        else:
            sys.stderr.write(f"cpersonad: {word!r} is not understood\n{USAGE}")
            return 2
    if asked.restore is None:
        return _serve(asked.foreground, asked.ready_fd)
    return _restore(asked.restore, asked.check, asked.settings)


def _help() -> int:
    sys.stdout.write(USAGE)
    return 0


def _version() -> int:
    from . import __version__

    sys.stdout.write(f"cpersonad {__version__}\n")
    return 0


def _doctor() -> int:
    from .life.doctor import main as doctor

    return doctor()


_AT_ONCE = {"-h": _help, "--help": _help, "--version": _version, "--doctor": _doctor}


def _restore(backup: str, check: bool, with_settings: bool) -> int:
    """Restore or check a backup; print what came of it as one line of JSON and return the exit status."""
    import json

    os.umask(0o077)
    from .errors import CPersonaError
    from .life import ownership
    from .portability.backup import restore
    from .shared.paths import places
    from .shared.settings import load

    settings = load()
    try:
        if check:
            told = restore.check(backup)
        else:
            told = restore.restore(backup, settings, places(settings), ownership.held, with_settings)
        status = 0
    except CPersonaError as error:
        told, status = {"ok": False, "error": str(error), "code": error.code}, error.exit_status
    sys.stdout.write(json.dumps(told) + "\n")
    return status


def _serve(foreground: bool, ready_fd: int | None) -> int:
    os.umask(0o077)
    if ready_fd is not None:
        os.set_inheritable(ready_fd, False)
    try:
        import asyncio

        from .errors import CPersonaError
        from .life import lifecycle, logfile
        from .shared.paths import places
        from .shared.settings import load
    except ImportError as error:  # half an installation: whoever started us should read which half is missing
        _tell(ready_fd, {"error": f"the installation is incomplete: {error}", "code": "internal"})
        raise
    settings = load()
    where = places(settings)

    async def live() -> None:
        problem = logfile.start(settings.log_level, None if foreground else where.log)
        daemon = lifecycle.Daemon(settings, where, warnings=[problem] if problem else [])
        await daemon.run(lambda line: _tell(ready_fd, line))

    try:
        asyncio.run(live())
    except CPersonaError as error:
        sys.stderr.write(f"cpersonad: {error}; {error.hint}\n")
        return error.exit_status
    return 0


def _tell(ready_fd: int | None, line: dict) -> None:
    """Write one JSON line to whoever started us, and close the descriptor; that they may be gone is no failure."""
    if ready_fd is None:
        return
    import json

    try:
        os.write(ready_fd, json.dumps(line).encode() + b"\n")
    except OSError:
        pass
    os.close(ready_fd)


if __name__ == "__main__":
    raise SystemExit(main())
