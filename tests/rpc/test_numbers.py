"""Whole numbers of any size in any place of any method: an answer or a typed refusal, never a failure that nobody
foresaw.

Contract: wire.frames, answer.shape.
"""

from __future__ import annotations

import msgspec
import pytest

from cpersona_daemon.rpc.dispatch import HANDLERS
from cpersona_daemon.shared.methods import METHODS

SIZES = (-(2**63) - 0, -1, 0, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1)
# What would end the daemon, or write files.
LEFT_OUT = {"daemon_stop", "export_memories", "import_memories", "backup_database"}
NEEDED = {
    "agent_id": "a",
    "content": "text",
    "query": "text",
    "summary": "text",
    "profile": "text",
    "entity": "text",
    "text": "text",
    "precision": "strict",
    "memory_id": 1,
    "episode_id": 1,
    "canary_id": 1,
    "source_agent_id": "a",
    "target_agent_id": "b",
    "refs": ["mem:1"],
    "associations": {},
    "batch": "b",
    "ref": "mem:1",
    "external_context": [],
    "notes": [],
    "key": "k",
}


@pytest.mark.parametrize("method", [name for name in METHODS if name not in LEFT_OUT])
def test_a_number_of_any_size_in_any_field_is_answered_or_refused(shared_daemon, method):
    struct = HANDLERS[method].params
    needed = {f.encode_name: NEEDED.get(f.encode_name, "x") for f in msgspec.structs.fields(struct) if f.required}
    for field in msgspec.structs.fields(struct):
        for size in SIZES:
            for value in (
                size,
                [size],
                {"id": size},
                {"relations": [size], "mentions": [{"entity": size, "ref": f"mem:{size}"}]},
                f"mem:{size}",
                float(size),
            ):
                response, code = shared_daemon.call(method, needed | {field.encode_name: value})
                assert code != "internal", (field.encode_name, value, response)
    assert shared_daemon.call("list_memories", {"agent_id": "a"})[1] is None


def test_an_id_that_no_row_can_have_is_refused_by_name(shared_daemon):
    for method in ("lock_memory", "unlock_memory", "delete_memory"):
        response, code = shared_daemon.call(method, {"memory_id": 2**63})
        assert code == "invalid_params" and "between" in response["error"]
