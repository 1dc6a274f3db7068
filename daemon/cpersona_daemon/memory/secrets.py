"""What looks like a secret in a text: tokens, keys, private-key blocks, passwords in addresses and assignments.

Every pattern is bounded, so that no text makes it slow. What is found is named and placed, never repeated.

Contract: secrets.checked.
"""

from __future__ import annotations

import math
import re
from collections import Counter

MODES = ("off", "warn", "refuse")
MOST = 20

_START, _END = r"(?<![A-Za-z0-9_-])", r"(?![A-Za-z0-9_-])"

# kind -> what it looks like; the first kind that takes a place keeps it
PATTERNS = {
    "private_key": r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----",
    "aws_access_key": rf"{_START}(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{{16}}{_END}",
    "github_token": rf"{_START}(?:gh[pousr]_[A-Za-z0-9]{{36,255}}|github_pat_[A-Za-z0-9_]{{50,255}}){_END}",
    "gitlab_token": rf"{_START}gl(?:pat|ptt|dt|rt|cbt|soat|ft|imt|agent)-[A-Za-z0-9_-]{{20,255}}",
    "slack_token": rf"{_START}xox[abeoprs]-[A-Za-z0-9-]{{10,255}}",
    "slack_webhook": r"https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9+/]{20,255}",
    "google_api_key": rf"{_START}AIza[A-Za-z0-9_-]{{35}}{_END}",
    "google_oauth_token": rf"{_START}ya29\.[A-Za-z0-9_-]{{20,255}}",
    "stripe_key": rf"{_START}(?:sk|rk|whsec)_(?:live_|test_)?[A-Za-z0-9]{{24,255}}",
    "anthropic_key": rf"{_START}sk-ant-[A-Za-z0-9_-]{{20,255}}",
    "openai_key": rf"{_START}sk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{{20,255}}",
    "huggingface_token": rf"{_START}hf_[A-Za-z0-9]{{30,255}}{_END}",
    "npm_token": rf"{_START}npm_[A-Za-z0-9]{{36}}{_END}",
    "pypi_token": rf"{_START}pypi-AgE[A-Za-z0-9_-]{{40,512}}",
    "docker_token": rf"{_START}dckr_(?:pat|oat)_[A-Za-z0-9_-]{{20,255}}",
    "sendgrid_key": rf"{_START}SG\.[A-Za-z0-9_-]{{16,64}}\.[A-Za-z0-9_-]{{16,128}}",
    "telegram_token": rf"{_START}[0-9]{{8,10}}:AA[A-Za-z0-9_-]{{33}}{_END}",
    "azure_key": r"AccountKey=[A-Za-z0-9+/]{60,120}={0,2}",
    "json_web_token": rf"{_START}eyJ[A-Za-z0-9_-]{{10,2000}}\.eyJ[A-Za-z0-9_-]{{10,4000}}\.[A-Za-z0-9_-]{{10,1000}}",
    "authorization_header": (
        r"(?i)\bauthorization\s{0,3}[:=]\s{0,3}[\"']?(?:bearer|basic|token)\s{1,3}"
        r"(?P<value>[A-Za-z0-9._~+/=-]{16,4000})"
    ),
    "password_in_address": r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"'<>]{1,128}:(?P<value>[^\s/:@\"'<>]{3,256})@",
    "assigned_secret": (
        r"(?i)(?<![a-z])(?:[a-z0-9]{0,30}[_-])?"
        r"(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key"
        r"|client[_-]?secret)"
        r"[\"']?\s{0,3}(?::=|=>|[:=])\s{0,3}[\"'`]?(?P<value>[^\s\"'`,;<>(){}\[\]$]{8,512})"
    ),
}
_COMPILED = {kind: re.compile(pattern) for kind, pattern in PATTERNS.items()}
# Where a value may be any word, it must look as if nobody could guess it.
_JUDGED = {"assigned_secret": 3.0}
_PLACEHOLDER = re.compile(
    r"(?i)^(?:x+|\*+|\.+|-+|your[_-].*|example.*|changeme|placeholder|redacted.*"
    r"|none|null|true|false|undefined|.*\.\.\..*)$"
)


def find(text: str) -> list[dict]:
    """Return `{kind, at}` of what looks like a secret, in the order of the text; ``at`` counts characters from 0."""
    taken: list[tuple[int, int, str]] = []
    for kind, pattern in _COMPILED.items():
        for found in pattern.finditer(text):
            start, end = found.span("value") if "value" in pattern.groupindex else found.span()
            if kind in _JUDGED and not _unguessable(text[start:end], _JUDGED[kind]):
                continue
            if not any(start < there_end and there_start < end for there_start, there_end, _ in taken):
                taken.append((start, end, kind))
    return [{"kind": kind, "at": start} for start, _, kind in sorted(taken)[:MOST]]


def _unguessable(value: str, least_bits: float) -> bool:
    """Tell whether a value mixes signs as a secret does: more than one kind of them, and no two of three the same."""
    if _PLACEHOLDER.match(value):
        return False
    kinds = sum(any(map(test, value)) for test in (str.isdigit, str.islower, str.isupper, lambda c: not c.isalnum()))
    counts = Counter(value)
    bits = -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())
    return kinds >= 2 and any(map(str.isdigit, value)) and bits >= least_bits


def search(content: str, source: str, metadata: str) -> list[dict]:
    """Return what ``find`` finds in a memory; what stands beside its text is marked `in: source` or `in: metadata`."""
    out = find(content)
    for place, text in (("source", source), ("metadata", metadata)):
        out += [{**found, "in": place} for found in find(text)]
    return out[:MOST]


def refusal(found: list[dict]) -> str:
    """Return why a text is refused: the kinds and places, never the secret."""
    said = ", ".join(
        f"{one['kind']} at character {one['at']}" + (f" of its {one['in']}" if "in" in one else "") for one in found[:3]
    )
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return f"the text holds what looks like a secret ({said}{more}); remove it, or store without check_secrets"
