"""Ask a store of real notes real questions, through the command line, with the builtin embedder: `python
tests/recall/real_input.py`.

Stores the 500 commit messages and 60 developer notes of ``../shared`` in a store of its own, asks ten paraphrased
questions and ten identifiers, then does the same with three memories and with topics that are not there. Prints one
line a question; exit status 1 when a right row is not last. Takes about two minutes, so it is no part of the suite;
test_real_input.py asks the identifiers with embedder ``none``.

Contract: store.checks, output.streams.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SHARED = Path(__file__).resolve().parents[3] / "shared"
HISTORY = SHARED / "bench" / "history.jsonl"
DEVNOTES = SHARED / "eval" / "data-dev" / "devnotes.json"

# (question, message ids of the rows that answer it). A question shares at most common words with its row.
PARAPHRASES = (
    ("progress bar finishes before the rows have been read", "git-37273d7f6"),
    ("a write statement did nothing because nobody read its result", "git-45af93d46"),
    ("a pragma is applied although the call was refused", "git-66934918c"),
    ("how to make a copy of a table", "git-c710ade64 git-b366e68de git-da030d49f"),
    ("the manual got another sphinx theme", "git-397183deb"),
    ("why did mails about forgotten passwords end up as junk", "n25"),
    ("approval for long training jobs", "n24"),
    ("statements from German banks have the wrong character set", "n26"),
    ("what caused the outage of the website in June", "n20"),
    ("where do we keep encrypted credentials", "n30"),
)
IDENTIFIERS = (
    ("45af93d46", "git-45af93d46"),
    ("37273d7", "git-37273d7f6"),
    ("9d3fe55", "n33"),
    ("E1103", "n41"),
    ("ECONNREFUSED", "n08"),
    ("OPS-1427", "n34"),
    ("/etc/acme/agentd.toml", "n32"),
    ("src/theme/tokens.css", "n27"),
    ("test_query.py", "git-70b48a3b1"),
    ("0042_add_tenant_id.py", "n49"),
)
THREE = (
    "Deploys go out from the release branch, never from main",
    "The nightly export fails with E1042 when the disk is over 95 % full",
    "Alice owns the billing service; ask her before changing invoices",
)
FROM_THREE = (
    ("who is responsible for invoicing?", "mem:3"),
    ("where is production shipped from", "mem:1"),
    ("E1042", "mem:2"),
)
ABSENT = ("how do penguins raise their young", "recipe for sourdough bread", "when does the train to Lisbon leave")


def lines() -> list[str]:
    """Return every commit message, as a one-line note per commit, and every note, one JSON object of `store --jsonl`
    each.
    """
    out = []
    for row in map(json.loads, HISTORY.read_text(encoding="utf-8").splitlines()):
        out.append(
            {
                "id": f"git-{row['commit'][:9]}",
                "content": f"{row['commit']} {row['message']}",
                "timestamp": row["date"],
                "source": {"System": "git"},
            }
        )
    for bucket in json.loads(DEVNOTES.read_text(encoding="utf-8"))["memories"]:
        for row in bucket["rows"]:
            out.append({name: row[name] for name in ("id", "content", "timestamp", "source")})
    return [json.dumps(line) for line in out]


def refs(given: list[str], outcomes: str) -> dict[str, str]:
    """Return the ref of each message id, from the outcome lines of a batch that stored every line."""
    told = [json.loads(line) for line in outcomes.splitlines()]
    assert [(one["line"], one["result"]) for one in told] == [(number, "stored") for number in range(1, len(given) + 1)]
    return {json.loads(line)["id"]: one["ref"] for line, one in zip(given, told, strict=True)}


def place(answer: dict, wanted: list[str]) -> str:
    """Say where the first of these refs stands in a recall's answer (best last): "last", "2 of 5" from the best, or
    "absent".
    """
    found = [row["ref"] for row in reversed(answer["messages"])]
    at = next((number for number, ref in enumerate(found, 1) if ref in wanted), None)
    return f"absent of {len(found)}" if at is None else "last" if at == 1 else f"{at} of {len(found)}"


class Shell:
    """The command line with a database of its own."""

    def __init__(self, root: str, name: str):
        self.environ = {"HOME": root, "PATH": os.environ["PATH"], "CPERSONA_DB_PATH": os.path.join(root, name, "t.db")}

    def run(self, *args: str, given: str | None = None) -> str:
        stdin = {"stdin": subprocess.DEVNULL} if given is None else {"input": given}
        done = subprocess.run(
            [sys.executable, "-m", "cpersona_cli", *args],
            env=self.environ,
            capture_output=True,
            text=True,
            check=True,
            **stdin,
        )
        return done.stdout

    def wait_until_embedded(self) -> None:
        while (state := json.loads(self.run("daemon", "status", "--json")))["embedding"]["state"] != "ready" or state[
            "backlog"
        ]["pending"]:
            time.sleep(1)

    def ask(self, question: str) -> dict:
        return json.loads(self.run("recall", question, "--json"))


def main() -> int:
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="cp-", dir="/tmp") as root:
        large, small = Shell(root, "large"), Shell(root, "small")
        try:
            began = time.perf_counter()
            given = lines()
            known = refs(given, large.run("store", "--jsonl", "-", "--quiet", given="\n".join(given) + "\n"))
            stored = time.perf_counter() - began
            large.wait_until_embedded()
            print(f"{len(given)} rows stored in {stored:.1f} s, embedded after {time.perf_counter() - began:.1f} s")
            for text in THREE:
                small.run("store", text)
            small.wait_until_embedded()
            for shell, kind, asked in (
                (large, "paraphrase", PARAPHRASES),
                (large, "identifier", IDENTIFIERS),
                (small, "three", FROM_THREE),
            ):
                for question, wanted in asked:
                    answer = shell.ask(question)
                    best = answer["messages"][-1] if answer["messages"] else {}
                    right = [known.get(name, name) for name in wanted.split()]
                    where = place(answer, right)
                    print(f"{kind:<10}  {where:<12}  {wanted.split()[0]:<13}  {question}")
                    if where != "last":
                        wrong += 1
                        reason = best.get("match_reason", {})
                        scores = " ".join(f"{name} {value:.4f}" for name, value in reason.items() if name != "signal")
                        print(f"    last: {scores} {best.get('content', '')[:80]!r}")
                        told = shell.run("recall", question, "--why-not", right[0]).splitlines()
                        print("    " + next(line for line in told if line.startswith("why not")))
            for shell in (small, large):
                for question in ABSENT:
                    answer = shell.ask(question)
                    wrong += shell is small and bool(answer["messages"])
                    print(
                        f"absent      {len(answer['messages'])} rows        "
                        f"{'three' if shell is small else 'large':<13}  {question}"
                    )
        finally:
            for shell in (large, small):
                shell.run("daemon", "stop")
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
