"""The server: the SDK's low-level one over standard input and output, until the client closes them.

Contract: tools.bridge, tools.answers.
"""

from __future__ import annotations

import json
import signal
from functools import partial
from typing import Any

import anyio
from anyio import from_thread, to_thread
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool, ToolAnnotations

from cpersona_daemon import __version__

from .bridge import Bridge, Outcome
from .tools import Offer

_AT_ONCE = 16  # calls; further ones wait their turn
_INSTRUCTIONS = """\
A durable memory of this machine. Recall before you answer from what may have been said earlier; store what will
matter later, one fact a memory. The last row of a recall is the best, and no rows is an answer."""


def serve(tools: dict[str, Offer], bridge: Bridge) -> None:
    """Serve these tools to the client at standard input and output; return when it has closed them."""
    # A thread that waits for the next line cannot be told to end; nothing is held here that Ctrl-C could spoil.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    anyio.run(_serve, _server(tools, bridge))


async def _serve(server: Server) -> None:
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def _server(tools: dict[str, Offer], bridge: Bridge) -> Server:
    listed = ListToolsResult(tools=[described(offer) for offer in tools.values()])

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        return listed

    async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
        offer = tools.get(params.name)
        if offer is None:
            return _result(
                Outcome(None, f"there is no tool {params.name!r} here; `cpersona mcp --help` says what leaves one out")
            )
        ask = partial(bridge.call, offer, params.arguments or {}, from_thread.check_cancelled)
        return _result(await to_thread.run_sync(ask, abandon_on_cancel=True, limiter=turns))

    turns = anyio.CapacityLimiter(_AT_ONCE)
    return Server(
        "cpersona",
        version=__version__,
        title="cpersona",
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def described(offer: Offer) -> Tool:
    """Return a tool as the protocol lists it."""
    return Tool(
        name=offer.name,
        description=offer.description,
        input_schema=offer.input_schema,
        output_schema=offer.output_schema,
        annotations=ToolAnnotations.model_validate(offer.annotations),
    )


def _result(outcome: Outcome) -> CallToolResult:
    """Return the answer as it is and as text, for clients that read no structured content; of a failure its line."""
    text = outcome.failure or json.dumps(outcome.response, ensure_ascii=False, separators=(",", ":"))
    return CallToolResult(
        content=[TextContent(text=text)], structured_content=outcome.response, is_error=bool(outcome.failure)
    )
