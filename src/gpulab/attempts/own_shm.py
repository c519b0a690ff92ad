"""Become a command that has a /dev/shm of its own, of a given size; no rights are needed.

    python own_shm.py BYTES COMMAND [ARGUMENT...]

It lies in a mount namespace that only the command and what it starts can see. Who may not make
one makes a user namespace as well, in which users keep their numbers. Where the machine allows
neither, this says why and fails.

Runs under the stack's Python (3.9 and later) on the standard library alone.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

PROGRAM = Path(__file__)
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_NOSUID, MS_NODEV, MS_REC, MS_SLAVE = 0x2, 0x4, 0x4000, 0x80000
PLACE = b"/dev/shm"


def become(size: int, command: list[str]) -> NoReturn:
    """Mount it and run the command."""
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        _leave(libc)
        _call(libc.mount, None, b"/", None, MS_REC | MS_SLAVE, None)  # unseen outside
        options = b"size=%d,mode=1777" % size
        _call(libc.mount, b"shm", PLACE, b"tmpfs", MS_NOSUID | MS_NODEV, options)
    except OSError as error:
        sys.exit(error.strerror)
    os.execv(command[0], command)  # noqa: S606 - a shell would only be in the way


def _leave(libc: ctypes.CDLL) -> None:
    """Enter a mount namespace of our own."""
    user, group = os.getuid(), os.getgid()
    try:
        _call(libc.unshare, CLONE_NEWNS)
    except PermissionError:
        _call(libc.unshare, CLONE_NEWUSER | CLONE_NEWNS)
        us = Path("/proc/self")
        (us / "uid_map").write_text(f"{user} {user} 1")
        (us / "setgroups").write_text("deny")
        (us / "gid_map").write_text(f"{group} {group} 1")


def _call(function: Any, *arguments: Any) -> None:
    if function(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    become(int(sys.argv[1]), sys.argv[2:])
