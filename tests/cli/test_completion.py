"""The values that a shell offers: names, refs, words and fields, by the place of the cursor. Completion starts no
daemon and waits for none.

Contract: commands.same.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import socket
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from cpersona_cli.commands import _complete
from cpersona_cli.declare import catalogue, spec
from cpersona_cli.declare.place import place_of
from cpersona_daemon.shared.paths import places
from cpersona_daemon.shared.settings import load

# A name that would be run where a script does not quote it.
HOSTILE = "e;touch $(touch pwned) 'x"
COMMANDS = [command for name in catalogue.ENTRIES for command in catalogue.declared(name)]


@pytest.fixture(scope="module")
def complete(module_home, shared_daemon):
    """Offer values for the words behind `cpersona`, of a store with two agents; answers {value: what it is}."""
    for agent, text, axes in (
        ("ada", "walnut\nfurniture", {"project_id": "home", "channel": "red"}),
        ("bob", "oak", {"project_id": "work place"}),
        ("ada", "birch", {}),
        (HOSTILE, "x", {}),
    ):
        shared_daemon.call("store", {"agent_id": agent, "content": text, **axes})
    shared_daemon.call("archive_episode", {"agent_id": "ada", "summary": "a session"})

    def run(*words):
        place = place_of(list(words))
        return {place.before + value: said for value, said in _complete.offered(place)}

    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ:
            if name.startswith("CPERSONA_"):
                patch.delenv(name)
        for name, value in module_home.items():
            patch.setenv(name, value)
        yield run


def test_the_values_are_printed_with_what_they_are(complete, shared_cli):
    done = shared_cli(["__complete", "--agent", "ada", "get", "mem:"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "mem:3\tbirch\nmem:1\twalnut\\nfurniture\n", "")
    assert shared_cli(["__complete", "store", "--agent=b"]).stdout == "--agent=bob\n"


def test_agents_are_offered_wherever_one_is_named(complete):
    for words in (
        ["recall", "q", "--agent", ""],
        ["--agent", ""],
        ["merge", "ada", ""],
        ["forget-agent", ""],
        ["health", "--of", ""],
        ["import", "x", "--to-agent", ""],
    ):
        assert set(complete(*words)) == {"ada", "bob", HOSTILE}, words
    assert complete("store", "x", "--agent", "a") == {"ada": ""} and complete("store", "--agent=b") == {
        "--agent=bob": ""
    }


def test_projects_and_channels_are_those_of_the_agent_that_is_meant(complete):
    assert set(complete("recall", "q", "--agent", "ada", "--project", "")) == {"home"}
    assert set(complete("--agent=bob", "list", "--project", "")) == {"work place"}
    assert set(complete("list", "--channel", "r", "--json")) == set() and set(
        complete("--agent", "ada", "list", "--channel", "r")
    ) == {"red"}


def test_refs_are_offered_with_the_beginning_of_their_text(complete):
    assert complete("get", "--agent", "ada", "") == {
        "mem:3": "birch",
        "mem:1": "walnut\\nfurniture",
        "ep:1": "a session",
    }
    assert set(complete("--agent", "ada", "get", "mem:1", "ep")) == {"ep:1"} and set(
        complete("--agent", "ada", "lock", "")
    ) == {"mem:1", "mem:3"}
    assert set(complete("--agent", "ada", "recall", "q", "--why-not", "mem:3")) == {"mem:3"} and set(
        complete("--agent", "ada", "episode", "delete", "")
    ) == {"ep:1"}
    assert complete("--agent", "ada", "canary", "add", "") == {} and set(
        complete("--agent", "ada", "canary", "add", "a question", "mem:")
    ) == {"mem:1", "mem:3"}
    assert complete("--agent", "ada", "update", "mem:1", "") == {} and complete("get", "") == {}


def test_words_settings_fields_methods_and_topics_need_no_daemon(complete):
    assert set(complete("precision", "set", "")) == {"strict", "balanced", "lenient"} and set(
        complete("store", "x", "--on-conflict", "")
    ) == {"skip", "update", "fail"}
    assert set(complete("config", "show", "recall_m")) == {"recall_mode"} and set(
        complete("recall", "q", "--set", "recall_mod")
    ) == {"recall_mode="}
    assert set(complete("recall", "q", "--set", "recall_mode=r")) == {"recall_mode=rrf", "recall_mode=rsf"} and set(
        complete("recall", "q", "--set=autocut_enabled=t")
    ) == {"--set=autocut_enabled=true"}
    assert (
        set(complete("list", "--fields", "ref,cont")) == {"ref,content"}
        and "ref,ref" not in complete("list", "--fields", "ref,r")
        and "keywords" in complete("episode", "list", "--fields", "")
    )
    assert (
        {"order", "gate", "recall", "daemon"} <= set(complete("help", ""))
        and set(complete("help", "daemon", "st")) == {"start", "stop", "status"}
        and complete("help", "gate", "") == {}
    )
    assert set(complete("call", "list_m")) == {"list_memories"} and set(complete("config", "path", "s")) == {
        "socket",
        "spool",
    }


def test_a_place_that_nobody_knows_offers_nothing(complete):
    for words in (
        ["recall", ""],
        ["store", ""],
        ["nothing", ""],
        ["daemon", "nothing", ""],
        [""],
        ["rec"],
        ["recall", "q", "--li"],
        ["recall", "q", "--limit", ""],
        ["get", "--raw", "--nothing", "x", "-"],
    ):
        assert complete(*words) == {}, words


@pytest.mark.parametrize(
    "words",
    [
        ["export", ""],
        ["backup", "/t"],
        ["list", "--db", ""],
        ["store", "--jsonl", ""],
        ["context", "q", "--history", ""],
        ["restore", ""],
        ["--db="],
    ],
    ids=" ".join,
)
def test_a_file_is_left_to_the_shell(shared_cli, words):
    done = shared_cli(["__complete", *words])
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


def test_without_a_daemon_names_are_not_offered_and_nothing_is_started_or_made(run_cli, home):
    before = sorted(Path(home["HOME"]).rglob("*"))
    for words in (["get", ""], ["recall", "q", "--agent", ""], ["config", "show", "recall_mode"]):
        done = run_cli(["__complete", *words], env={"CPERSONA_MAX_MEMORIES": "nonsense"})
        assert (done.returncode, done.stderr) == (0, "") and bool(done.stdout) == (words[0] == "config")
    assert sorted(Path(home["HOME"]).rglob("*")) == before


def test_a_daemon_that_does_not_answer_is_not_waited_for(run_cli, home):
    at = places(load(home), home)
    Path(at.db).parent.mkdir(0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(at.socket)
        listener.listen()
        began = time.monotonic()
        done = run_cli(["__complete", "get", ""])
        assert (done.returncode, done.stdout, done.stderr) == (
            0,
            "",
            "",
        ) and time.monotonic() - began < 10 * _complete.SECONDS


def test_every_source_that_a_declaration_names_is_there_and_every_ref_and_file_has_one():
    for command in COMMANDS:
        for parameter in (*command.parameters, *(spec.COMMON[key] for key in command.common)):
            assert isinstance(parameter.values, tuple) or parameter.values in {"", "files", *_complete.SOURCES}, (
                parameter.name
            )
            if parameter.metavar in ("REF", "REF…", "FILE", "FILE|-"):
                assert parameter.values, (command.path, parameter.name)


@pytest.mark.parametrize(
    "words, offered",
    [
        ("cpersona --agent ada get mem:", {"mem:1", "mem:3"}),
        ("cpersona precision set ", {"strict", "balanced", "lenient"}),
        ("cpersona config show recall_m", {"recall_mode"}),
        ("cpersona recall q --agent b", {"bob"}),
        ("cpersona list --fields ref,cont", {"ref,content"}),
    ],
)
def test_typers_own_completion_offers_them_too(complete, shared_cli, words, offered):
    done = shared_cli(
        [],
        env={"_CPERSONA_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)},
    )
    assert set(done.stdout.split()) == offered and done.stderr == ""


COMPLETIONS = Path(__file__).resolve().parents[2] / "completions"
# What is typed, with one tab at its end, and what the shell then has for words.
TYPED = [
    ("cpersona --agent ada get ep:", ["--agent", "ada", "get", "ep:1"]),
    ("cpersona --agent ada get mem:3", ["--agent", "ada", "get", "mem:3"]),
    ("cpersona recall q --agent b", ["recall", "q", "--agent", "bob"]),
    ("cpersona list --agent=b", ["list", "--agent=bob"]),
    ("cpersona --agent bob list --project w", ["--agent", "bob", "list", "--project", "work place"]),
    ("cpersona precision set b", ["precision", "set", "balanced"]),
    ("cpersona config show recall_m", ["config", "show", "recall_mode"]),
    ("cpersona list --fields ref,cont", ["list", "--fields", "ref,content"]),
    ("cpersona recall q --set recall_mode=bl", ["recall", "q", "--set", "recall_mode=blend"]),
    ("cpersona help gat", ["help", "gate"]),
    ("cpersona --agent ada canary add q ep", ["--agent", "ada", "canary", "add", "q", "ep:1"]),
    ("cpersona forget-agent a", ["forget-agent", "ada"]),
    ("cpersona forget-agent e", ["forget-agent", HOSTILE]),
    ("cpersona store x --on-conflict u", ["store", "x", "--on-conflict", "update"]),
    ("cpersona recal", ["recall"]),
    ("cpersona --db d daemon resta", ["--db", "d", "daemon", "restart"]),
    ("cpersona export ./no", ["export", "./notes"]),
    ("cpersona --agent ada episode delete ", ["--agent", "ada", "episode", "delete", "ep:1"]),
    ("cpersona list --best", ["list", "--best"]),
]
SHELLS = {
    "bash": (
        ["bash", "--norc", "--noprofile", "-i"],
        "bind 'set bell-style none'; source {completions}/cpersona.bash; PS1=; ",
    ),
    "zsh": (
        ["zsh", "-f", "-i"],
        "fpath=({completions} $fpath); autoload -U compinit; compinit -u -D; unsetopt prompt_cr prompt_sp beep; PS1=; ",
    ),
}


@pytest.fixture(scope="module", params=SHELLS)
def shell(request, complete, module_home):
    """A shell at a terminal with our completion in it; answers the words that a typed line has after a tab."""
    words, setup = SHELLS[request.param]
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    here = Path(module_home["HOME"]) / request.param
    here.mkdir()
    (here / "notes").touch()
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 300, 0, 0))
    environ = module_home | {
        "PATH": f"{Path(sys.executable).parent}:{module_home['PATH']}",
        "TERM": "dumb",
        "HOME": str(here),
    }
    process = subprocess.Popen(
        words, env=environ, cwd=here, stdin=child, stdout=child, stderr=child, start_new_session=True
    )
    os.close(child)

    def until(sign):
        seen = b""
        while sign not in seen:
            if not select.select([parent], [], [], 60)[0]:
                raise AssertionError(seen.decode(errors="replace"))
            seen += os.read(parent, 65_536)
        return seen

    os.write(parent, setup.format(completions=COMPLETIONS).encode() + b"stty -echo; echo rea''dy\n")
    until(b"ready\r\n")

    def typed(line):
        # The completed line becomes what a printing of words is given.
        os.write(parent, line.encode() + b"\t\x01printf '<%s>' \x05; echo e''nd\n")
        shown = until(b"end\r\n").decode(errors="replace")
        return re.findall("<([^<>]*)>", shown[shown.rindex("<cpersona>") :])[1:]

    yield typed
    assert not list(here.glob("pwned*"))
    os.close(parent)
    process.kill()
    process.wait()


@pytest.mark.parametrize("line, words", TYPED, ids=[line for line, _ in TYPED])
def test_a_tab_at_a_terminal_completes_the_line(shell, line, words):
    assert shell(line) == words


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize("line, words", TYPED, ids=[line for line, _ in TYPED])
def test_fish_offers_the_same(complete, module_home, tmp_path, line, words):
    (tmp_path / "notes").touch()
    environ = module_home | {"PATH": f"{Path(sys.executable).parent}:{module_home['PATH']}", "HOME": str(tmp_path)}
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"source {COMPLETIONS / 'cpersona.fish'}; complete -C '{line}'"],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
    )
    offered = {shown.partition("\t")[0] for shown in done.stdout.splitlines()}
    assert done.stderr == "" and (words[-1] in offered or words[-1] == line.split()[-1]), offered
