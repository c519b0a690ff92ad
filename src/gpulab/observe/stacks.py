"""Python stacks of other processes, taken from outside with py-spy."""

import json
import os
import shutil
import stat
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path
from typing import Any

from gpulab.observe.model import Frame, ThreadStack

TIME_LIMIT = 3.0  # seconds for one process; it takes some hundredths
LARGEST_SOURCE = 1 << 20


class StacksUnavailableError(Exception):
    """Says in words why no stack could be taken."""


def take_stacks(
    pid: int, folder: Path, inside: Path | None = None, *, time_limit: float = TIME_LIMIT
) -> tuple[ThreadStack, ...]:
    """The stacks of all Python threads of a process, the main thread's first.

    Frames of files below `folder` come first, with their source; `inside` is the process's own name
    for it. The process is not stopped for it: this is meant for processes that stand still.
    StacksUnavailableError where py-spy is absent, refused, or slower than `time_limit` seconds.
    """
    time_limit = min(time_limit, TIME_LIMIT)
    if time_limit <= 0:
        raise StacksUnavailableError("Python stacks: no time was left for all of them")
    program = _py_spy()
    if program is None:
        raise StacksUnavailableError("Python stacks: py-spy is not installed")
    options = ["dump", "--json", "--full-filenames", "--nonblocking", "--pid", str(pid)]
    try:
        result = subprocess.run(
            [program, *options], capture_output=True, text=True, timeout=time_limit, check=False
        )
    except subprocess.TimeoutExpired:
        raise StacksUnavailableError(
            f"Python stacks: py-spy took over {time_limit:.1f} s"
        ) from None
    if result.returncode != 0:
        reason = (result.stderr.strip() or "no reason given").splitlines()[0]
        raise StacksUnavailableError(f"Python stacks: py-spy failed ({reason})")
    threads = sorted(json.loads(result.stdout), key=lambda thread: thread["os_thread_id"] != pid)
    return tuple(
        ThreadStack(thread["thread_name"] or "", _frames(thread["frames"], folder, inside))
        for thread in threads
    )


def _frames(
    calls: list[dict[str, Any]], folder: Path, inside: Path | None = None
) -> tuple[Frame, ...]:
    """The calls as frames, those of the folder's own files first and named from the folder on."""
    own: list[Frame] = []
    others: list[Frame] = []
    for call in calls:
        file, line = call["filename"], call["line"]
        path = _outside(file, folder, inside or folder)
        if path:
            name = str(path.relative_to(folder))
            own.append(Frame(name, line, call["name"], _source(path, line, folder)))
        else:
            others.append(Frame(file, line, call["name"], None))
    return tuple(own + others)


def _outside(file: str, folder: Path, inside: Path) -> Path | None:
    """The file's true path if it lies in the folder; a process may give its code any file name."""
    if Path(file).is_relative_to(inside):
        file = str(Path(file).relative_to(inside))
    try:
        path = (folder / file).resolve()
    except (OSError, RuntimeError, ValueError):  # a loop of links, a zero byte
        return None
    return path if path.is_relative_to(folder) else None


def _source(path: Path, line: int, folder: Path) -> str | None:
    """One line of a file that lies in the folder, even if a link is being changed meanwhile."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe must not block
        with os.fdopen(number, "rb") as file:
            opened = Path(f"/proc/self/fd/{number}").readlink()
            if not opened.is_relative_to(folder) or not stat.S_ISREG(os.fstat(number).st_mode):
                return None
            lines = file.read(LARGEST_SOURCE).decode(errors="replace").splitlines()
    except OSError:
        return None
    return lines[line - 1].strip() or None if 0 < line <= len(lines) else None


@cache
def _py_spy() -> str | None:
    folders = [Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))]
    return next((found for place in folders if (found := shutil.which("py-spy", path=place))), None)
