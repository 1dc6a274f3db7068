"""The one daemon of a module, and rows to look at."""

from __future__ import annotations

import pytest

ROWS = (
    "Deploys run from the release branch since the audit",
    "The nightly export fails with E1042 when the disk is full",
    "Alice owns the billing service; ask her before changing invoices",
    "Deploys of the site wait for Alice",
)


@pytest.fixture(scope="module")
def refs(shared_daemon):
    """The refs of ROWS; two rows of a project and one of another stand beside them."""
    ask = shared_daemon.call
    found = [f"mem:{ask('store', {'agent_id': 'default', 'content': text})[0]['id']}" for text in ROWS]
    for text in ("the site is built with make", "the site has a staging host"):
        ask("store", {"agent_id": "default", "content": text, "project_id": "site", "channel": "ops"})
    ask("store", {"agent_id": "default", "content": "the site of the shop", "project_id": "shop", "channel": "ops"})
    return found
