"""Identifiers are found among 560 real commits and notes by their words alone. Contract: lexical.terms."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest
import real_input

pytestmark = pytest.mark.skipif(
    not real_input.HISTORY.exists() or not real_input.DEVNOTES.exists(),
    reason=f"the real input is not at {real_input.SHARED}",
)


@pytest.fixture(scope="module")
def cli(module_home) -> Callable[..., str]:
    """Run `cpersona` in the module's home and return what it printed: ``cli("recall", "x")``."""

    def run(*args: str, given: str = "") -> str:
        return subprocess.run(
            [sys.executable, "-m", "cpersona_cli", *args],
            env=module_home,
            cwd=module_home["HOME"],
            check=True,
            input=given,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout

    return run


@pytest.fixture(scope="module")
def known(cli) -> dict[str, str]:
    given = real_input.lines()
    return real_input.refs(given, cli("store", "--jsonl", "-", "--quiet", given="\n".join(given)))


def test_storing_the_same_notes_again_adds_nothing(known, cli):
    given = real_input.lines()
    again = [json.loads(line) for line in cli("store", "--jsonl", "-", "--quiet", given="\n".join(given)).splitlines()]
    assert {one["result"] for one in again} == {"skipped"}
    assert [one["ref"] for one in again] == [known[json.loads(line)["id"]] for line in given]


@pytest.mark.parametrize("identifier, wanted", real_input.IDENTIFIERS)
def test_an_identifier_finds_its_row_last_by_words_alone(identifier, wanted, known, cli):
    answer = json.loads(cli("recall", identifier, "--json"))
    assert real_input.place(answer, [known[wanted]]) == "last"


def test_an_identifier_of_nothing_finds_nothing(known, cli):
    for identifier in ("deadbee", "E9999", "/etc/nowhere/nothing.toml"):
        assert json.loads(cli("recall", identifier, "--json"))["messages"] == []
