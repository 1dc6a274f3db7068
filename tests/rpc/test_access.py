"""Who may do what, from the access file alone. Contract: access.grants, access.denial, access.names."""

from __future__ import annotations

import grp
import json
import os
import pwd
from collections.abc import Collection

import pytest
from daemon_helpers import HELLO, Raw

from cpersona_cli.wire import client, control
from cpersona_daemon.errors import SettingsConflict
from cpersona_daemon.rpc.access import AccessList, Caller
from cpersona_daemon.shared.methods import ADMIN, READ, WRITE
from cpersona_daemon.shared.settings import load

OWN = os.getuid()


@pytest.fixture
def write(tmp_path):
    def put(document, mode: int = 0o600) -> str:
        path = tmp_path / "access.json"
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        path.chmod(mode)
        return str(path)

    return put


def entry(name: str = "c", **more) -> dict:
    return {"client_id": name, "grants": {"*": "read"}} | more


def rights(access: AccessList, caller: Caller | None, agent: str | None) -> str:
    """Return the letters of what a caller may do with an agent."""
    return "".join(
        letter for letter, kind in (("r", READ), ("w", WRITE), ("a", ADMIN)) if access.permits(caller, kind, agent)
    )


def test_without_a_file_the_owner_and_root_may_do_everything_and_nobody_else_anything():
    access = AccessList.load("", own_uid=1000)
    for uid in (1000, 0):
        assert access.admits(uid)
        assert rights(access, access.identify("whatever", uid), None) == "rwa"
    assert not access.admits(1001)
    assert access.identify("", 1001) is None
    assert rights(access, None, "x") == ""


def test_a_client_is_known_by_its_token_or_by_its_user_id(write):
    access = AccessList.load(write({"clients": [entry("t", token="secret"), entry("u", uid=4242), entry("own")]}))
    assert access.identify("secret", 9).client_id == "t"
    assert access.identify("", 4242).client_id == "u"
    assert access.identify("", OWN).client_id == "own"
    assert access.identify("", 77) is None


def test_a_wrong_token_is_nobody_even_for_the_owner(write):
    access = AccessList.load(write({"clients": [entry("own"), entry("t", token="secret")]}))
    assert access.identify("secre", OWN) is None
    assert access.identify("\udce9", OWN) is None


def test_an_entry_with_token_and_user_id_needs_both(write):
    access = AccessList.load(write({"clients": [entry("both", token="secret", uid=4242)]}))
    assert access.identify("secret", 4242).client_id == "both"
    assert access.identify("secret", 4243) is None
    assert access.identify("", 4242) is None


@pytest.mark.parametrize(
    ("grants", "agent", "expected"),
    [
        ({"*": "read-write"}, "x", "rwa"),
        ({"*": "read-write"}, None, "rwa"),
        ({"*": "read"}, "x", "r"),
        ({"*": "none"}, "x", ""),
        ({"x": "read-write"}, "x", "rw"),  # export and import need write on `*`
        ({"x": "read-write"}, "y", ""),
        ({"x": "read-write"}, None, ""),  # a call that names no agent needs `*`
        ({"x": "none", "*": "read-write"}, "x", ""),  # an exact grant beats `*`
        ({"x": "read-write", "*": "read"}, "x", "rw"),
        ({"x": "none", "*": "read-write"}, None, ""),  # and gets the least of all grants
        ({"x": "read", "*": "read-write"}, None, "r"),
        ({"x": "read", "*": "read-write"}, "", "r"),
        ({"x": "read", "*": "read-write"}, "y", "rwa"),
        ({}, "x", ""),
    ],
)
def test_grants(write, grants, agent, expected):
    access = AccessList.load(write({"clients": [entry(token="t", grants=grants)]}))
    assert rights(access, access.identify("t", OWN), agent) == expected


@pytest.mark.parametrize(
    "document",
    [
        "",
        "null",
        "[]",
        "{}",
        "{not json",
        '{"clients": []}',
        '{"clients": {}}',
        '{"clients": [1]}',
        '{"clients": [], "more": 1}',
        '{"clients": [{"client_id": "a", "client_id": "b", "grants": {}}]}',
        {"clients": [entry(colour="green")]},
        {"clients": [entry("")]},
        {"clients": [entry(5)]},
        {"clients": [{"grants": {}}]},
        {"clients": [entry("a"), entry("a", token="t")]},
        {"clients": [entry("a", token="t"), entry("b", token="t")]},
        {"clients": [entry("a", uid=5), entry("b", uid=5)]},
        {"clients": [entry("a"), entry("b")]},
        {"clients": [entry("a"), entry("b", uid=OWN)]},
        {"clients": [entry(token="")]},
        {"clients": [entry(token=5)]},
        {"clients": [entry(token=None)]},
        {"clients": [entry(uid="root")]},
        {"clients": [entry(uid=-1)]},
        {"clients": [entry(uid=True)]},
        {"clients": [entry(uid=None)]},
        {"clients": [{"client_id": "a"}]},
        {"clients": [entry(grants=[])]},
        {"clients": [entry(grants={"x": "write"})]},
        {"clients": [entry(grants={"x": True})]},
        {"clients": [entry(grants={"": "read"})]},
        '{"clients": ' + "[" * 100_000,
    ],
)
def test_a_file_with_anything_wrong_refuses_to_start(write, document):
    with pytest.raises(SettingsConflict):
        AccessList.load(write(document))


def test_a_file_that_cannot_be_read_or_that_others_can_write_refuses_to_start(write, tmp_path):
    with pytest.raises(SettingsConflict, match="cannot be read"):
        AccessList.load(str(tmp_path / "absent.json"))
    for mode in (0o620, 0o602):
        with pytest.raises(SettingsConflict, match="others can write"):
            AccessList.load(write({"clients": [entry()]}, mode))


def test_a_token_never_shows_in_an_error(write):
    with pytest.raises(SettingsConflict) as failure:
        AccessList.load(write({"clients": [entry("a", token="s3cret"), entry("b", token="s3cret")]}))
    assert "s3cret" not in str(failure.value)


def test_a_daemon_with_an_access_file_denies_in_the_contracts_four_keys(write, home, connect):
    path = write(
        {"clients": [entry("reader", token="r", grants={"a": "read"}), entry("own", grants={"*": "read-write"})]}
    )
    owner = connect(CPERSONA_ACL_FILE=path)
    assert owner.call("store", {"agent_id": "a", "content": "x"})[1] is None
    reader = connect(CPERSONA_ACL_FILE=path, CPERSONA_TOKEN="r")
    assert reader.call("list_memories", {"agent_id": "a"})[1] is None
    denied = {"ok": False, "error": "permission_denied", "tool": "store", "client_id": "reader"}
    assert reader.call("store", {"agent_id": "a", "content": "y"}) == (denied, "permission_denied")
    assert reader.call("daemon_stop", {})[1] == "permission_denied"
    stranger = connect(CPERSONA_ACL_FILE=path, CPERSONA_TOKEN="wrong")
    assert stranger.call("list_memories", {"agent_id": "a"})[1] == "permission_denied"
    with pytest.raises(client.CallFailed) as failure:
        environ = home | {"CPERSONA_ACL_FILE": path, "CPERSONA_TOKEN": "r"}
        control.stop_daemon(load(environ), 5, environ)
    assert failure.value.exit_status == 5


def test_a_daemon_does_not_start_over_a_bad_access_file(write, connect):
    with pytest.raises(client.CallFailed) as failure:
        connect(CPERSONA_ACL_FILE=write({"clients": []}))
    assert failure.value.code == "settings" and "access file" in failure.value.message


def test_the_socket_is_for_the_group_only_where_the_operator_placed_it_and_lists_who_may_come(write, home, connect):
    path = write({"clients": [entry("own", grants={"*": "read-write"})]})
    named = home["HOME"] + "/shared.sock"
    connection = connect(CPERSONA_ACL_FILE=path, CPERSONA_SOCKET=named)
    assert os.stat(named).st_mode & 0o777 == 0o660
    assert connection.places.socket == named


def _as_another_user(path: str, uid: int, requests: list[dict], groups: Collection[int] = ()) -> list[dict | None]:
    """Return what a process of another user reads: the answer to its hello, then one to each request."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups(groups)
            os.setgid(65_534)
            os.setuid(uid)
            one = Raw(path)
            answers = []
            for frame in [HELLO, *requests]:
                one.send(frame)
                answers.append(one.read())
            os.write(writer, json.dumps(answers).encode())
        except PermissionError:
            os.write(writer, b"null")
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as handle:
        told = handle.read()
    os.waitpid(child, 0)
    return json.loads(told)


@pytest.mark.skipif(OWN != 0, reason="only root can become somebody else")
def test_another_user_is_refused_on_accept_and_with_a_list_has_the_rights_of_its_user_id(write, home, connect):
    os.chmod(home["HOME"], 0o755)
    alone, shared = home["HOME"] + "/alone.sock", home["HOME"] + "/shared.sock"
    connect(CPERSONA_SOCKET=alone)
    os.chmod(alone, 0o666)
    (answer,) = _as_another_user(alone, 65_534, [])
    assert (answer["id"], answer["code"]) == (None, "permission_denied")
    path = write({"clients": [entry("guest", uid=65_534, grants={"a": "read"})]})
    connect(CPERSONA_SOCKET=shared, CPERSONA_ACL_FILE=path, CPERSONA_DB_PATH=home["HOME"] + "/db/shared.db")
    os.chmod(shared, 0o666)
    _, reads, writes = _as_another_user(
        shared,
        65_534,
        [
            {"id": 1, "method": "list_memories", "params": {"agent_id": "a"}},
            {"id": 2, "method": "store", "params": {"agent_id": "a", "content": "x"}},
        ],
    )
    assert "code" not in reads and writes["code"] == "permission_denied" and writes["response"]["client_id"] == "guest"
    (_, nobody) = _as_another_user(shared, 65_533, [{"id": 1, "method": "list_memories", "params": {"agent_id": "a"}}])
    assert nobody["code"] == "permission_denied"


@pytest.mark.skipif(OWN != 0, reason="only root can become somebody else")
def test_members_of_the_sockets_group_come_in_with_what_the_file_gives_their_group_and_nobody_else_does(
    write, home, connect
):
    os.chmod(home["HOME"], 0o755)
    team, shared = 54_321, home["HOME"] + "/team.sock"
    mine = grp.getgrgid(os.getgid()).gr_name
    path = write(
        {"clients": [entry("own", grants={"*": "read-write"}), entry("team", group=mine, grants={"a": "read"})]}
    )
    more = {"CPERSONA_ACL_FILE": path, "CPERSONA_SOCKET": shared, "CPERSONA_SOCKET_GROUP": str(team)}
    connect(**more)
    assert (os.stat(shared).st_gid, os.stat(shared).st_mode & 0o777) == (team, 0o660)
    reads = [{"id": 1, "method": "list_memories", "params": {"agent_id": "a"}}]
    writes = [{"id": 2, "method": "store", "params": {"agent_id": "a", "content": "x"}}]
    _, read, written = _as_another_user(shared, 65_533, reads + writes, groups=[team, os.getgid()])
    assert "code" not in read and written["response"]["client_id"] == "team"
    _, read = _as_another_user(shared, 65_533, reads, groups=[team])
    assert read["code"] == "permission_denied"
    assert _as_another_user(shared, 65_533, reads) is None  # the file itself keeps it out


def test_users_and_groups_are_named_as_the_machine_knows_them_and_a_user_counts_before_its_groups(write):
    user, group = pwd.getpwuid(OWN).pw_name, grp.getgrgid(os.getgid()).gr_name
    named = [entry("all", group=group), entry("me", user=user), entry("both", token="t", group=group)]
    access = AccessList.load(write({"clients": named}), own_uid=77_777)
    assert access.by_group
    assert access.identify("", OWN, {os.getgid()}).client_id == "me"
    assert access.identify("", 4242, {os.getgid()}).client_id == "all"
    assert access.identify("", 4242, {4242}) is None
    assert access.identify("t", 4242, {os.getgid()}).client_id == "both" and access.identify("t", 4242) is None


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"user": "nobody-of-that-name"}, "knows no user 'nobody-of-that-name'"),
        ({"group": "no-such-group"}, "knows no group 'no-such-group'"),
        ({"group": 5}, "not the name of a group"),
        ({"uid": 5, "group": "g"}, "uid and group"),
    ],
)
def test_an_entry_that_names_nobody_is_said(write, more, told):
    with pytest.raises(SettingsConflict, match=told):
        AccessList.load(write({"clients": [entry("x", **more)]}))


@pytest.mark.parametrize(
    ("more", "told"), [({}, "CPERSONA_ACL_FILE"), ({"CPERSONA_ACL_FILE": "{file}"}, "knows no such group")]
)
def test_a_socket_group_that_cannot_be_had_keeps_a_daemon_from_starting(write, connect, more, told):
    path = write({"clients": [entry("own")]})
    more = {name: value.format(file=path) for name, value in more.items()}
    with pytest.raises(client.CallFailed, match=told) as failure:
        connect(CPERSONA_SOCKET_GROUP="no-such-group", **more)
    assert failure.value.exit_status == 4
