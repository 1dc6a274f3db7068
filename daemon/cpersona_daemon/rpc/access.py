"""Who may do what: clients known by token, user or group, and what each may do with each agent.

Contract: access.grants, access.denial, access.names.
"""

from __future__ import annotations

import grp
import hmac
import json
import os
import pwd
import stat
from collections.abc import Callable, Collection
from dataclasses import dataclass

from ..errors import SettingsConflict
from ..shared import fields, files
from ..shared.methods import ADMIN, READ, WRITE

OWNER = fields.OWNER
NONE, READ_ONLY, READ_WRITE = 0, 1, 2
_LEVELS = {"none": NONE, "read": READ_ONLY, "read-write": READ_WRITE}
_NEEDED = {READ: READ_ONLY, WRITE: READ_WRITE, ADMIN: READ_WRITE}
_WHO = ("uid", "user", "group")  # an entry names one of them at most
_KEYS = {"client_id", "token", "grants", *_WHO}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is at the other end of a connection."""

    client_id: str
    uid: int


@dataclass(frozen=True, slots=True)
class _Client:
    client_id: str
    token: str
    uid: int | None
    gid: int | None
    grants: dict[str, int]

    def is_of(self, uid: int, groups: Collection[int]) -> bool:
        """Tell whether a peer is who the entry names beside its token; it may name nobody."""
        return self.uid in (None, uid) and (self.gid is None or self.gid in groups)

    def level(self, agent: str | None) -> int:
        """An exact grant beats `*`; a call that names no agent needs `*` and gets the least of all grants."""
        if agent:
            return self.grants.get(agent, self.grants.get("*", NONE))
        return min(self.grants.values()) if "*" in self.grants else NONE


class AccessList:
    """The access file, read once at start. Without one the socket's owner may do everything."""

    def __init__(self, clients: list[_Client] | None = None, own_uid: int | None = None) -> None:
        self._own_uid = os.getuid() if own_uid is None else own_uid
        self._clients = None if clients is None else {c.client_id: c for c in clients}

    @classmethod
    def load(cls, path: str, own_uid: int | None = None) -> AccessList:
        """Read the file at ``path``; '' means there is none. Raises SettingsConflict with what is wrong in it."""
        if not path:
            return cls(None, own_uid)
        path = os.path.expanduser(path)
        try:
            with open(files.opened(path, follow=True), "rb") as handle:
                info = os.fstat(handle.fileno())
                raw = handle.read()
        except OSError as error:
            raise SettingsConflict(f"the access file {path} cannot be read: {error.strerror}") from None
        if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise SettingsConflict(f"others can write to the access file {path}; run chmod go-w on it")
        if info.st_uid not in (os.getuid(), 0):
            raise SettingsConflict(f"the access file {path} belongs to another user")
        try:
            document = json.loads(raw.decode("utf-8"), object_pairs_hook=_without_repeats)
        except (ValueError, RecursionError) as error:
            raise SettingsConflict(f"the access file {path} is not valid: {error}") from None
        try:
            return cls(_clients(document, os.getuid() if own_uid is None else own_uid), own_uid)
        except ValueError as error:
            raise SettingsConflict(f"the access file {path} is not valid: {error}") from None

    @property
    def open(self) -> bool:
        """Whether there is no access file."""
        return self._clients is None

    def admits(self, uid: int) -> bool:
        """Tell on accept whether a peer can be anybody at all; with an access file its token may still name it."""
        return self._clients is not None or uid in (self._own_uid, 0)

    @property
    def by_group(self) -> bool:
        """Whether an entry names a group, so that it matters in which groups a peer is."""
        return any(client.gid is not None for client in (self._clients or {}).values())

    def identify(self, token: str, uid: int, groups: Collection[int] = ()) -> Caller | None:
        """Return who a peer is, or None when the list does not know it. Every token is compared, each in constant time.

        A token that is given decides alone: a wrong one is nobody, whatever the peer's user id. An entry for its user
        comes before those for its groups, of which the first in the file counts.
        """
        if self._clients is None:
            return Caller(OWNER, uid) if self.admits(uid) else None
        found = self._of_token(token) if token else self._of_uid(uid) or self._of_group(groups)
        if found is None or (found.token and not found.is_of(uid, groups)):
            return None  # an entry with both is known by both
        return Caller(found.client_id, uid)

    def _of_token(self, token: str) -> _Client | None:
        given, found = token.encode("utf-8", "surrogatepass"), None
        for client in (self._clients or {}).values():
            if client.token and hmac.compare_digest(client.token.encode("utf-8", "surrogatepass"), given):
                found = client
        return found

    def _of_uid(self, uid: int) -> _Client | None:
        nameless = (client for client in (self._clients or {}).values() if not client.token and client.gid is None)
        return next((c for c in nameless if uid == (self._own_uid if c.uid is None else c.uid)), None)

    def _of_group(self, groups: Collection[int]) -> _Client | None:
        clients = (self._clients or {}).values()
        return next((client for client in clients if not client.token and client.gid in groups), None)

    def permits(self, caller: Caller | None, method_class: str, agent: str | None) -> bool:
        """Tell whether a caller may run a method of this class on an agent.

        A caller None is nobody we know; an agent '' or None names none. Export and import (``admin``) need write on `*`
        besides.
        """
        if caller is None:
            return False
        if self._clients is None:
            return caller.client_id == OWNER
        client = self._clients.get(caller.client_id)
        if client is None:
            return False
        if method_class == ADMIN and client.grants.get("*", NONE) < READ_WRITE:
            return False
        return client.level(agent) >= _NEEDED[method_class]


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    out = dict(pairs)
    if len(out) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{repeated!r} stands twice in one object")
    return out


def _clients(document: object, own_uid: int) -> list[_Client]:
    """Return the clients of a decoded file. Raises ValueError with the first thing wrong."""
    if not isinstance(document, dict) or set(document) != {"clients"}:
        raise ValueError('it must be {"clients": [...]} and nothing else')
    entries = document["clients"]
    if not isinstance(entries, list) or not entries:
        raise ValueError("clients must be a list with at least one client")
    clients = [_client(entry, number) for number, entry in enumerate(entries, 1)]
    _tell_apart(clients, own_uid)
    return clients


def _tell_apart(clients: list[_Client], own_uid: int) -> None:
    """Raise ValueError where a peer could be two of them."""
    _unique("client_id", [c.client_id for c in clients])
    _unique("token", [c.token for c in clients if c.token])
    tokenless = [c for c in clients if not c.token]
    _unique("uid", [own_uid if c.uid is None else c.uid for c in tokenless if c.gid is None])
    _unique("group", [c.gid for c in tokenless if c.gid is not None])


def _client(entry: object, number: int) -> _Client:
    if not isinstance(entry, dict):
        raise ValueError(f"client {number} is not an object")
    unknown = sorted(set(entry) - _KEYS)
    if unknown:
        raise ValueError(f"client {number} has the unknown key {unknown[0]!r}")
    name = entry.get("client_id")
    if not isinstance(name, str) or not name:
        raise ValueError(f"client {number} needs a client_id that is text")
    token = entry.get("token", "")
    if not isinstance(token, str) or ("token" in entry and not token):
        raise ValueError(f"the token of {name!r} is not text, or empty")
    uid, gid = _who(entry, name)
    return _Client(name, token, uid, gid, _grants(entry.get("grants"), name))


def _who(entry: dict, name: str) -> tuple[int | None, int | None]:
    """Return the user id and the group id that an entry names, each None where it names none. Raises ValueError."""
    named = [key for key in _WHO if key in entry]
    if len(named) > 1:
        raise ValueError(f"{name!r} has {named[0]} and {named[1]}; an entry names one user or one group")
    if "uid" in entry:
        uid = entry["uid"]
        if not isinstance(uid, int) or isinstance(uid, bool) or uid < 0:
            raise ValueError(f"the uid of {name!r} is not a user id")
        return uid, None
    if "user" in entry:
        return _number_of(entry["user"], "user", name, lambda user: pwd.getpwnam(user).pw_uid), None
    if "group" in entry:
        return None, _number_of(entry["group"], "group", name, lambda group: grp.getgrnam(group).gr_gid)
    return None, None


def _number_of(named: object, what: str, name: str, look: Callable[[str], int]) -> int:
    if not isinstance(named, str) or not named:
        raise ValueError(f"the {what} of {name!r} is not the name of a {what}")
    try:
        return look(named)
    except (KeyError, ValueError):
        raise ValueError(f"this machine knows no {what} {named!r}, which {name!r} names") from None


def _grants(grants: object, name: str) -> dict[str, int]:
    """Return what a client may do with each agent. Raises ValueError."""
    if not isinstance(grants, dict):
        raise ValueError(f"{name!r} needs grants, an object of agent or * to none, read or read-write")
    for agent, grant in grants.items():
        if not agent:
            raise ValueError(f"{name!r} has a grant for an agent without a name")
        if not isinstance(grant, str) or grant not in _LEVELS:
            raise ValueError(f"{name!r} has the grant {grant!r} for {agent!r}; a grant is none, read or read-write")
    return {agent: _LEVELS[grant] for agent, grant in grants.items()}


def _unique(what: str, values: list) -> None:
    if len(set(values)) != len(values):
        # A token never shows, not even in an error.
        shown = "" if what == "token" else f" {next(v for v in values if values.count(v) > 1)!r}"
        raise ValueError(f"two clients have the same {what}{shown}")
