"""Python stacks of other processes, taken from outside with py-spy."""

import json
import linecache
import shutil
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path
from typing import Any

from gpulab.observe.model import Frame, ThreadStack

TIME_LIMIT = 3.0  # seconds for one process; it takes some hundredths


class StacksUnavailableError(Exception):
    """Says in words why no stack could be taken."""


def take_stacks(pid: int, folder: Path) -> tuple[ThreadStack, ...]:
    """The stacks of all Python threads of a process, the main thread's first.

    Frames of files below `folder` come first. The process is not stopped for it: this is meant for
    processes that stand still. StacksUnavailableError where py-spy is absent or refused.
    """
    program = _py_spy()
    if program is None:
        raise StacksUnavailableError("Python stacks: py-spy is not installed")
    options = ["dump", "--json", "--full-filenames", "--nonblocking", "--pid", str(pid)]
    try:
        result = subprocess.run(
            [program, *options], capture_output=True, text=True, timeout=TIME_LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        raise StacksUnavailableError(f"Python stacks: py-spy took over {TIME_LIMIT:g} s") from None
    if result.returncode != 0:
        reason = (result.stderr.strip() or "no reason given").splitlines()[0]
        raise StacksUnavailableError(f"Python stacks: py-spy failed ({reason})")
    threads = sorted(json.loads(result.stdout), key=lambda thread: thread["os_thread_id"] != pid)
    return tuple(
        ThreadStack(thread["thread_name"] or "", _frames(thread["frames"], folder))
        for thread in threads
    )


def _frames(calls: list[dict[str, Any]], folder: Path) -> tuple[Frame, ...]:
    """The calls as frames, those of the folder's own files first and named from the folder on."""
    own, foreign = [], []
    for call in calls:
        file, line, function = call["filename"], call["line"], call["name"]
        if Path(file).is_relative_to(folder):
            name = str(Path(file).relative_to(folder))
            own.append(Frame(name, line, function, _source(folder, name, line)))
        else:
            foreign.append(Frame(file, line, function, None))
    return (*own, *foreign)


def _source(folder: Path, name: str, line: int) -> str | None:
    """The line of a file in the folder, and of no other file.

    A script may give its code any file name, and put a link in its folder.
    """
    path = (folder / name).resolve()
    if not path.is_relative_to(folder) or not path.is_file():
        return None
    linecache.checkcache(str(path))
    return linecache.getline(str(path), line).strip() or None


@cache
def _py_spy() -> str | None:
    folders = [Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))]
    return next((found for place in folders if (found := shutil.which("py-spy", path=place))), None)
