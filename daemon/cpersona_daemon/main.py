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


def main(argv=None):
    """Run the daemon and return its exit status.

    0, that of the error that kept it from starting, or 130 for a Ctrl-C before it could serve.
    """
    try:
        return _run(argv)
    except KeyboardInterrupt:
        return 130  # fields.EXIT_INTERRUPTED; a second Ctrl-C must meet no import any more


def _run(argv):
    args = sys.argv[1:] if argv is None else argv
    foreground, ready_fd, backup, check, with_settings = False, None, None, False, False
    while args:
        arg, args = args[0], args[1:]
        if arg in ("-h", "--help"):
            sys.stdout.write(USAGE)
            return 0
        if arg == "--version":
            from . import __version__

            sys.stdout.write(f"cpersonad {__version__}\n")
            return 0
        if arg == "--doctor":
            from .life.doctor import main as doctor

            return doctor()
        if arg == "--foreground":
            foreground = True
        elif arg == "--check":
            check = True
        elif arg == "--settings":
            with_settings = True
        elif arg == "--restore" and args:
            backup, args = args[0], args[1:]
        elif arg == "--ready-fd" and args and args[0].isdigit():
            ready_fd, args = int(args[0]), args[1:]
        else:
            sys.stderr.write(f"cpersonad: {arg!r} is not understood\n{USAGE}")
            return 2
    return _serve(foreground, ready_fd) if backup is None else _restore(backup, check, with_settings)


def _restore(backup, check, with_settings):
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


def _serve(foreground, ready_fd):
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

    async def live():
        problem = logfile.start(settings.log_level, None if foreground else where.log)
        daemon = lifecycle.Daemon(settings, where, warnings=[problem] if problem else [])
        await daemon.run(lambda line: _tell(ready_fd, line))

    try:
        asyncio.run(live())
    except CPersonaError as error:
        sys.stderr.write(f"cpersonad: {error}; {error.hint}\n")
        return error.exit_status
    return 0


def _tell(ready_fd, line):
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
