"""Ask the questions of data/nursery.json of a new store with the builtin embedder, and print what came back in each state.

    python tests/eval_fresh/run.py [--cmd CPERSONA] [--data FILE] [--env NAME=VALUE]...

Run by hand and apart from the suite, which loads the model once only. The texts of nursery.json were written after the
last change to the scoring and are there to check it; ferry.json came before, and what it showed led to that change. Who
tunes on one writes a new one. Files of the same form (`memories` with `agent` and `rows`, `queries` with `q`, `gold` and
`kind`; no gold means that nothing answers it) may be given instead.

States: as stored, then calibrated by setting each precision. Columns: share of questions whose gold row is last, is
among the ten, is missing because nothing came back; of identifiers whose row is last; of absent questions answered with
nothing; and the mean of the rows that answer a known question.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

HERE = os.path.dirname(os.path.abspath(__file__))


@contextmanager
def pipe(command: list[str], environ: dict[str, str]) -> Iterator:
    """Open `call --stdin`; yields ``ask(method, params) -> response``."""
    process = subprocess.Popen([*command, "call", "--stdin"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, text=True, encoding="utf-8")

    def ask(method: str, params: dict) -> dict:
        process.stdin.write(json.dumps({"id": 1, "method": method, "params": params}) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())["response"]

    try:
        yield ask
    finally:
        process.stdin.close()
        process.wait()


def measured(ask, queries: list[dict]) -> tuple[dict[str, float], list[str]]:
    """Ask every question; return the table's line and what went wrong, in words."""
    known, identifiers, absent, wrong = [], [], [], []
    for query in queries:
        messages = ask("recall", {"agent_id": query["agent"], "query": query["q"], "limit": 10})["messages"]
        got = [message.get("id") for message in reversed(messages)]
        if not query["gold"]:
            absent.append(not got)
            fine = not got
        else:
            places = [place for place, row in enumerate(got) if row in query["gold"]]
            ideal = sum(1 / math.log2(place + 2) for place in range(min(10, len(query["gold"]))))
            known.append((places[:1] == [0], bool(places), not got, len(got), sum(1 / math.log2(place + 2) for place in places) / ideal))
            if query["kind"] == "identifier":
                identifiers.append(places[:1] == [0])
            fine = places[:1] == [0]
        if not fine:
            wrong.append(f"{query['kind']:12} {query['q']!r}: {', '.join(got) or 'nothing'}; gold {', '.join(query['gold']) or 'nothing'}")
    last, ten, empty, rows, ndcg = (sum(column) / len(column) for column in zip(*known, strict=True))
    return {"last": last, "R@10": ten, "NDCG@10": ndcg, "kn.empty": empty, "rows": rows,
            "id last": sum(identifiers) / max(1, len(identifiers)), "absent": sum(absent) / max(1, len(absent))}, wrong


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cmd", default=os.path.join(os.path.dirname(sys.executable), "cpersona"))
    options.add_argument("--data", default=os.path.join(HERE, "data", "nursery.json"))
    options.add_argument("--env", action="append", default=[])
    given = options.parse_args()
    with open(given.data, encoding="utf-8") as file:
        data = json.load(file)
    with tempfile.TemporaryDirectory(prefix="cpf-") as home:
        environ = {"PATH": os.environ["PATH"], "HOME": home, "TMPDIR": home, "XDG_RUNTIME_DIR": home, "TZ": "UTC", "LANG": "C.UTF-8",
                   "CPERSONA_DB_PATH": os.path.join(home, "fresh.db"), **dict(pair.split("=", 1) for pair in given.env)}
        try:
            with pipe([given.cmd], environ) as ask:
                for block in data["memories"]:
                    for row in block["rows"]:
                        assert ask("store", {"agent_id": block["agent"], **row})["result"] == "stored", row
                # A recall waits until what was stored before it has its vector.
                for block in data["memories"]:
                    ask("recall", {"agent_id": block["agent"], "query": "are the vectors there", "limit": 1})
                print(f"{'state':22}" + "".join(f"{name:>9}" for name in ("last", "R@10", "NDCG@10", "kn.empty", "rows", "id last", "absent")))
                for state in ("as stored", "strict", "balanced", "lenient"):
                    if state != "as stored":
                        for block in data["memories"]:
                            ask("set_recall_precision", {"agent_id": block["agent"], "precision": state})
                    line, wrong = measured(ask, data["queries"])
                    print(f"{state if state == 'as stored' else 'calibrated, ' + state:22}" + "".join(f"{value:9.3f}" for value in line.values()), flush=True)
                    if state == "as stored":
                        first = wrong
                print("\nnot right as stored:\n  " + "\n  ".join(first))
        finally:
            subprocess.run([given.cmd, "daemon", "stop"], env=environ, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
