"""Grading processes, seen by whoever asks them for a verdict."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from gpulab import wire
from gpulab.attempts import ForkServer
from gpulab.attempts.processes import Process
from gpulab.model import CheckResult, Hardware, LabError, Message, Verdict
from gpulab.observe import become_subreaper, end_orphans

Listener = Callable[[dict[str, Any]], None]

END_WITHIN = 10.0  # seconds to end attempts after the life line was closed
JUDGED = (None, 0, 1)  # pytest's exit statuses: all passed, some failed; None: no need to run it
MAX_ACCOUNT = 1 << 20  # bytes of a grading process's own output that are passed on

_alive: set[int] = set()  # grading processes of every thread
_alive_lock = threading.Lock()


@dataclass(frozen=True)
class Setup:
    """What a grading process is started with, before it has an order.

    Attributes:
        isolation: the sandbox's configuration; None for level `local`.
        warm: keep attempts with torch imported at the ready.
        devices: CUDA_VISIBLE_DEVICES; None leaves it as it is.
        forks: forks the grading process, and through it the attempts; None starts each afresh.
    """

    isolation: Path | None = None
    warm: bool = False
    devices: str | None = None
    forks: ForkServer | None = None


@dataclass
class Findings:
    """What a grading process said: results, or the reason why it judged nothing."""

    results: list[CheckResult] = field(default_factory=list)
    hardware: Hardware | None = None
    verdict: Verdict | None = None  # with a reason that ends the matter before any check
    reason: Message | None = None

    def take(self, event: dict[str, Any]) -> None:
        """Take in one event.

        Raises:
            LabError: the grading process says that the lab failed.
        """
        match event["event"]:
            case "check":
                self.results.append(wire.check_result(event["result"]))
            case "hardware":
                self.hardware = wire.hardware(event["hardware"])
            case "settled":
                self.verdict, self.reason = Verdict(event["verdict"]), Message(**event["reason"])
            case "failed":
                raise LabError(event["text"], code=event["code"])


class Judge:
    """A grading process: started, asked once, ended. Its memory and modules are never reused."""

    def __init__(self, setup: Setup = Setup()) -> None:
        become_subreaper()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._lock = threading.Lock()
        self._process, self._life_line, self._events_fd = _start(setup, self._log)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it can still be asked."""
        return self._process.poll() is None

    @property
    def ready(self) -> bool:
        """Whether everything that it makes ready beforehand is."""
        try:
            waits, _, _ = select.select([self._events_fd], [], [], 0)  # its first event: `ready`
        except (OSError, ValueError):  # taken meanwhile, by another thread
            return False
        return bool(waits) and self.alive

    def ask(self, order: dict[str, Any], listener: Listener) -> Findings:
        """Have an order judged, to the end of the process; `listener` is told every event.

        Raises:
            LabError: the lab failed; it says how.
        """
        findings, done = Findings(), False
        try:
            with os.fdopen(self._take_events(), "rb") as events:
                self._send(order)
                for event in _read(events):
                    listener(event)
                    done = event["event"] == "done" and event["status"] in JUDGED
                    findings.take(event)
            self.end()
            if not done or any(_crashed(result) for result in findings.results):
                # pytest's account of it: for authors, not for attendees
                listener({"event": "crash", "text": self._account()})
        finally:
            self.close()
        return findings

    def end(self) -> None:
        """Close the life line, give it time to end its attempts, then insist.

        From any thread, and more than once.
        """
        with self._lock:
            with contextlib.suppress(BrokenPipeError):
                self._life_line.close()
            try:
                self._process.wait(END_WITHIN)
            except subprocess.TimeoutExpired:
                self._process.send_signal(signal.SIGKILL)
                self._process.wait()
        with _alive_lock:
            _alive.discard(self._process.pid)
            end_orphans(spare=_alive)

    def close(self) -> None:
        """End it, asked or not, and close what belongs to it; twice does no harm."""
        self.end()
        if self._events_fd >= 0:
            os.close(self._take_events())
        self._log.close()

    def _take_events(self) -> int:
        if self._events_fd < 0:
            raise RuntimeError("a grading process is asked once")
        fd, self._events_fd = self._events_fd, -1
        return fd

    def _send(self, order: dict[str, Any]) -> None:
        # ValueError: ended meanwhile, by another thread. No event will come: that says it all.
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._life_line.write(json.dumps(order).encode() + b"\n")
            self._life_line.flush()

    def _account(self) -> str:
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - MAX_ACCOUNT))
        return self._log.read().decode("utf-8", "replace")


def _start(setup: Setup, log: IO[bytes]) -> tuple[Process, IO[bytes], int]:
    """Start the grading process; returns it, its life line and the pipe its events come by."""
    # -P: the folder it is started in may be the attendee's, whose modules it must not import.
    command = [sys.executable, "-P", "-m", "gpulab.grading.judge"]
    command += ["--isolation", str(setup.isolation)] if setup.isolation else []
    command += ["--warm"] if setup.warm else []
    with contextlib.ExitStack() as stack:
        (order, life_line), (events, told) = os.pipe(), os.pipe()
        stack.callback(os.close, order)
        stack.callback(os.close, told)
        with _alive_lock:
            process = _begin(setup, command, [order, log.fileno(), told])
            _alive.add(process.pid)
        return process, os.fdopen(life_line, "wb"), events


def _begin(setup: Setup, command: list[str], descriptors: list[int]) -> Process:
    """Start it in a session of its own: a Ctrl-C in the terminal reaches it through us, once."""
    order, log, told = descriptors
    environment = _environment(setup)
    if setup.forks is not None:
        device = setup.forks.setting.device
        command += ["--events", "3", "--forks", "4", "--device", device]
        return setup.forks.fork([order, log, log, told], command, environment)
    return subprocess.Popen(
        [*command, "--events", str(told)],
        stdin=order,
        stdout=log,
        stderr=log,
        pass_fds=(told,),
        env=environment,
        start_new_session=True,
    )


def _environment(setup: Setup) -> dict[str, str]:
    kept = {n: v for n, v in os.environ.items() if not n.startswith("PYTEST")}
    kept["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return kept if setup.devices is None else kept | {"CUDA_VISIBLE_DEVICES": setup.devices}


def _read(pipe: IO[bytes]) -> Iterator[dict[str, Any]]:
    for line in pipe:
        if line.endswith(b"\n"):  # else the grading process was killed while it wrote
            yield json.loads(line)


def _crashed(result: CheckResult) -> bool:
    return result.rationale is not None and result.rationale.key == "crashed"
