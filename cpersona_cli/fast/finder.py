"""Finding our own files without searching for them: the package says where, the name says which.

Python asks every finder and lists every directory on its way to a module; for the thirty small files of a command that
takes an eighth of its time. Only where to look is decided here, reading stays Python's own: a file that is newer than
its compiled form is compiled anew. What is not where it should be, in an archive for instance, is left to the search.

Contract: speed.client.
"""

import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import SourceFileLoader, spec_from_file_location
from posix import stat

# The folders that a plain command enters. Their own files hold a docstring and nothing else, so these are not read.
# One that is missing here is found all the same, by the search.
FOLDERS = frozenset(
    {
        "cpersona_cli.commands",
        "cpersona_cli.declare",
        "cpersona_cli.fast",
        "cpersona_cli.git",
        "cpersona_cli.terminal",
        "cpersona_cli.wire",
        "cpersona_daemon.shared",
    }
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Finder:
    """A finder of ``sys.meta_path`` for the modules inside our two packages."""

    @staticmethod
    def find_spec(name: str, path: "Sequence[str] | None" = None, target: object = None) -> "ModuleSpec | None":
        """Return where a module of ours is, None for any other and for one that is not there."""
        if path is None or not name.startswith(("cpersona_cli.", "cpersona_daemon.")):
            return None
        place = f"{path[0]}/{name.rpartition('.')[2]}"
        if name in FOLDERS:
            folder = ModuleSpec(name, None, is_package=True)
            folder.submodule_search_locations = [place]
            return folder
        file = f"{place}.py"
        try:
            stat(file)
        except OSError:
            return None
        return spec_from_file_location(name, file, loader=SourceFileLoader(name, file))


def install() -> None:
    """Look here first from now on."""
    sys.meta_path.insert(0, Finder)
