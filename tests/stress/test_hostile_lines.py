"""Whatever a program writes into `call --stdin`, each line is answered, and the daemon lives on.

Contract: call.lines.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys

import pytest
from stress_kit import FULL

from cpersona_daemon.shared.methods import METHODS

pytestmark = pytest.mark.stress

LINES = 20_000 if FULL else 1_500
# These end the daemon, or take the test's files and its patience.
SPARED = {"daemon_stop", "export_memories", "import_memories", "backup_database"}
NAMES = (
    "agent_id",
    "content",
    "query",
    "limit",
    "memory_id",
    "ids",
    "refs",
    "message",
    "source",
    "metadata",
    "timestamp",
    "associations",
    "project_id",
    "channel",
    "exclude_content",
    "source_id",
    "history",
    "summary",
    "keywords",
    "episode_id",
    "precision",
    "ttl_seconds",
    "session_key",
    "lock",
    "deep",
    "checks",
    "text",
)
VALUES = (
    "null",
    "true",
    "0",
    "-1",
    "1.5",
    "1e999",
    "-1e999",
    "NaN",
    "Infinity",
    "-Infinity",
    "9223372036854775807",
    "-9223372036854775809",
    "1" * 400,
    "-0.0",
    "1e-400",
    '""',
    '"a"',
    '"\\u0000"',
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\ud83d\\ude00"',
    '"\\u202e\\u200b"',
    '"' + "x" * 70_000 + '"',
    '"\'; DROP TABLE memories; --"',
    '"* NOT \\" ( NEAR"',
    '"..\\/..\\/etc"',
    "[]",
    "{}",
    '["a", 1, null]',
    "[[], {}]",
    '{"a": {"b": [1]}}',
    '{"type": "User", "id": "\\u0000"}',
    '{"\\ud800": 1}',
    "[" * 70 + "]" * 70,
    "[" * 3000 + "]" * 3000,
    '{"a":' * 70 + "1" + "}" * 70,
)
GARBAGE = (
    b"\xff\xfe",
    b"\x00",
    b"\xef\xbb\xbf{}",
    b"\xc0\xaf",
    b"\xed\xa0\x80",
    b"nul",
    b"{",
    b'{"id":1',
    b'"',
    b"[" * 100_000,
    b'{"id":1,"id":2}',
    b"\x1b[31m",
    b"\x7f" * 9,
)


def line(some: random.Random) -> bytes:
    """A request with hostile values, sometimes with bytes changed, or no request at all."""
    kind = some.random()
    if kind < 0.05:
        return some.choice(GARBAGE)
    params = {"agent_id": '"a"'} if some.random() < 0.7 else {}
    params |= {some.choice(NAMES): some.choice(VALUES) for _ in range(some.randrange(4))}
    method = some.choice([name for name in METHODS if name not in SPARED])
    parts = [
        f'"id": {some.choice(VALUES) if kind < 0.1 else some.randrange(1000)}',
        f'"method": "{method}"',
        '"params": {' + ", ".join(f'"{name}": {value}' for name, value in params.items()) + "}",
    ]
    for name in ("deadline_ms", "overrides", "idempotency_key", "progress"):
        if some.random() < 0.05:
            parts.append(f'"{name}": {some.choice(VALUES)}')
    written = bytearray(("{" + ", ".join(parts) + "}").encode())
    if some.random() < 0.15:
        for _ in range(some.randrange(1, 4)):
            written[some.randrange(len(written))] = some.randrange(256)
    return bytes(written).replace(b"\n", b" ").replace(b"daemon_stop", b"daemon_stap")


def run(home: dict[str, str], given: bytes) -> list[dict]:
    done = subprocess.run(
        [sys.executable, "-m", "cpersona_cli", "call", "--stdin"],
        env=home,
        input=given,
        capture_output=True,
        timeout=900,
    )
    assert done.returncode == 0 and b"Traceback" not in done.stderr, done.stderr[-2000:]
    return [json.loads(answer) for answer in done.stdout.splitlines()]


def test_every_hostile_line_is_answered_once_and_the_daemon_survives(home, daemon):
    some = random.Random(7)
    lines = [made for made in (line(some) for _ in range(LINES)) if made.strip()]
    answers = run(home, b"\n".join(lines) + b"\n")
    assert len(answers) == len(lines)
    for sent, answer in zip(lines, answers, strict=True):
        assert set(answer) == {"id", "response"} and isinstance(answer["response"], dict), sent[:300]
        if answer["response"].get("ok") is False:
            assert answer["response"].get("error") or answer["response"].get("reason"), (sent[:300], answer)
    status = daemon.call("daemon_status", {})[0]
    assert status["pid"] == daemon.hello["pid"]
    assert [error for error in status["last_errors"] if error.get("code") == "internal"] == []
    assert daemon.call("check_health", {"checks": ["sqlite_integrity"]})[0]["issues"] == []


@pytest.mark.parametrize(
    "content", ["x" * 10_000_000, "\U0001f600" * 2_500_000, "\\u0000" * 1_000_000, "a\\n" * 3_000_000]
)
def test_ten_megabytes_of_text_are_answered(home, daemon, content):
    request = '{"id": 1, "method": "%s", "params": {"agent_id": "a", "%s": "' + content + '"}}\n'
    stored, found, after = run(
        home,
        (
            request % ("store", "content")
            + request % ("recall", "query")
            + '{"id": 2, "method": "get_profile", "params": {"agent_id": "a"}}'
        ).encode(),
    )
    assert stored["response"].get("result") in ("stored", "rejected") and isinstance(
        found["response"]["messages"], list
    )
    assert "profile" in after["response"] and daemon.call("daemon_status", {})[0]["pid"] == daemon.hello["pid"]
