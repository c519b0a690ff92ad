"""The grading process: pytest with the hidden checks, and nothing of the attendee's.

    python -m gpulab.grading.judge ORDER.json EVENTS_FD

Standard input is a life line: when it closes, whoever asked is gone, and everything ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from gpulab.attempts import Line
from gpulab.catalogue import Catalogue, load_checks
from gpulab.evidence.lab import Lab, Order
from gpulab.grading import wire
from gpulab.grading.plugin import ChecksPlugin
from gpulab.model import CheckResult, Device
from gpulab.observe import Observer


class Events:
    """JSON lines to whoever asked for the verdict."""

    def __init__(self, fd: int) -> None:
        self._pipe = os.fdopen(fd, "wb", buffering=0)
        self._lock = threading.Lock()

    def send(self, event: str, **values: Any) -> None:
        """Send one event."""
        line = json.dumps({"event": event, **values}).encode() + b"\n"
        with self._lock:
            self._pipe.write(line)

    def progress(self, which: str, seen: Line | Observer) -> None:
        """Pass on a line of output, or the latest memory sample."""
        if which != "submission":
            return
        if isinstance(seen, Line):
            self.send("line", at=round(seen.at, 2), stream=seen.stream, text=seen.text[:500])
        elif seen.latest is not None:
            sample = seen.latest
            self.send("look", at=round(sample.at, 2), private=sample.private, gpu=sample.gpu)

    def result(self, result: CheckResult) -> None:
        """Report a judged check."""
        self.send("check", result=wire.to_json(result))


def read_order(path: Path) -> Order:
    """The order as the asking side wrote it."""
    data = json.loads(path.read_text(encoding="utf-8"))
    root = Path(data["root"])
    exercise = Catalogue(root).find(data["exercise"])
    return Order(
        checks=load_checks(root, exercise),
        submission=Path(data["submission"]),
        trusted=Path(data["trusted"]),
        scratch=Path(data["scratch"]),
        python=Path(data["python"]),
        device=Device(data["device"]),
        device_bytes=data["device_bytes"],
        seed=data["seed"],
    )


def run_checks(order: Order, events: Events) -> int:
    """Run pytest on the hidden checks; returns its exit status."""
    events.send("plan", checks=list(order.checks.titles.items()))
    lab = Lab(order, events.progress)
    plugin = ChecksPlugin(
        order.checks,
        lab,
        started=lambda name: events.send("started", name=name),
        report=events.result,
    )
    folder = str(order.checks.folder)
    options = ["--import-mode=importlib", "--noconftest", "-c", os.devnull, "--rootdir", folder]
    plugins = ["-p", "no:cacheprovider", "-p", "no:faulthandler", "-p", "no:unraisableexception"]
    return int(pytest.main([str(order.checks.test_file), "-q", *options, *plugins], [plugin]))


def end_with_asker() -> None:
    """End by SIGINT, as Ctrl-C does, once standard input closes."""

    def watch() -> None:
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, name="life line", daemon=True).start()


def main() -> int:
    """Judge and say so."""
    order_path, events_fd = Path(sys.argv[1]), int(sys.argv[2])
    sys.dont_write_bytecode = True  # nothing of ours is left in checks/
    # SIGINT, too: whoever started us in the background may have had it ignored.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    end_with_asker()
    events = Events(events_fd)
    status = run_checks(read_order(order_path), events)
    events.send("done", status=status)
    return 0


if __name__ == "__main__":
    sys.exit(main())
