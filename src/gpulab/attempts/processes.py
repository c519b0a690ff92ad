"""Starting processes with pipes of their own."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from gpulab.model import LabError

FILE_BYTES = 4 << 30  # the largest file that an attempt may write


class Pipes:
    """The pipes from an attempt. Leaving the context closes what nobody has taken."""

    def __init__(self, *, answer: bool) -> None:
        self._read: dict[str, int] = {}
        self.write: dict[str, int] = {}
        for name in ("stdout", "stderr", *(["answer"] if answer else [])):
            self._read[name], self.write[name] = os.pipe()

    def take(self) -> dict[str, int]:
        """The ends to read from, now the caller's."""
        taken, self._read = self._read, {}
        return taken

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for fd in (*self._read.values(), *self.write.values()):
            os.close(fd)


def start(
    command: list[str],
    pipes: Pipes,
    inherited: Iterable[int],
    environment: dict[str, str],
    folder: Path,
    *,
    session: bool = True,
) -> subprocess.Popen[bytes]:
    """Start a process with nothing but these pipes and descriptors.

    Raises:
        LabError: it cannot be started.
    """
    try:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=pipes.write["stdout"],
            stderr=pipes.write["stderr"],
            pass_fds=tuple(inherited),
            start_new_session=session,
        )
    except OSError as error:
        raise LabError(f"{command[0]} cannot be started ({error.strerror}).", code=4) from None


def limit(pid: int) -> None:
    """Bound its core and other files, and those of what it starts later.

    Never its address space: CUDA reserves far more than it uses.
    """
    with contextlib.suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
