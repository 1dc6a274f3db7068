"""The user name, password and query of an embedder's address stay with the daemon that uses them.

Contract: secrets.checked.
"""

from __future__ import annotations

import json
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpersona_cli.wire import client
from cpersona_daemon.shared.settings import load
from cpersona_daemon.shared.settings_table import BY_NAME

SECRETS = ("hugo", "pass-word", "k3y-of-it", "fragm3nt")
ADDRESS = "http://hugo:pass-word@127.0.0.1:1/embed?api_key=k3y-of-it#fragm3nt"


@pytest.fixture(scope="module")
def environ(module_home):
    return module_home | {
        "CPERSONA_EMBEDDING_MODE": "http",
        "CPERSONA_EMBEDDING_URL": ADDRESS,
        "CPERSONA_TOKEN": "hugo-k3y-of-it",
        "CPERSONA_LOG_LEVEL": "debug",
    }


@pytest.fixture(scope="module")
def asked(environ):
    with client.connect(load(environ), environ) as connection:
        connection.call("store", {"agent_id": "a", "content": "text"})
        connection.call("recall", {"agent_id": "a", "query": "text"})
        yield connection


@pytest.fixture
def run(environ, asked):
    from cli_kit import runner

    return runner(environ)


def assert_clean(text):
    assert not [secret for secret in SECRETS if secret in text], text


def test_the_hello_and_the_status_tell_a_peer_nothing_secret(asked, environ):
    assert_clean(json.dumps(asked.hello))
    assert_clean(json.dumps(asked.call("daemon_status", {})[0]))
    assert asked.hello["settings"]["embedding_url"] == BY_NAME["embedding_url"].shown(ADDRESS)


def test_answers_and_health_quote_no_secret_where_the_service_fails(asked):
    for method, params in (("recall", {"agent_id": "a", "query": "another"}), ("check_health", {}), ("reindex", {})):
        assert_clean(json.dumps(asked.call(method, params)[0]))


@pytest.mark.parametrize(
    "command",
    [
        ["config", "show"],
        ["config", "show", "--json"],
        ["doctor"],
        ["doctor", "--json"],
        ["daemon", "status"],
        ["daemon", "logs", "-n", "1000"],
    ],
)
def test_no_command_shows_a_secret(run, command):
    shown = run(command)
    assert_clean(shown.stdout + shown.stderr)


def test_a_client_with_another_address_is_told_so_without_either(run):
    shown = run(["list"], env={"CPERSONA_EMBEDDING_URL": "http://hugo:k3y-of-it@localhost:2/other"})
    assert "CPERSONA_EMBEDDING_URL" in shown.stderr and "localhost:2" in shown.stderr
    assert_clean(shown.stderr)


def test_a_backup_holds_the_address_without_its_secrets(run, environ, tmp_path):
    assert run(["backup", str(tmp_path / "b.tar")]).returncode == 0
    with tarfile.open(tmp_path / "b.tar") as archive:
        for entry in archive:
            if entry.name.endswith(".json"):
                assert_clean(archive.extractfile(entry).read().decode())


def test_the_digest_of_settings_cannot_be_used_to_guess_a_secret(module_home):
    digests = {
        load(module_home | {"CPERSONA_EMBEDDING_URL": f"http://u:{word}@h/embed?key={word}"}).digest()
        for word in ("a", "b", "c")
    }
    assert len(digests) == 1
    assert digests != {load(module_home | {"CPERSONA_EMBEDDING_URL": "http://u:a@other/embed?key=a"}).digest()}


@given(st.text(alphabet="a/?#@:%!", min_size=1), st.text(alphabet="b/?#@:%!", min_size=1))
def test_however_it_was_written_a_password_is_not_in_what_is_shown(user, password):
    setting, address = BY_NAME["embedding_url"], f"http://{user}:{password}SECRET@host/embed"
    assert "SECRET" not in setting.shown(address)
    assert "SECRET" not in (setting.open_part(address) or "")
