"""The grading process: pytest with the hidden checks, and nothing of the attendee's.

    python -m gpulab.grading.judge --events FD [--isolation FILE] [--warm] [--forks FD --device D]

Standard input brings the order, one line of JSON, as soon as there is one; until then everything
is imported and made ready. It is a life line, too: when it closes, whoever asked is gone, and
everything ends. Nothing of the exercises or their checks is read before the order comes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from gpulab import wire
from gpulab.attempts import ForkServer, Launcher, Line, Setting
from gpulab.catalogue import Catalogue, load_checks
from gpulab.evidence.lab import Lab, Order
from gpulab.evidence.report import CannotDecide
from gpulab.evidence.words import lab_message, message
from gpulab.grading import machine
from gpulab.grading.means import Means, Plan, made_ready
from gpulab.grading.plugin import ChecksPlugin
from gpulab.model import CheckResult, Device, LabError, Message, Verdict
from gpulab.observe import Gpu, Observer


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

    def settled(self, verdict: Verdict, reason: Message) -> None:
        """Report a verdict that needs no check."""
        self.send("settled", verdict=verdict, reason=wire.to_json(reason))


def prepare(data: dict[str, Any], means: Means, events: Events) -> Order | None:
    """Look at the machine and the script, say what was found, and make the order complete.

    None where that settles the verdict already.
    """
    root = Path(data["root"])
    exercise = Catalogue(root).find(data["exercise"])
    script = Path(data["submission"]) / exercise.facts.script
    python = means.python
    facts = machine.look_at_python(python, script, means.launcher)
    if facts.syntax is not None:
        reason = lab_message("syntax", script=script.name, what=facts.syntax)
        events.settled(Verdict.NOT_FIXED, reason)
        return None
    gpu, wanted = Gpu(), data["device"] and Device(data["device"])
    try:
        machine.check_torch(exercise, python, facts)
        device = machine.choose_device(exercise, wanted, python, gpu)
    except CannotDecide as undecided:
        events.settled(Verdict.UNDECIDED, message(undecided.said, {}))
        return None
    events.send("hardware", hardware=wire.to_json(machine.hardware(root, device, facts, gpu)))
    return Order(
        checks=load_checks(root, exercise),
        submission=Path(data["submission"]),
        trusted=Path(data["trusted"]),
        scratch=Path(data["scratch"]),
        python=python,
        device=device,
        device_bytes=data["device_bytes"],
        seed=data["seed"],
    )


def run_checks(order: Order, launcher: Launcher, events: Events) -> int:
    """Run pytest on the hidden checks; returns its exit status."""
    events.send("plan", checks=list(order.checks.titles.items()))
    lab = Lab(order, events.progress, launcher)
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


def wait_for_order() -> dict[str, Any] | None:
    """The order, once it is there; None when whoever started this has gone."""
    line = bytearray()
    while not line.endswith(b"\n"):
        data = os.read(0, 1 << 16)
        if not data:
            return None
        line += data
    order: dict[str, Any] = json.loads(line)
    return order


def end_with_asker() -> None:
    """End by SIGINT, as Ctrl-C does, once standard input closes."""

    def watch() -> None:
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, name="life line", daemon=True).start()


def tell_when_ready(means: Means, events: Events) -> None:
    """Say so once nothing more is made ready; the order may come before."""

    def wait() -> None:
        means.wait()
        with contextlib.suppress(BrokenPipeError):
            events.send("ready")

    threading.Thread(target=wait, name="readiness", daemon=True).start()


def judge(data: dict[str, Any], means: Means, events: Events) -> None:
    """Judge one order and say so."""
    order = prepare(data, means, events)
    status = None if order is None else run_checks(order, means.launcher, events)
    events.send("done", status=status)


def fork_server(fd: int, device: Device) -> ForkServer:
    """The copy of a fork server that was started with us, our child."""
    return ForkServer(socket.socket(fileno=fd), Setting(machine.attempt_python(), device))


def judge_one_order(plan: Plan, events: Events) -> None:
    """Make ready, wait for the order, judge it, or say why that cannot be done."""
    data = None
    try:
        with made_ready(plan) as means:
            tell_when_ready(means, events)
            if (data := wait_for_order()) is not None:
                end_with_asker()
                judge(data, means, events)
    except LabError as error:
        if data is not None or wait_for_order() is not None:
            events.send("failed", text=str(error), code=error.code)


def main() -> int:
    """Make ready, wait for the order, judge it."""
    parser = argparse.ArgumentParser(prog="gpulab.grading.judge")
    parser.add_argument("--events", type=int, required=True)
    parser.add_argument("--isolation", type=Path)
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--forks", type=int, help="descriptor of a fork server")
    parser.add_argument("--device", type=Device, help="what the fork server has behind `cuda`")
    given = parser.parse_args()
    sys.dont_write_bytecode = True  # nothing of ours is left in checks/
    # SIGINT, too: whoever started us in the background may have had it ignored.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    forks = None if given.forks is None else fork_server(given.forks, given.device)
    plan = Plan(given.isolation, warm=given.warm, forks=forks)
    judge_one_order(plan, Events(given.events))
    return 0


if __name__ == "__main__":
    sys.exit(main())
