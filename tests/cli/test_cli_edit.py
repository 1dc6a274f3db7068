"""Texts and settings in the caller's editor. Contract: edit.kept, config.written."""

from __future__ import annotations

import os
import re
import shlex
import stat
import tomllib

import pytest

from cpersona_cli.commands import _config_file
from cpersona_daemon.shared.settings_table import BY_NAME


def editor(script: str) -> dict:
    """Return the environment of an editor that does this in a shell; `$1` is the file."""
    return {"EDITOR": f"sh -c {shlex.quote(script)} editor", "VISUAL": ""}


@pytest.fixture
def ref(shared_cli):
    ref = shared_cli(["store", f"the first text {os.urandom(4).hex()}"]).stdout.strip()
    yield ref
    shared_cli(["delete", ref])


def text_of(cli, ref):
    return cli(["get", ref, "--raw"]).stdout.removesuffix("\n")


def kept(done):
    """Return the text that was kept, of a file that nobody else can read."""
    path = re.search(r"your text is kept in (\S+)", done.stderr)[1]
    assert (
        stat.S_IMODE(os.stat(path).st_mode) == 0o600 and stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    )
    with open(path, encoding="utf-8") as handle:
        return handle.read()


def test_what_is_left_in_the_editor_becomes_the_text(shared_cli, ref, module_home):
    done = shared_cli(["edit", ref], env=editor('cp "$1" ../seen; stat -c %a "$1" > ../mode; echo new words > "$1"'))
    assert (done.returncode, done.stdout) == (0, f"{ref}\tupdated\n"), done.stderr
    assert text_of(shared_cli, ref) == "new words" and not os.listdir(module_home["TMPDIR"])


@pytest.mark.parametrize(
    "script, status, said",
    [
        ("true", 0, "as it was"),
        (': > "$1"', 0, "is empty"),
        ('echo >> "$1"', 0, "as it was"),
        ("exit 3", 1, "ended with status 3"),
        ('rm "$1"', 1, "left no text"),
        ("exec no-such-editor", 1, "cannot be run"),
    ],
)
def test_nothing_is_changed_by_no_change_and_by_an_editor_that_fails(
    shared_cli, ref, module_home, script, status, said
):
    was = text_of(shared_cli, ref)
    done = shared_cli(["edit", ref], env=editor(script))
    assert done.returncode == status and said in done.stderr and done.stdout == "", done.stderr
    assert text_of(shared_cli, ref) == was and not os.listdir(module_home["TMPDIR"])


@pytest.mark.parametrize(
    "meanwhile, said",
    [
        ("update {} other", "was changed meanwhile"),
        ("lock {}", "is locked"),
        ("delete {}", "no row {}"),
        ("", "status 9"),
    ],
)
def test_a_text_that_does_not_reach_the_store_is_kept_and_named(shared_cli, shared_daemon, meanwhile, said):
    ref = shared_cli(["store", f"before {meanwhile}"]).stdout.strip()
    program = f"cpersona {meanwhile.format(ref)}" if meanwhile else "exit 9"
    done = shared_cli(["edit", ref], env=editor(f'echo my work > "$1"; {program} > /dev/null'))
    assert done.returncode == 1 and said.format(ref) in done.stderr and kept(done) == "my work\n", done.stderr
    shared_cli(["unlock", ref])


def test_a_memory_is_written_in_the_editor_and_kept_where_its_key_has_another_text(shared_cli):
    first = shared_cli(["store", "--edit", "--id", "written"], env=editor('echo "a written text" > "$1"'))
    assert text_of(shared_cli, first.stdout.strip()) == "a written text"
    again = shared_cli(["store", "--edit", "--id", "written"], env=editor('echo "another text" > "$1"'))
    assert again.returncode == 0 and kept(again) == "another text\n"
    begun = shared_cli(
        ["store", "--edit", "begun so"], env=editor('test "$(cat "$1")" = "begun so" && echo and >> "$1"')
    )
    assert text_of(shared_cli, begun.stdout.strip()) == "begun so\nand"
    for words, said in ((["begun"], "as it began"), ([], "is empty"), (["--jsonl", "-"], "give one of them")):
        done = shared_cli(["store", "--edit", *words], env=editor("true"))
        assert said in done.stderr and done.stdout == ""


@pytest.mark.parametrize(
    "text, name, value, made",
    [
        ("", "recall_mode", "rsf", 'recall_mode = "rsf"\n'),
        ("# why\nrecall_mode = 'rrf' # so\n", "recall_mode", "rsf", '# why\nrecall_mode = "rsf" # so\n'),
        ('"Recall_Mode"="rrf"', "recall_mode", "rsf", '"Recall_Mode"="rsf"'),
        ("rrf_k = 60 # it\n[more]\nrrf_k = 1\n", "rrf_k", 9, "rrf_k = 9 # it\n[more]\nrrf_k = 1\n"),
        ("[more]\nrrf_k = 1\n", "rrf_k", 9, "rrf_k = 9\n[more]\nrrf_k = 1\n"),
        ("agent = 'a'", "autocut_enabled", False, "agent = 'a'\nautocut_enabled = false\n"),
        ('agent = "a # \\" b" # c', "agent", 'x"y\\', 'agent = "x\\"y\\\\" # c'),
        ("# rrf_k = 1\n", "rrf_k", 2, "# rrf_k = 1\nrrf_k = 2\n"),
    ],
)
def test_one_value_is_put_into_a_config_file_and_all_else_stays(text, name, value, made):
    assert _config_file.with_value(text, BY_NAME[name], value) == made
    assert tomllib.loads(made)


@pytest.mark.parametrize("text", ['agent = """\nx\n"""\n', "x.agent = 1\nagent = {a = 1}\n", "not toml"])
def test_a_form_that_a_line_does_not_hold_is_left_to_a_person(text):
    with pytest.raises(ValueError, match="config edit|TOML"):
        _config_file.with_value(text, BY_NAME["agent"], "b")


@pytest.fixture
def config(module_home):
    """A config file behind a link, as those have who keep their settings elsewhere."""
    place = os.path.join(module_home["XDG_CONFIG_HOME"], "cpersona")
    os.makedirs(place, exist_ok=True)
    real, link = os.path.join(module_home["HOME"], "dotfile.toml"), os.path.join(place, "config.toml")
    with open(real, "w", encoding="utf-8") as handle:
        handle.write("# mine\n")
    os.chmod(real, 0o644)
    os.symlink(real, link)
    yield real
    os.unlink(link)


def test_a_value_that_is_none_or_contradicts_another_is_not_written(shared_cli, config):
    for words in ("recall_mode best", "cosine_floor 0.9", "embedding_mode qdrant", "log_level 7"):
        done = shared_cli(["config", "set", *words.split()])
        assert done.returncode == 1 and "nothing was written" in done.stderr and done.stderr.count("\n") == 1
    for text in ("recall_mode = 'best'", "no_setting = 1", "cosine_floor = 0.9", "= ="):
        done = shared_cli(["config", "edit"], env=editor(f'echo "{text}" >> "$1"'))
        assert done.returncode == 1 and "nothing was written" in done.stderr and text in kept(done), done.stderr
        assert "using" not in done.stderr, "of a file that is not written no value is in force"
    with open(config, encoding="utf-8") as handle:
        assert handle.read() == "# mine\n"


def test_what_is_sound_is_written_through_a_link_with_what_it_means_for_a_running_daemon(shared_cli, config):
    for words, said in (
        ("recall_mode rsf", "no running daemon must be restarted"),
        ("log_level warning", "`cpersona daemon restart` applies this one"),
        ("embedding_mode builtin", "CPERSONA_EMBEDDING_MODE in the environment wins"),
        ("recall_mode ''", "no running daemon"),
    ):
        done = shared_cli(["config", "set", *shlex.split(words)])
        assert done.returncode == 0 and said in done.stderr, (words, done.stderr)
        assert done.stderr.count("\n") == 1, "said once, and not again as of any command's settings"
    secret = shared_cli(["config", "set", "token", "-"], input="hush\n")
    assert secret.stdout == "token\t(set)\n"
    edited = shared_cli(["config", "edit"], env=editor('sed -i s/warning/info/ "$1"'))
    assert edited.returncode == 0 and "daemon restart" in edited.stderr, edited.stderr
    assert stat.S_IMODE(os.stat(config).st_mode) == 0o644
    with open(config, encoding="utf-8") as handle:
        assert handle.read() == (
            '# mine\nrecall_mode = ""\nlog_level = "info"\nembedding_mode = "builtin"\ntoken = "hush"\n'
        )
