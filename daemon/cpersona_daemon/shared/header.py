"""What the first bytes of a file say: whether it can be the database.

It is asked before anything is made beside the file, so that one that was named by mistake stays as it is, and alone.
Standard library only: the client reads this module too.
"""

from . import files

APPLICATION_ID = 0x43505331  # "CPS1": tells our file from any other SQLite database
MAGIC = b"SQLite format 3\0"
BYTES = 100
ELSEWHERE = "name another file with --db or CPERSONA_DB_PATH"


def foreign(path: str) -> str | None:
    """Return why the file at a path cannot be the database, None where it can be or where there is none."""
    try:
        head = files.read(path, BYTES)
    except OSError:
        return None  # there is none, or whoever opens it says why it cannot be read
    if head and not head.startswith(MAGIC):
        return (
            f"{path} is no SQLite database and stays as it is; {ELSEWHERE}, "
            "or put a backup in its place with `cpersona restore`"
        )
    if application(head) not in (0, APPLICATION_ID):
        return f"{path} is the database of another program and stays as it is; {ELSEWHERE}"
    return None


def marked(path: str) -> bool:
    """Tell whether a file says that it is our database."""
    try:
        return application(files.read(path, BYTES)) == APPLICATION_ID
    except OSError:
        return False


def application(head: bytes) -> int:
    """Return the number by which a SQLite database says whose it is; 0 where it does not say."""
    return int.from_bytes(head[68:72], "big")
