"""What README shows is what a newcomer sees who types it in its order, beginning with an empty store.

Contract: commands.same.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")


def first_command() -> list[list[str]]:
    """The words of each `cpersona` of the command that installs and tries it."""
    block = next(block for block in re.findall("```sh\n(.*?)```", README, re.DOTALL) if "pip install ." in block)
    return [shlex.split(part)[1:] for part in block.split("&&") if part.strip().startswith("cpersona")]


def session() -> list[tuple[list[str], str]]:
    """Each command of the first session with what is shown below it."""
    shown = re.search("```console\n(.*?)```", README, re.DOTALL)[1]
    return [(shlex.split(part.partition("\n")[0])[1:], part.partition("\n")[2]) for part in shown.split("$ ")[1:]]


def lasting(text: str) -> list[str]:
    """The lines of a terminal without what another minute or machine changes: ages, scores, the width of blanks."""
    text = re.sub(r"\b\d+[smhd]\b", "AGE", text.replace("\r", ""))
    return [" ".join(re.sub(r"\d\.\d{4}", "SCORE", line).split()) for line in text.splitlines() if line.strip()]


def scores(text: str) -> list[float]:
    return [float(score) for score in re.findall(r"\d\.\d{4}", text)]


@pytest.fixture
def newcomer(home, on_terminal, run_cli):
    """Type a command at a terminal, with the embedder that is installed and has loaded; answers what is shown."""
    home["CPERSONA_EMBEDDING_MODE"] = "builtin"

    def type_(words):
        shown = on_terminal(words, columns=120, NO_COLOR="1")[0]
        for _ in range(20):
            # Each waits for the model as long as a recall does.
            if "advisory" not in json.loads(run_cli(["recall", "anything", "--json"]).stdout):
                return shown
        raise AssertionError("the model does not load")

    return type_


def test_the_session_goes_on_where_the_first_command_ends(newcomer):
    commands = first_command()
    assert [words[0] for words in commands] == ["store", "recall"]
    assert lasting(newcomer(commands[0])) == ["mem:1"] and "mem:1" in lasting(newcomer(commands[1]))[-2]
    for words, shown in session():
        seen = newcomer(words)
        assert lasting(seen) == lasting(shown), words
        # Another processor moves the third digit, a change of ranking moves more.
        assert scores(seen) == pytest.approx(scores(shown), abs=0.02), words


def test_every_ref_that_readme_names_is_one_that_it_has_stored():
    stored = 1 + sum(words[0] == "store" for words, _ in session())
    assert {int(number) for number in re.findall(r"mem:(\d+)", README)} <= set(range(1, stored + 1))
