"""`config`: every setting, its value and where it came from, and the file that sets them. Asks no daemon.

Contract: settings.order, paths.places, config.written.
"""

from __future__ import annotations

from .. import exits
from ..declare.spec import HERE, argument, command
from ..session import Session
from ..terminal import reading, render
from ..terminal.output import Output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from cpersona_daemon.shared.settings import Settings
    from cpersona_daemon.shared.settings_table import Setting


@command(
    "config show",
    argument(
        "names",
        "Only these settings; all of them without.",
        many=True,
        required=False,
        metavar="NAME…",
        values="settings",
    ),
    common=HERE,
)
def show(session: Session, names: list[str]) -> None:
    """Show every setting, its value and where it came from: option, environment, config file or default.

    A running daemon keeps the values it was started with; `cpersona daemon restart` applies new ones.
    Values that contradict each other are named on stderr: the daemon would refuse to start. Secrets are
    masked: the token, and the user name, password and query of the embedding service's address.

    Example:
      cpersona config show
      CPERSONA_RECALL_MODE=rsf cpersona config show recall_mode
    """
    from cpersona_daemon.shared import settings_table as table

    wanted = [name.strip().lower().removeprefix("cpersona_") for name in names]
    for name in wanted:
        if name not in table.BY_NAME:
            raise exits.Usage(f"there is no setting {name!r}; `cpersona config show` lists them")
    current, out = session.settings, session.out
    rows = [_row(current, setting) for setting in table.TABLE if not wanted or setting.name in wanted]
    if out.as_json:
        out.json({"settings": rows, "warnings": list(current.warnings), "conflicts": current.conflicts()})
    elif out.draws:
        for row in rows:
            _draw(out, row)
    else:
        lines = [[row["name"], _text(row["value"]), row["origin"], _explained(row)] for row in rows]
        render.table(out, ("setting", "value", "origin", "meaning"), lines)
    for conflict in current.conflicts():
        out.warn(f"cpersona: {conflict}; the daemon refuses to start with this")


def _row(current: Settings, setting: Setting) -> dict:
    """Return what is shown of one setting."""
    return {
        "name": setting.name,
        "value": setting.shown(getattr(current, setting.name)),
        "origin": current.origin(setting.name),
        "default": setting.default_in(current.recall_mode),
        "default_text": setting.default_text,
        "range": setting.range_text,
        "meaning": setting.meaning,
        "variable": setting.variable,
    }


def _draw(out: Output, row: dict) -> None:
    default = "" if row["origin"] == "default" or _is_by_mode(row) else f", default {row['default_text']}"
    out.wrapped(f"{row['name']} = {_text(row['value']) or '(empty)'}  ({row['origin']})")
    out.wrapped(f"    {_explained(row)}; {row['range']}{default}", "    ")


def _explained(row: dict) -> str:
    """Return what a setting means, and where its default hangs on the recall mode, what that is."""
    return f"{row['meaning']}; default {row['default_text']}" if _is_by_mode(row) else row["meaning"]


def _is_by_mode(row: dict) -> bool:
    from cpersona_daemon.shared import settings_table as table

    return bool(table.BY_NAME[row["name"]].by_mode)


@command(
    "config path",
    argument(
        "which",
        "config, db, socket, log, calibration or spool.",
        required=False,
        metavar="NAME",
        values=("config", "db", "socket", "log", "calibration", "spool"),
    ),
    common=HERE,
)
def path(session: Session, which: str | None) -> None:
    """Print where something lives: the config file, or the database and what belongs to it.

    Example:
      cpersona config path
    """
    from cpersona_daemon.shared import paths, settings

    places = paths.places(session.settings)
    known = {
        "config": settings.config_path(),
        "db": places.db,
        "socket": places.socket,
        "log": places.log,
        "calibration": places.calibration,
        "spool": places.spool,
    }
    if which is not None and which not in known:
        raise exits.Usage(f"config path knows no {which!r}; it takes {', '.join(known)}")
    if session.out.as_json:
        session.out.json(known if which is None else {which: known[which]})
    else:
        session.out.line(known[which or "config"])


@command(
    "config set",
    argument("name", "The setting.", metavar="NAME", values="settings"),
    argument(
        "value",
        "Its value; '' is the default again, - reads it from standard input.",
        metavar="VALUE|-",
        values="setting_values",
    ),
    common=HERE,
)
def set_(session: Session, name: str, value: str) -> None:
    """Write a setting into the config file. What is not a value of it, or contradicts another, is not written.

    Comments and all else in the file stay as they are. What the environment says wins over the file, and is named. It
    is said whether a running daemon must be started anew for it.

    Example:
      cpersona config set recall_mode rrf
      cpersona config set embedding_api_key - < key.txt
    """
    from cpersona_daemon.shared import settings
    from cpersona_daemon.shared import settings_table as table

    from . import _config_file as config

    short, out = name.strip().lower().removeprefix("cpersona_"), session.out
    if short not in table.BY_NAME:
        raise exits.Usage(f"there is no setting {short!r}; `cpersona config show` lists them")
    setting = table.BY_NAME[short]
    given = reading.read_text("-", out).strip("\n") if value == "-" else value
    try:
        parsed = settings.parse(setting, given) if given.strip() else ""
    except settings.BadValue as error:
        raise exits.Stop(f"config set: {error}; nothing was written") from None
    file = config.ConfigFile()
    try:
        before = config.values_of(file.text)
        text = config.with_value(file.text, setting, parsed)
    except ValueError as error:
        raise exits.Stop(f"config set: {file.path}: {error}; nothing was written") from None
    _refuse(config.contradictions({**before, short: parsed}), config.contradictions(before), "config set")
    file.replace(text)
    shown = setting.shown(parsed) if given.strip() else setting.shown(setting.default_in(session.settings.recall_mode))
    if out.as_json:
        out.json({"ok": True, "name": short, "value": shown, "path": file.path})
    else:
        out.record((short, _text(shown)))
    _say_effect(session, {short})


@command("config edit", common=HERE)
def edit(session: Session) -> None:
    """Open the config file in your editor, VISUAL or EDITOR (else vi). It is written only if all of it is sound.

    Where a line is no setting, a value is none of its setting or two contradict each other, the file stays as it was
    and it is said in which private file your text is kept.

    Example:
      cpersona config edit
    """
    from ..terminal.editor import Draft
    from . import _config_file as config

    file, out = config.ConfigFile(), session.out
    with Draft(out, "config edit", "config.toml", file.text or _BEGUN) as draft:
        text = draft.edited()
        if text is None or not text.strip():
            out.note(f"the text is {'as it was' if text is None else 'empty'}; {file.path} is not changed")
            if out.as_json:
                out.json({"ok": True, "path": file.path, "changed": []})
            return
        try:
            values = config.values_of(text)
        except ValueError as error:
            raise exits.Stop(f"config edit: {error}; nothing was written") from None
        _refuse([*config.problems(values), *config.contradictions(values)], [], "config edit")
        file.replace(text if text.endswith("\n") else text + "\n")
    try:
        before = config.values_of(file.text)
    except ValueError:
        before = {}
    changed = {name for name in {*before, *values} if before.get(name) != values.get(name)}
    if out.as_json:
        out.json({"ok": True, "path": file.path, "changed": sorted(changed)})
    else:
        out.line(file.path)
    _say_effect(session, changed)


# What a config file that is not there yet begins with in an editor.
_BEGUN = """# Settings of cpersona, one NAME = VALUE a line; `cpersona config show` lists them with what they mean.
# recall_mode = "blend"
"""


def _refuse(found: list[str], known: list[str], doing: str) -> None:
    """Raise Stop for what is wrong with values that are about to be written, but for what was wrong before."""
    news = [problem for problem in found if problem not in known]
    if news:
        more = f" (and {len(news) - 1} more)" if len(news) > 1 else ""
        raise exits.Stop(f"{doing}: {news[0]}{more}; nothing was written")


def _say_effect(session: Session, names: Collection[str]) -> None:
    """Say of changed settings which the environment overrules, and whether a running daemon must be restarted."""
    import os

    from cpersona_daemon.shared import settings_table as table
    from cpersona_daemon.shared.paths import places

    from ..wire import control

    settings = [table.BY_NAME[name] for name in names if name in table.BY_NAME]
    overruled = sorted(setting.variable for setting in settings if setting.variable in os.environ)
    if overruled:
        session.out.warn(f"cpersona: {', '.join(overruled)} in the environment wins over the file")
    scopes = {setting.scope for setting in settings if setting.variable not in os.environ}
    if table.PLACE in scopes:
        session.out.note("commands look there from now on; a daemon of the former place goes on until it leaves")
    elif table.DAEMON in scopes and control.may_run(places(session.settings)):
        session.out.note("the running daemon keeps the former value; `cpersona daemon restart` applies this one")
    elif scopes:
        session.out.note("in force from the next command on; no running daemon must be restarted for it")


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return "" if value is None else str(value)


COMMANDS = (show, path, set_, edit)
