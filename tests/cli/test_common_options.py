"""What a command cannot honour it refuses: every command with every option that commands share, before its words and
after them.

Contract: commands.same.
"""

from __future__ import annotations

import pytest

from cpersona_cli import main
from cpersona_cli.declare import catalogue, spec
from cpersona_cli.fast import quick

COMMANDS = {" ".join(command.path): command for name in catalogue.ENTRIES for command in catalogue.declared(name)}
EVERY = [(name, key) for name in COMMANDS for key in spec.COMMON]


@pytest.fixture
def reached(monkeypatch):
    """Run a command line whose commands only note with which options they were called; answers (exit status, those
    options or None).
    """
    called = []
    for command in COMMANDS.values():

        def note(session, **values):
            called.append(session.options)

        note.__doc__ = command.help
        monkeypatch.setattr(command, "run", note)

    def run(words):
        called.clear()
        status = main.main(words)
        return status, called[-1] if called else None

    return run


def line(name, key, before):
    command, parameter = COMMANDS[name], spec.COMMON[key]
    option = [parameter.flags[-1], *([] if parameter.kind == "flag" else ["x"])]
    words = [*command.path, *("1" for p in command.parameters if p.required)]
    return [*option, *words] if before else [*words, *option]


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("name, key", EVERY)
def test_an_option_reaches_its_command_or_is_a_usage_error(reached, capsys, name, key, before):
    status, options = reached(line(name, key, before))
    if key in COMMANDS[name].common:
        assert status == 0 and options[key] in ("x", True)
        return
    said = capsys.readouterr()
    assert (status, options, said.out) == (2, None, "") and said.err.count("\n") == 1
    assert spec.COMMON[key].flags[-1] in said.err and f"`cpersona {name} --help`" in said.err


@pytest.mark.parametrize("name", COMMANDS)
def test_what_the_environment_sets_is_no_option_and_no_error(reached, monkeypatch, name):
    for variable in ("CPERSONA_DB_PATH", "CPERSONA_AGENT", "CPERSONA_PROJECT", "CPERSONA_CHANNEL"):
        monkeypatch.setenv(variable, "x")
    words = [*COMMANDS[name].path, *("1" for p in COMMANDS[name].parameters if p.required)]
    status, options = reached(words)
    assert status == 0 and not {key for key, value in options.items() if value not in (None, False)}
    quick.parse(words)


def test_an_empty_value_is_a_value(reached, capsys):
    assert reached(["--channel", "", "get", "1"])[0] == 2 and "--channel" in capsys.readouterr().err
    assert reached(["--project", "", "list"])[1]["project"] == ""


@pytest.mark.parametrize("family", catalogue.FAMILIES)
def test_a_family_without_a_word_takes_what_its_command_takes(reached, capsys, family):
    command = COMMANDS[f"{family} {catalogue.UNNAMED[family]}"]
    for key, parameter in spec.COMMON.items():
        option = [parameter.flags[-1], *([] if parameter.kind == "flag" else ["x"])]
        for words in ([*option, family], [family, *option]):
            assert reached(words)[0] == (0 if key in command.common else 2), words


def test_both_lists_show_the_channel_that_is_asked_for_and_what_has_none(shared_cli, shared_daemon):
    for channel in ("", "red", "blue"):
        shared_daemon.call("store", {"agent_id": "default", "content": f"in:{channel}", "channel": channel})
        shared_daemon.call("archive_episode", {"agent_id": "default", "summary": f"in:{channel}", "channel": channel})
    for words in (["--channel", "red", "list"], ["list", "--channel", "red"]):
        assert shared_cli([*words, "--fields", "content"]).stdout.splitlines() == ["in:red", "in:"]
    for words in (["--channel", "red", "episode", "list"], ["episode", "--channel", "red"]):
        assert shared_cli([*words, "--fields", "summary"]).stdout.splitlines() == ["in:red", "in:"]
    assert shared_cli(["list", "--fields", "content"], env={"CPERSONA_CHANNEL": "blue"}).stdout.splitlines() == [
        "in:blue",
        "in:",
    ]
    assert "no memories like that" in shared_cli(["list", "--channel", "red", "--agent", "nobody"]).stderr
