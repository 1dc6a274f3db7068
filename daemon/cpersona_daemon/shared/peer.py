"""Who is at the other end of a unix socket. Standard library only: the client reads this module too.

Contract: wire.peer.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

# struct ucred {pid, uid, gid} on Linux; struct xucred {version, uid, ...} on macOS: the uid is at byte 4 in both.
_LINUX = (1, 17, 12)  # SOL_SOCKET, SO_PEERCRED
_MACOS = (0, 1, 76)  # SOL_LOCAL, LOCAL_PEERCRED
_MACOS_PEERPID = (0, 2, 4)
_LINUX_GROUPS = 59  # SO_PEERGROUPS
_MOST_GROUPS = 256  # as much as Python takes from a socket at once
_NUMBER_BYTES = 4


def peer_uid(sock: "socket") -> int:
    """Return the peer's user id. Raises OSError where the system does not tell it."""
    level, option, size = _MACOS if sys.platform == "darwin" else _LINUX
    raw = sock.getsockopt(level, option, size)
    return int.from_bytes(raw[4:8], sys.byteorder)


def hung_up(sock: "socket") -> bool:
    """Tell whether the peer is gone, and did not only stop sending; no where the system does not tell these apart."""
    if sys.platform != "linux":
        return False
    import select

    poller = select.poll()
    poller.register(sock.fileno(), 0)  # the end of both directions is told whatever is asked for
    return any(event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in poller.poll(0))


def peer_pid(sock: "socket") -> int:
    """Return the process id of the peer; for a connected client that is who listens. Raises OSError."""
    level, option, size = _MACOS_PEERPID if sys.platform == "darwin" else _LINUX
    raw = sock.getsockopt(level, option, size)
    return int.from_bytes(raw[:4], sys.byteorder)


def peer_groups(sock: "socket") -> frozenset[int]:
    """Return the peer's group ids, as the kernel knew them when it connected: no directory service is asked.

    None where the system does not tell them. Raises OSError.
    """
    if sys.platform == "darwin":
        level, option, size = _MACOS
        raw = sock.getsockopt(level, option, size)  # ..., short cr_ngroups at byte 8, cr_groups from byte 12
        return _numbers(raw[12 : 12 + _NUMBER_BYTES * int.from_bytes(raw[8:10], sys.byteorder)])
    level, option, size = _LINUX
    own = sock.getsockopt(level, option, size)[8:12]
    try:
        others = sock.getsockopt(level, _LINUX_GROUPS, _NUMBER_BYTES * _MOST_GROUPS)
    except OSError:
        others = b""  # a kernel before 4.13 tells the first group alone
    return _numbers(own + others)


def _numbers(raw: bytes) -> frozenset[int]:
    return frozenset(
        int.from_bytes(raw[at : at + _NUMBER_BYTES], sys.byteorder) for at in range(0, len(raw), _NUMBER_BYTES)
    )
