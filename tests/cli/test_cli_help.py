"""Help, completion and the tree. Contract: interface.md, "The commands", "Output"."""

import inspect
import os
from pathlib import Path

import pytest

from cpersona_cli import app, catalogue

COMMANDS = [command for name in catalogue.ENTRIES for command in catalogue.declared(name)]
IDS = [" ".join(command.path) for command in COMMANDS]


def test_the_first_screen_fits_a_terminal_and_names_every_command_in_its_group(run_cli):
    done = run_cli(["--help"])
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and done.stderr == ""
    assert len(lines) <= 24 and max(map(len, lines)) <= 80
    words = set(done.stdout.split())
    assert words >= set(catalogue.ENTRIES)
    assert all(any(line.startswith(title) for line in lines) for title, _ in catalogue.GROUPS)


@pytest.mark.parametrize("command", COMMANDS, ids=IDS)
def test_every_command_has_one_paragraph_at_least_and_an_example_that_calls_it(command):
    text = inspect.cleandoc(command.help)
    assert "\n\nExample:\n" in text
    example = text.split("\n\nExample:\n", 1)[1]
    assert command.path[0] in example and "cpersona" in example
    assert max(map(len, example.splitlines())) <= 100


@pytest.mark.parametrize("command", COMMANDS, ids=IDS)
def test_every_declaration_builds_and_every_parameter_is_explained(command):
    built = app.built(command)
    assert {p.name for p in command.parameters} <= {p.name for p in built.params}
    assert all(p.help for p in command.parameters)


def test_what_an_unnamed_family_does_is_one_of_its_commands():
    for name, word in catalogue.UNNAMED.items():
        assert word in {command.path[1] for command in catalogue.declared(name)}
    assert set(catalogue.UNNAMED) == set(catalogue.FAMILIES)


def test_help_and_completion_make_no_file_and_start_no_daemon(run_cli, home):
    before = sorted(Path(home["HOME"]).rglob("*"))
    assert run_cli(["recall", "--help"]).returncode == 0
    assert run_cli(["daemon", "--help"]).returncode == 0
    assert run_cli(["--version"]).stdout.startswith("cpersona ")
    completed = run_cli([], env={"_CPERSONA_COMPLETE": "complete_bash", "COMP_WORDS": "cpersona re", "COMP_CWORD": "1"})
    assert {"recall", "reconstruct", "reindex", "resume"} <= set(completed.stdout.split())
    nested = run_cli([], env={"_CPERSONA_COMPLETE": "complete_bash", "COMP_WORDS": "cpersona daemon st", "COMP_CWORD": "2"})
    assert set(nested.stdout.split()) == {"start", "stop", "status"}
    option = run_cli([], env={"_CPERSONA_COMPLETE": "complete_bash", "COMP_WORDS": "cpersona recall --be", "COMP_CWORD": "2"})
    assert option.stdout.split() == ["--best-first"]
    assert sorted(Path(home["HOME"]).rglob("*")) == before


@pytest.mark.parametrize("arguments, said", [
    (["recal"], "Did you mean 'recall'"), (["recall"], "missing argument 'QUERY'"), (["recall", "x", "--bogus"], "--bogus"),
    (["recall", "x", "-n", "many"], "-n"), (["store", "- buy milk"], "needs -- before it"), (["get", "12x"], "mem:12"),
    (["lock", "ep:3"], "an episode"), (["store", "x", "--at", "noon"], "not a time"), (["recall", "x", "--fields", "colour"], "colour"),
    (["recall", "x", "--set", "mode"], "NAME=VALUE"), (["store", "x", "--metadata", "[1]"], "--metadata"), (["config", "show", "nope"], "nope"),
])
def test_a_wrong_command_line_is_one_line_on_stderr_and_exit_2(run_cli, home, arguments, said):
    done = run_cli(arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and said in done.stderr
    assert not os.path.exists(home["CPERSONA_DB_PATH"])


def test_no_command_at_all_shows_the_screen_and_exits_2(run_cli):
    done = run_cli([])
    assert done.returncode == 2 and done.stdout == "" and done.stderr.startswith("Usage: cpersona")
