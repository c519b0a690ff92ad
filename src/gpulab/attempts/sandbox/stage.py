"""What goes into a sandbox with a job, and what comes back out of it.

Inside, everything lies on the stage, a folder in memory that goes with the sandbox. The attempt
side unpacks it there before any of the attendee's code runs. What comes back is read by
descriptors, from a folder that the attempt may have filled with anything.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

from gpulab.attempts.job import Call, Job
from gpulab.attempts.waiting import File

INSIDE = Path("/work")
PROBE = "probe.py"
MAX_ENTRIES = 10_000
MAX_DEPTH = 20

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Stage:
    """The stage of one job.

    Attributes:
        job: the job in the words of the inside.
        files: what to put on the stage, by names relative to it.
    """

    def __init__(self, job: Job) -> None:
        self._used: dict[Path, str] = {}
        self._returned = job.returned
        self._shared = {folder: f"shared-{n}/{folder.name}" for n, folder in enumerate(job.shared)}
        self.job = self._translate(job)
        self.files = [*_tree(job.folder, job.folder.name)]
        for folder, name in self._used.items():
            self.files += _tree(folder, name)
        if job.call is not None and job.call.probe is not None:
            self.files.append((PROBE, job.call.probe.read_bytes()))

    def bring_back(self, stage: int, most: int) -> None:
        """Copy what the attempt wrote to those folders that it was given paths of and that return.

        Regular files only, in all at most `most` bytes; what is over that stays behind.

        Args:
            stage: descriptor of the stage.
            most: bytes.
        """
        budget = _Budget(most)
        for folder, name in self._used.items():
            if folder not in self._returned:
                continue
            with suppress(OSError), _folder(stage, Path(name)) as fd:
                _copy(fd, folder, budget, MAX_DEPTH)

    def _translate(self, job: Job) -> Job:
        call = job.call and Call(
            job.call.function,
            tuple(self._inside(value) for value in job.call.args),
            {key: self._inside(value) for key, value in job.call.kwargs.items()},
            None if job.call.probe is None else INSIDE / PROBE,
        )
        arguments = tuple(self._in_text(text) for text in job.arguments)
        return replace(job, folder=INSIDE / job.folder.name, arguments=arguments, call=call)

    def _inside(self, value: Any) -> Any:
        if isinstance(value, PurePath):
            for folder, name in self._shared.items():
                if value.is_relative_to(folder):
                    self._used[folder] = name
                    return INSIDE / name / value.relative_to(folder)
        if isinstance(value, str):
            return self._in_text(value)
        if isinstance(value, dict):
            return {key: self._inside(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._inside(item) for item in value]
        return value

    def _in_text(self, text: str) -> str:
        for folder, name in self._shared.items():
            if str(folder) in text:
                self._used[folder] = name
                text = text.replace(str(folder), str(INSIDE / name))
        return text


class _Budget:
    def __init__(self, size: int) -> None:
        self.size, self.entries = size, MAX_ENTRIES

    def has_entry(self) -> bool:
        """Whether one more entry may be looked at."""
        self.entries -= 1
        return self.entries >= 0

    def allows(self, size: int) -> bool:
        """Whether a file of this size fits; one that does not leaves the others their room."""
        if size > self.size:
            return False
        self.size -= size
        return True


def _tree(folder: Path, name: str) -> Iterator[File]:
    """A folder of ours and all that is in it; no link is followed."""
    yield name, None
    for path in sorted(folder.rglob("*")):
        inside = f"{name}/{path.relative_to(folder)}"
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            yield inside, None
        elif stat.S_ISREG(mode):
            yield inside, path.read_bytes()


@contextmanager
def _folder(parent: int, path: Path) -> Iterator[int]:
    """Open a folder below another, no step of the way through a link."""
    fd = os.dup(parent)
    try:
        for part in path.parts:
            step = os.open(part, _OPEN | os.O_DIRECTORY, dir_fd=fd)
            os.close(fd)
            fd = step
        yield fd
    finally:
        os.close(fd)


def _copy(source: int, target: Path, budget: _Budget, depth: int) -> None:
    with os.scandir(source) as entries:  # one by one: there may be millions
        for entry in entries:
            if not budget.has_entry():
                return
            with suppress(OSError):  # of another kind by now, or not to be read: it stays behind
                _copy_one(source, entry.name, target / entry.name, budget, depth)


def _copy_one(source: int, name: str, target: Path, budget: _Budget, depth: int) -> None:
    mode = os.lstat(name, dir_fd=source).st_mode
    if stat.S_ISDIR(mode) and depth:
        with _folder(source, Path(name)) as fd:
            target.mkdir(exist_ok=True)
            _copy(fd, target, budget, depth - 1)
    elif stat.S_ISREG(mode):
        fd = os.open(name, _OPEN, dir_fd=source)
        with os.fdopen(fd, "rb") as file:
            size = os.fstat(fd).st_size
            if budget.allows(size) and not _same(data := file.read(size), target):
                target.write_bytes(data)


def _same(data: bytes, target: Path) -> bool:
    return target.is_file() and target.read_bytes() == data
