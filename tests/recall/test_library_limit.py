"""How many rows the library gives at most, whatever is asked over the wire. Contract: recall.limit."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("query", ["walnut", ""])
def test_the_library_gives_no_more_rows_than_its_own_limit(shared_daemon, query):
    for number in range(4):
        shared_daemon.call("store", {"agent_id": "library", "content": f"walnut number {number}"})
    for most, given in ((10_000, 4), (3, 3), (1, 1)):
        response, code = shared_daemon.call(
            "recall", {"agent_id": "library", "query": query}, overrides={"recall_library_max_limit": most}
        )
        rows = [row for row in response["messages"] if "ref" in row]
        assert (len(rows), code) == (given, None)
