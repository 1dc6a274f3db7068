"""Manual pages, completions and topics say what the command tree says. Contract: commands.same."""

import re
import shlex
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

from cpersona_cli.commands import help as topics
from cpersona_cli.declare import catalogue, completions, manual
from cpersona_daemon import main as daemon
from cpersona_daemon.shared import settings_table
from cpersona_daemon.shared.paths import Places

ROOT = Path(__file__).resolve().parents[2]


def on_disk(folder):
    base = ROOT / folder
    return {str(p.relative_to(base)): p.read_text(encoding="utf-8") for p in base.rglob("*") if p.is_file()}


def test_the_manual_pages_are_what_the_command_tree_and_the_settings_table_say():
    assert on_disk("man") == manual.pages(), "run `python -m cpersona_cli.manual`"


def test_the_completion_scripts_are_what_the_command_tree_says():
    assert on_disk("completions") == completions.completions(), "run `python -m cpersona_cli.manual`"


def test_every_command_has_a_page_and_every_setting_an_entry():
    pages = manual.pages()
    assert {f"man1/cpersona-{name}.1" for name in catalogue.ENTRIES} <= set(pages)
    assert all(s.variable in pages["man5/cpersona-config.5"] for s in settings_table.TABLE)


def test_the_page_of_the_daemon_names_its_options_and_every_file_beside_the_database():
    page = manual.pages()["man8/cpersonad.8"].replace("\\-", "-").replace("\\&", "")
    assert set(re.findall("^  (--[a-z]+)", daemon.USAGE, re.MULTILINE)) - {"--ready", "--help"} <= set(
        re.findall(r"(--[a-z]+)", page)
    )
    assert {name for name, _, _ in manual._FILES} - {""} == set(Places.__slots__)
    for beside in (
        "<db>.start.lock",
        "<db>.calibration.json.previous",
        "<db>-wal",
        "<db>.before-restore-",
        "/tmp/cpersona-<uid>/",
        "config.toml",
    ):
        assert beside in page


def test_pages_and_completions_are_installed_where_man_and_the_shells_look():
    try:
        installed = [str(path) for path in metadata.files("cpersona-cli") if path.locate().exists()]
    except metadata.PackageNotFoundError:
        pytest.skip("cpersona-cli runs from its source here")
    places = [f"share/man/{page}" for page in manual.pages()]
    places += [
        "share/bash-completion/completions/cpersona",
        "share/zsh/site-functions/_cpersona",
        "share/fish/vendor_completions.d/cpersona.fish",
        "bin/cpersona",
        "bin/cpersonad",
    ]
    assert [place for place in places if not any(path.endswith("/" + place) for path in installed)] == []


@pytest.mark.parametrize("command", catalogue.tree(), ids=lambda c: " ".join(c.path))
def test_every_command_has_help_with_an_example(command):
    assert "Example:" in command.help and "cpersona " + " ".join(command.path) in command.help


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_groff_has_nothing_to_complain_about():
    for path in sorted(manual.pages()):
        done = subprocess.run(
            ["groff", "-man", "-Tutf8", "-ww", "-z", "-K", "utf8", str(ROOT / "man" / path)],
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stderr) == (0, ""), path


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("rec",), "recall reconstruct"),
        (("daemon", "sto"), "stop"),
        (("store", "--on-conflict", ""), "skip update fail"),
        (("recall", "--expl"), "--explain --explain-all"),
    ],
)
def test_bash_completes_commands_options_and_choices_without_starting_anything(words, offered):
    script = 'source "$1"; shift; COMP_WORDS=(cpersona "$@"); COMP_CWORD=$#; _cpersona; echo "${COMPREPLY[*]}"'
    done = subprocess.run(
        ["bash", "-c", script, "bash", str(ROOT / "completions" / "cpersona.bash"), *words],
        capture_output=True,
        text=True,
    )
    assert (done.stdout.strip(), done.stderr) == (offered, "")


COMPLETED = [
    ("rec", {"recall", "reconstruct"}),
    ("daemon sto", {"stop"}),
    ("recall --expl", {"--explain", "--explain-all"}),
    ("--vers", {"--version"}),
    ("git unin", {"uninstall"}),
]


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize("words, offered", [*COMPLETED, ("store --on-conflict ", {"skip", "update", "fail"})])
def test_fish_completes_the_same(words, offered, tmp_path):
    script = f"source {ROOT / 'completions' / 'cpersona.fish'}; complete -C 'cpersona {words}'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", script],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert ({line[0] for line in lines}, done.stderr) == (offered, "")
    assert all(len(line[1]) < 80 for line in lines if not line[0].startswith("-"))


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
@pytest.mark.parametrize(
    "words, offered",
    [
        ("rec", {"recall", "reconstruct"}),
        ("daemon sto", {"stop"}),
        ("recall --expl", {"--explain", "--explain-all"}),
        ("store --on-conf", {"--on-conflict"}),
    ],
)
def test_zsh_is_offered_the_same(words, offered):
    # Its two helpers print what they were given: zsh's own choice from that needs a terminal.
    script = (
        "compdef() {}; _describe() { print -l -- ${(@P)2} }; _arguments() { print -l -- $@ }; "
        f"words=(cpersona {words}); CURRENT=$#words; source {ROOT / 'completions' / '_cpersona'}"
    )
    done = subprocess.run(["zsh", "-fc", script], capture_output=True, text=True)
    given = {re.split("[:=[]", line.lstrip("*"))[0] for line in done.stdout.splitlines()}
    assert {word for word in given if word.startswith(words.split()[-1])} == offered and done.stderr == ""


@pytest.mark.parametrize("name", topics.TOPICS)
def test_every_example_of_a_topic_runs(name, run_cli, tmp_path):
    examples = [line.strip()[2:] for line in topics.TOPICS[name][1].splitlines() if line.strip().startswith("$ ")]
    assert examples
    run_cli(["store", "something to ask about"])
    for example in examples:
        words = [w.replace("/tmp/", f"{tmp_path}/") for w in shlex.split(example)]
        assert words[0] == "cpersona"
        done = run_cli(words[1:])
        assert done.returncode == 0, (example, done.stderr)


def test_help_lists_its_topics_and_refuses_one_that_it_does_not_have(run_cli):
    assert [line.split()[0] for line in run_cli(["help"]).stdout.splitlines()] == list(topics.TOPICS)
    assert run_cli(["help", "order"]).stdout.startswith("order: ")
    missing = run_cli(["help", "nonsense"])
    assert missing.returncode == 2 and "topics are order" in missing.stderr
