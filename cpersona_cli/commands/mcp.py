"""`mcp`: the memory as tools of the Model Context Protocol, over standard input and output.

Contract: tools.bridge, tools.fixed, tools.config.
"""

from __future__ import annotations

import os
import sys

from .. import exits
from ..declare.spec import WRITES, command, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..mcp.tools import Options
    from ..session import Session

_ALL = "all"
_SDK = ("mcp", "mcp_types", "anyio")


@command(
    "mcp",
    option(
        "--tools",
        "Which tools are offered: usual, the fourteen of daily work, or all.",
        default="usual",
        choices=("usual", _ALL),
        values=("usual", _ALL),
    ),
    option("--read-only", "Offer no tool that changes anything.", kind="flag", default=False),
    option("--print-config", "Print what the usual clients want to be told, and end.", kind="flag", default=False),
    common=(*WRITES, "agent", "project", "quiet", "db", "host"),
)
def mcp(session: Session, tools: str, read_only: bool, print_config: bool) -> None:
    """Serve the memory as tools to a client of the Model Context Protocol, on standard input and output.

    A client starts this itself; --print-config prints what it wants to be told. It needs the extra `mcp`. The daemon
    is started by the first call, and may be restarted at any time.

    --agent and --project fix these axes: they vanish from the tools, and no call leaves them; tools that cannot be held
    to them are not offered. What CPERSONA_AGENT, CPERSONA_PROJECT and CPERSONA_CHANNEL name is only meant where a call
    names none.

    Example:
      cpersona mcp --agent coder --print-config
      cpersona mcp --agent coder --project site --read-only
    """
    options = _options(session, tools == _ALL, read_only)
    if print_config:
        _print_config(session, tools, read_only)
        return
    try:
        from ..mcp import server
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in _SDK:
            raise
        raise exits.Stop(f"mcp: {_missing()}") from None
    from ..mcp.bridge import Bridge
    from ..mcp.tools import offered

    if sys.stdin.isatty():
        session.out.note("a client of the Model Context Protocol is to be at the other end; Ctrl-D ends")
    bridge = Bridge(session.settings, create=not read_only, session_key=session.options.get("session") or "")
    server.serve(offered(options), bridge)


def _missing() -> str:
    return (
        "the SDK of the Model Context Protocol is not installed; `pip install 'cpersona-cli[mcp]'` brings it, "
        f"or `{sys.executable} -m pip install 'mcp>=2.3,<3'`"
    )


def _options(session: Session, everything: bool, read_only: bool) -> Options:
    from ..mcp.tools import AXES, Options

    fixed = {axis: given for key, axis in AXES.items() if (given := session.options.get(key)) is not None}
    if fixed.get("agent_id") == "":
        raise exits.Usage("mcp: --agent fixes whose memory is meant, and '' is nobody; leave it out for every agent")
    return Options(everything, read_only, fixed, session.axes())


def _print_config(session: Session, tools: str, read_only: bool) -> None:
    """Print a block for each way in which clients are told of a server, with this command line's options in it."""
    from importlib.util import find_spec

    from ..mcp import config

    words = ["--tools", _ALL] if tools == _ALL else []
    words += ["--read-only"] if read_only else []
    for key in ("agent", "project", "session"):
        if session.options.get(key) is not None:
            words += [f"--{key}", session.options[key]]
    for clients, block in config.blocks(session.settings, words, os.environ):
        session.out.line(f"# {clients}\n{block}\n")
    for variable in config.unprinted(session.settings):
        session.out.note(f"{variable} is secret and not printed; add it to env by hand")
    if find_spec(_SDK[0]) is None:
        session.out.warn(f"cpersona: mcp: a client cannot start this yet: {_missing()}")


COMMANDS = (mcp,)
