"""The systemd unit of a daemon that serves the users of one machine. Contract: daemon.shared."""

from __future__ import annotations

import os
import sys

SYSTEM_USER = "cpersona"
DATABASE, SOCKET, ACCESS = "/var/lib/cpersona/cpersona.db", "/run/cpersona/cpersona.sock", "/etc/cpersona/access.json"

_UNIT = f"""\
# cpersonad.service: one memory daemon for the users of this machine. As root:
#
#   useradd --system --user-group --home-dir {os.path.dirname(DATABASE)} --shell /usr/sbin/nologin {SYSTEM_USER}
%(group_lines)s#   usermod --append --groups %(group)s alice      (for each user; it counts from the next login)
#   install -d {os.path.dirname(ACCESS)} && editor {ACCESS}
#     {{"clients": [{{"client_id": "keeper", "grants": {{"*": "read-write"}}}},
#                  {{"client_id": "alice", "user": "alice", "grants": {{"alice": "read-write", "team": "read-write"}}}},
#                  {{"client_id": "team", "group": "%(group)s", "grants": {{"team": "read"}}}}]}}
#   cpersona daemon unit > /etc/systemd/system/cpersonad.service
#   systemctl daemon-reload && systemctl enable --now cpersonad
#
# Every user's environment (/etc/environment) names the same two places:
#
#   CPERSONA_DB_PATH={DATABASE}
#   CPERSONA_SOCKET={SOCKET}
#
# `man cpersonad` has a page on what is shared and what is not. Settings go into /etc/cpersona/config.toml.

[Unit]
Description=cpersona memory daemon of this machine
Documentation=man:cpersonad(8)

[Service]
Type=notify
NotifyAccess=main
User={SYSTEM_USER}
Group={SYSTEM_USER}
%(supplementary)sExecStart=%(program)s --foreground
Environment=CPERSONA_DB_PATH={DATABASE}
Environment=CPERSONA_SOCKET={SOCKET}
Environment=CPERSONA_SOCKET_GROUP=%(group)s
Environment=CPERSONA_ACL_FILE={ACCESS}
Environment=CPERSONA_IDLE_TIMEOUT=0
Environment=XDG_CONFIG_HOME=/etc XDG_STATE_HOME={os.path.dirname(DATABASE)}
StateDirectory=cpersona
StateDirectoryMode=0700
RuntimeDirectory=cpersona
RuntimeDirectoryMode=0755
UMask=0077
KillSignal=SIGTERM
TimeoutStopSec=90
Restart=on-failure
LimitNOFILE=4096
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=read-only
ProtectKernelTunables=yes
ProtectControlGroups=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6

[Install]
WantedBy=multi-user.target
"""


def text(group: str) -> str:
    """Return the unit; members of ``group`` may connect."""
    own = group == SYSTEM_USER
    return _UNIT % {
        "group": group,
        "group_lines": "" if own else f"#   groupadd --force {group}\n",
        "supplementary": "" if own else f"SupplementaryGroups={group}\n",
        "program": program(),
    }


def program() -> str:
    """Return the path of this installation's daemon."""
    return os.path.join(os.path.dirname(sys.executable), "cpersonad")
