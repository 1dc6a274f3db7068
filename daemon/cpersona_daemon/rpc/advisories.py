"""What an answer says of its own weakness: one advisory, the most severe, with the others under ``also``.

Contract: advisory.says.
"""

from __future__ import annotations

HINT, FAULT = "hint", "fault"
_RANK = (HINT, FAULT)


def add(answer: dict, severity: str, reason: str, evidence: str, runbook: str) -> None:
    """Say one more thing in an answer's advisory.

    ``reason`` is a sentence for people, ``evidence`` what it was concluded from, ``runbook`` what to do about it. The
    most severe thing said is the advisory itself, of equal ones the first; the others stand in it under ``also``, as
    {severity, reason, evidence, runbook}, in the order in which they were said.
    """
    said = {"severity": severity, "reason": reason, "evidence": evidence, "runbook": runbook}
    first = answer.get("advisory")
    if first is None:
        answer["advisory"] = {"degraded": True, **said}
        return
    also = first.pop("also", [])
    if _RANK.index(severity) > _RANK.index(first["severity"]):
        del first["degraded"]
        answer["advisory"], also = {"degraded": True, **said}, [first, *also]
    else:
        also.append(said)
    answer["advisory"]["also"] = also
