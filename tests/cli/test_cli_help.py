"""Help, completion and the tree. Contract: commands.same, output.streams."""

import inspect
import os
import re
from pathlib import Path

import pytest

from cpersona_cli import main
from cpersona_cli.commands.help import TOPICS
from cpersona_cli.declare import app, catalogue, guessing
from cpersona_daemon import __version__

COMMANDS = [command for name in catalogue.ENTRIES for command in catalogue.declared(name)]
IDS = [" ".join(command.path) for command in COMMANDS]


def test_the_first_screen_fits_a_terminal_and_names_every_command_in_its_group(run_cli):
    done = run_cli(["--help"])
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and done.stderr == ""
    assert len(lines) <= 24, "more than a screen: a group of catalogue.py takes a line for two entries"
    assert not (wide := [line for line in lines if len(line) > 80]), f"a phrase of catalogue.py is too long: {wide}"
    words = set(re.findall(r"[\w-]+", done.stdout))
    assert words >= set(catalogue.ENTRIES)
    assert all(any(line.startswith(title) for line in lines) for title, _ in catalogue.GROUPS)


@pytest.mark.parametrize("command", COMMANDS, ids=IDS)
def test_every_command_has_one_paragraph_at_least_and_an_example_that_calls_it(command):
    text = inspect.cleandoc(command.help)
    assert "\n\nExample:\n" in text
    example = text.split("\n\nExample:\n", 1)[1]
    assert command.path[0] in example and "cpersona" in example
    assert max(4 + len(line.strip()) for line in example.splitlines()) <= 80, "as a terminal shows it"


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
    nested = run_cli(
        [], env={"_CPERSONA_COMPLETE": "complete_bash", "COMP_WORDS": "cpersona daemon st", "COMP_CWORD": "2"}
    )
    assert set(nested.stdout.split()) == {"start", "stop", "status"}
    option = run_cli(
        [], env={"_CPERSONA_COMPLETE": "complete_bash", "COMP_WORDS": "cpersona recall --be", "COMP_CWORD": "2"}
    )
    assert option.stdout.split() == ["--best-first"]
    assert sorted(Path(home["HOME"]).rglob("*")) == before


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["recal"], "did you mean `cpersona recall`?"),
        (["recall"], "missing argument 'QUERY'"),
        (["store", "--jsonl"], "see `cpersona store --help`"),
        (["daemon", "logs", "-n"], "see `cpersona daemon logs --help`"),
        (["recall", "x", "--bogus"], "--bogus"),
        (["recall", "x", "-n", "many"], "-n"),
        (["store", "- buy milk"], "cpersona store -- '- buy milk'"),
        (["get", "12x"], "mem:12"),
        (["lock", "ep:3"], "an episode"),
        (["store", "x", "--at", "noon"], "not a time"),
        (["recall", "x", "--fields", "colour"], "colour"),
        (["recall", "x", "--set", "mode"], "NAME=VALUE"),
        (["store", "x", "--metadata", "[1]"], "--metadata"),
        (["config", "show", "nope"], "nope"),
    ],
)
def test_a_wrong_command_line_is_one_line_on_stderr_and_exit_2(run_cli, home, arguments, said):
    done = run_cli(arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and said in done.stderr
    assert not os.path.exists(home["CPERSONA_DB_PATH"])


@pytest.mark.parametrize(
    "arguments, meant",
    [
        (["search", "x"], ["recall"]),
        (["rm", "mem:1"], ["delete"]),
        (["ps"], ["status"]),
        (["show", "mem:1"], ["get"]),
        (["add", "a text"], ["store"]),
        (["ls"], ["list"]),
        (["modify"], ["update"]),
        (["version"], ["--version"]),
        (["completion"], ["--install-completion"]),
        (["settings"], ["config show"]),
        (["declare"], ["associate declare"]),
        (["backfill"], ["git backfill"]),
        (["stop"], ["daemon stop"]),
        (["helth"], ["health"]),
        (["episode", "rm", "1"], ["episode delete"]),
        (["episode", "add"], ["episode archive"]),
        (["canary", "delete"], ["canary remove"]),
        (["config", "get"], ["config show"]),
        (["daemon", "begin"], ["daemon start"]),
        (["git", "remove"], ["git uninstall"]),
        (["profile", "get"], ["profile show"]),
        (["forget", "x"], ["delete", "forget-agent"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_a_word_of_other_programs_names_the_command_that_is_meant(capsys, arguments, meant):
    assert main.main(arguments) == 2
    said = capsys.readouterr()
    assert (
        said.out == ""
        and said.err.count("\n") == 1
        and f"did you mean {' or '.join(f'`cpersona {command}`' for command in meant)}?" in said.err
    )


def test_every_word_that_is_offered_is_a_command():
    paths = (
        {" ".join(command.path) for command in COMMANDS}
        | set(catalogue.ENTRIES)
        | {"--version", "--install-completion"}
    )
    assert {command for meant in guessing.MEANT.values() for command in meant} <= paths and not set(
        guessing.MEANT
    ) & set(catalogue.ENTRIES)


@pytest.mark.parametrize(
    "arguments, said",
    [
        (
            ["recall", "which", "branch", "do", "deploys", "use"],
            "in quotes: cpersona recall 'which branch do deploys use'",
        ),
        (["recall", "which", "branch", "-n", "5", "--json"], "in quotes: cpersona recall 'which branch'"),
        (["store", "it's", "a", "note", "--id=k"], "cpersona store 'it'\"'\"'s a note'"),
        (["update", "mem:1", "a", "new", "text"], "cpersona update mem:1 'a new text'"),
        (["exists", "deploy", "branch"], "cpersona exists 'deploy branch'"),
        (["canary", "add", "which", "branch?", "mem:1"], "cpersona canary add 'which branch?' mem:1"),
        (["profile", "set", "a", "b"], "cpersona profile set 'a b'"),
        (["which", "branch", "do", "deploys", "use?"], "cpersona recall 'which branch do deploys use?'"),
        (["which branch do deploys use?"], "cpersona recall 'which branch do deploys use?'"),
        (["context", "what", "did", "we"], "cpersona context 'what did we'"),
        (["daemon", "socket", "x"], "unexpected extra argument"),
        (["recall", *["word"] * 40], "word word…"),
    ],
)
def test_a_text_without_quotes_is_told_where_they_belong(capsys, arguments, said):
    assert main.main(arguments) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.count("\n") == 1 and said in told.err, told.err


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["store", "-5 degrees at night"], "cpersona store -- '-5 degrees at night'"),
        (["recall", "-5 degrees"], "cpersona recall -- '-5 degrees'"),
        (["recall", "-5"], "cpersona recall -- -5"),
        (["recall", "-n means what?"], "cpersona recall -- '-n means what?'"),
        (["store", "--force is dangerous"], "cpersona store -- '--force is dangerous'"),
        (["store", "-q is quiet"], "cpersona store -- '-q is quiet'"),
        (["update", "mem:1", "- buy milk"], "cpersona update mem:1 -- '- buy milk'"),
        (["recall", "-force"], "a text that begins with a dash goes behind --"),
        (["recall", "--fore"], "goes behind --"),
        (["daemon", "status", "-5"], "no such option"),
        (["exists", "-x y", "-q"], "cpersona exists -q -- '-x y'"),
    ],
)
def test_a_text_that_begins_with_a_dash_is_told_where_it_belongs(capsys, arguments, said):
    assert main.main(arguments) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.count("\n") == 1 and said in told.err, told.err


@pytest.mark.parametrize("words", ["recall", "daemon", "daemon start", "store", "forget-agent", "git backfill"])
def test_help_of_a_command_is_the_commands_own_help(capsys, words):
    assert main.main(["help", *words.split()]) == 0
    asked = capsys.readouterr()
    assert main.main([*words.split(), "--help"]) == 0
    assert asked == capsys.readouterr() and f"Usage: cpersona {words} " in asked.out


def test_help_prefers_its_page_and_names_the_command_of_the_same_name(capsys):
    assert main.main(["help", "backup"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("backup: keeping a copy") and "`cpersona backup --help`" in said.err
    assert main.main(["help", "daemon", "nothing"]) == 2 and "no command 'daemon nothing'" in capsys.readouterr().err
    assert main.main(["help", "search"]) == 2 and "did you mean `cpersona recall`?" in capsys.readouterr().err


@pytest.mark.parametrize("page", TOPICS)
def test_a_page_fits_a_terminal_and_no_line_of_it_has_swallowed_the_next(page):
    for line in TOPICS[page][1].splitlines():
        assert len(line) <= 80 and not re.search(r"\S {5,}-", line), line


def test_the_help_of_help_names_every_page():
    (declared,) = catalogue.declared("help")
    named = declared.help.partition(":")[2].partition(".")[0]
    assert [word.strip() for word in named.split(",")] == list(TOPICS)


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_the_version_has_a_short_form(capsys, flag):
    assert main.main([flag]) == 0
    assert capsys.readouterr().out == f"cpersona {__version__}\n"


def test_no_command_at_all_shows_the_screen_and_exits_2(run_cli):
    done = run_cli([])
    assert done.returncode == 2 and done.stdout == "" and done.stderr.startswith("Usage: cpersona")
