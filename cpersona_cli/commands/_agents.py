"""A command about a whole agent, of which nothing is stored.

Contract: scope.axes, exit.status.
"""

from __future__ import annotations

from .. import exits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Answer, Session


def refuse_unknown(session: Session, answer: Answer, agent: str) -> None:
    """Raise Stop where nothing was done, because nothing is stored for the agent that was named."""
    if answer.response.get("unknown_agent"):
        raise exits.Stop(
            f"{session.name}: nothing is stored for an agent {agent!r} in {session.connection.places.db}; check the "
            "name, and nothing was changed"
        )
