"""`backup`: the whole store as one verified file.

Contract: backup.file, exit.status.
"""

from __future__ import annotations

import os

from .. import exits
from ..declare.spec import PLAIN, argument, command
from ..terminal import progress
from ._copies import ROWS, counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session


@command(
    "backup", argument("file", "Where to write; a name that ends in gz is compressed.", values="files"), common=PLAIN
)
def backup(session: Session, file: str) -> int:
    """Write database, calibration and settings as one file, while everybody goes on reading and writing.

    Which database was saved, and how much is in it, is said; that it is empty is said with --quiet too.

    The file appears whole, private and checked, or not at all; the copy is the store of one moment. Tokens are
    left out. `restore` brings it back, on an empty machine too.

    Example:
      cpersona backup ~/backups/cpersona-$(date +%F).tar.gz
    """
    params = {"output_path": os.path.abspath(_here(session, file))}
    shown = progress.shown(session.out, session.name)
    if shown is None:
        answer = session.ask("backup_database", params)
    else:
        with shown:
            answer = session.ask("backup_database", params, progress=shown)
    if not session.show(answer):
        response = answer.response
        session.out.line(response.get("path", params["output_path"]))
        if response.get("without"):
            session.out.warn(
                f"cpersona backup: the backup is without what is not cpersona's own: {', '.join(response['without'])}"
            )
        saved = response.get("database", session.connection.places.db)
        session.out.note(
            f"saved {saved}: {counted(response)}; {response.get('bytes')} bytes, verified; `cpersona restore {file}` "
            "brings it back"
        )
        if not any(response.get(name) for name in ROWS):
            session.out.warn(
                f"cpersona backup: the database that was saved, {saved}, is empty; --db FILE or CPERSONA_DB_PATH "
                "names another one"
            )
    return answer.status


def _here(session: Session, file: str) -> str:
    """Return the file's name, where it is one of the machine that has the database. Raises Usage."""
    if not session.settings.host:
        return file
    host = session.settings.host
    raise exits.Usage(
        f"backup writes a file of the machine that has the database, which is {host}: "
        f"`ssh {host} cpersona backup FILE` writes one there"
    )


COMMANDS = (backup,)
