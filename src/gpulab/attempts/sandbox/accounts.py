"""Accounts for attempts: user numbers that nobody has, never two attempts with the same one."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gpulab.model import LabError


@dataclass(frozen=True)
class Account:
    """A number for user and group.

    `lock` is a descriptor; the account is taken until its last copy is closed. The sandbox holds a
    copy, so that the account stays taken while anything in the sandbox lives.
    """

    number: int
    lock: int


def take(numbers: Iterable[int], folder: Path) -> Account:
    """Take a free account; `folder` holds the locks.

    Raises:
        LabError: all are taken, or the folder cannot be used.
    """
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        for number in numbers:
            fd = os.open(folder / f"{number}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return Account(number, fd)
            os.close(fd)
    except OSError as error:
        raise LabError(
            f"Accounts of attempts cannot be locked in {folder} ({error.strerror}).", code=4
        ) from None
    raise LabError(
        "Every account of attempts is taken; raise `uids.count` in the isolation file.", code=4
    )
