"""A service of its own for each test: the golden catalogue, level local, no root needed."""

import contextlib
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from gpulab.service import upload
from gpulab.service.client import Client

CHECKOUT = Path(__file__).resolve().parents[3]
PATIENCE = 60.0  # seconds for what should take one: the machine may be busy


class Service:
    """A service in a process of its own, and its seats' clients."""

    SLEEPS = "import time\nprint('asleep', flush=True)\ntime.sleep(60)\ndef double(v): return []\n"

    def __init__(self, home: Path, catalogue: Path) -> None:
        self.home, self.catalogue = home, catalogue
        self.state = home / "state"
        self.config = home / "grader.toml"
        self.log = home / "log"
        self.limits: dict[str, float] = {"upload_seconds": 5}
        self.shares: dict[str, dict[str, Any]] = {"cpu": {"warm": False}}
        self.seats = {"seat-1": "cpu", "seat-2": "cpu"}
        self.process: psutil.Popen | None = None

    def place(self, seat: str = "seat-1") -> Path:
        return self.home / seat / "s"

    def write_config(self) -> None:
        lines = [f'root = "{self.catalogue}"', f'state = "{self.state}"', 'log_level = "debug"']
        lines += ["[limits]", *(f"{key} = {value}" for key, value in self.limits.items())]
        for name, share in self.shares.items():
            lines += [f"[shares.{name}]", *(f"{k} = {json.dumps(v)}" for k, v in share.items())]
        for name, share in self.seats.items():
            lines += [f"[seats.{name}]", f'socket = "{self.place(name)}"', f'share = "{share}"']
            lines += [f"uid = {os.getuid()}", f"gid = {os.getgid()}"]
        self.config.write_text("\n".join(lines) + "\n")

    def command(self, *options: str) -> list[str]:
        return [sys.executable, "-m", "gpulab.service", "--config", str(self.config), *options]

    def start(self, **environment: str) -> "Service":
        self.write_config()
        with self.log.open("ab") as log:
            self.process = psutil.Popen(
                self.command(), stderr=log, stdout=log, env={**os.environ, **environment}
            )
        self.wait_for(self.serves)
        return self

    @staticmethod
    def wait_for(what: Callable[[], Any], seconds: float = PATIENCE) -> Any:
        """What `what` returns as soon as it is true."""
        end = time.monotonic() + seconds
        while not (found := what()):
            assert time.monotonic() < end, f"waited {seconds:g} s in vain"
            time.sleep(0.02)
        return found

    @staticmethod
    def variant(name: str) -> str:
        """The script of one of the golden catalogue's solutions or wrong fixes."""
        (path,) = (CHECKOUT / "tests" / "golden").glob(f"checks/exercise-1/*/{name}/train.py")
        return path.read_text()

    @staticmethod
    def request(script: str, exercise: str = "exercise-1", **files: str) -> bytes:
        """An upload of one script and more files."""
        named = {"train.py": script, **files}
        return upload.pack(exercise, None, [(n, text.encode()) for n, text in named.items()])

    @staticmethod
    def http(body: bytes, path: str = "/check", length: int | None = None) -> bytes:
        """A request for a check, byte by byte."""
        size = len(body) if length is None else length
        return f"POST {path} HTTP/1.1\r\nHost: g\r\nContent-Length: {size}\r\n\r\n".encode() + body

    def judge(self, script: str, seat: str = "seat-1") -> list[dict[str, Any]]:
        """Have a script judged; every event."""
        return self.send(self.request(script), seat)

    def send(self, body: bytes, seat: str = "seat-1") -> list[dict[str, Any]]:
        """Send a request for a check; every event, that of the client's own making included."""
        events: list[dict[str, Any]] = []
        last = self.client(seat).check(body, events.append)
        return events if events[-1] is last else [*events, last]

    def serves(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()
        try:
            return all(self.client(seat).get("/health") for seat in self.seats)
        except Exception:  # noqa: BLE001 - not yet
            return False

    def stop(self, number: int = signal.SIGTERM) -> int:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        return int(self.process.wait(PATIENCE))

    def client(self, seat: str = "seat-1") -> Client:
        return Client(self.place(seat))

    def connect(self, seat: str = "seat-1") -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(PATIENCE)
        connection.connect(str(self.place(seat)))
        return connection

    def logged(self, event: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [line for line in lines if line["event"] == event]

    def descendants(self) -> list[psutil.Process]:
        assert self.process is not None
        return self.process.children(recursive=True)

    def ready(self) -> None:
        """Wait until every share has its spare."""
        self.wait_for(lambda: all(self.client(seat).get("/health")["ready"] for seat in self.seats))


@contextlib.contextmanager
def stopped_service() -> Iterator[Service]:
    """A service that is still to be started; nothing of it is left afterwards."""
    # A short name: a socket's path may have 107 bytes.
    with tempfile.TemporaryDirectory(prefix="gs-") as folder:
        catalogue = Path(folder) / "lab"
        source = CHECKOUT / "tests" / "golden"
        shutil.copytree(source, catalogue, ignore=shutil.ignore_patterns("__pycache__"))
        service = Service(Path(folder), catalogue)
        yield service
        if service.process is not None:
            left = service.descendants() if service.process.is_running() else []
            service.stop()
            psutil.wait_procs(left, timeout=PATIENCE)
            assert not [process for process in left if process.is_running()]


@pytest.fixture
def idle() -> Iterator[Service]:
    """A service of two seats on one share, still to be started."""
    with stopped_service() as service:
        yield service


@pytest.fixture
def service(idle: Service) -> Service:
    """A running one."""
    return idle.start()


@pytest.fixture(scope="module")
def shared() -> Iterator[Service]:
    """A running one for tests that change nothing."""
    with stopped_service() as service:
        yield service.start()
