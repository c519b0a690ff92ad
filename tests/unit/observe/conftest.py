"""Starts scripts and watches them as an attempt is watched."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gpulab.observe import Evidence, Hang, Observer, become_subreaper, end_everything

SCRIPTS = Path(__file__).parent / "scripts"
LOOK_EVERY = 0.05
TIME_LIMIT = 60.0


@dataclass
class Watched:
    """One script under observation, and what came of it."""

    command: tuple[str, ...]
    process: subprocess.Popen[bytes]
    observer: Observer
    file: Path
    begun: float = field(default_factory=time.monotonic)
    last_output: float = 0.0
    looks: list[float] = field(default_factory=list)  # CPU seconds of each

    @property
    def output(self) -> str:
        return self.file.read_text(errors="replace")

    @property
    def hang(self) -> Hang | None:
        return self.observer.hang

    @property
    def evidence(self) -> Evidence:
        return self.observer.evidence()

    def look(self) -> bool:
        """One look; False when the script ended or hangs."""
        size = self.file.stat().st_size
        if self.looks and size != self._size:
            self.last_output = time.monotonic() - self.begun
        self._size = size
        begin = time.thread_time()
        self.observer.look(size)
        self.looks.append(time.thread_time() - begin)
        return self.process.poll() is None and self.hang is None

    def look_until(self, word: str, *, seconds: float = 20.0) -> None:
        deadline = time.monotonic() + seconds
        while word not in self.output:
            assert time.monotonic() < deadline, f"{word!r} never came: {self.output}"
            self.look()
            time.sleep(LOOK_EVERY)

    def look_for(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.look()
            time.sleep(LOOK_EVERY)

    def close(self) -> None:
        try:
            end_everything(self.observer)
        finally:
            self.process.kill()
            self.process.wait()


class Watcher:
    """Starts scripts; everything it started is ended with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stack = ExitStack()

    def start(self, script: str, *arguments: str) -> Watched:
        file = Path(tempfile.mkstemp(dir=self.folder)[1])
        with file.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, str(SCRIPTS / script), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        watched = Watched((script, *arguments), process, Observer(process.pid, SCRIPTS), file)
        self.stack.callback(watched.close)
        return watched

    def watch(self, *commands: str) -> list[Watched]:
        """Watch the scripts side by side until each has ended or hangs."""
        all_watched = [self.start(*command.split()) for command in commands]
        pending, deadline = list(all_watched), time.monotonic() + TIME_LIMIT
        while pending:
            assert time.monotonic() < deadline, [watched.output for watched in pending]
            pending = [watched for watched in pending if watched.look()]
            time.sleep(LOOK_EVERY)
        return all_watched


@pytest.fixture(scope="module")
def watcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watcher]:
    become_subreaper()
    watcher = Watcher(tmp_path_factory.mktemp("watched"))
    with watcher.stack:
        yield watcher
