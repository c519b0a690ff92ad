"""Where attacks are tried: a catalogue with fresh secrets, and a look at the machine afterwards."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import psutil
from attack_list import HERE, Attack, Ending, lay_over

from gpulab.catalogue import Catalogue, load_checks
from gpulab.catalogue.variants import lay_out
from gpulab.grading.check import Request, check
from gpulab.grading.records import Records
from gpulab.model import LabError
from gpulab.wire import to_json

CANARY = re.compile(r"canary-[0-9a-f]{32}")
CHECKOUT = HERE.parents[1]
MARK = "red-team-mark"
SEGMENT = 0x5EED1234  # key of the System V segment that an attack leaves
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108


@dataclass
class Outcome:
    """What came of an attack.

    Attributes:
        ending: of the check.
        leaked: the hidden places of which bytes were seen outside.
        harm: what the machine suffered.
        told: the verdict's reasons.
    """

    ending: Ending
    leaked: set[str] = field(default_factory=set)
    harm: list[str] = field(default_factory=list)
    told: str = ""


class Arena:
    """A lab of its own with secrets, bystanders, and doors that nobody may use."""

    def __init__(self, folder: Path, isolation: Path | None, uids: range) -> None:
        self.folder, self.isolation, self.uids = folder, isolation, uids
        places = ("solution", "checks", "records", "grader", "bystander")
        self.canaries = {f"canary-{secrets.token_hex(16)}": place for place in places}
        self.tokens = {place: token for token, place in self.canaries.items()}
        self.root = folder / "lab"
        self.home, self.scratch = folder / "home", folder / "scratch"
        self.home.mkdir()
        self.scratch.mkdir()
        shutil.copytree(HERE / "target", self.root, ignore=shutil.ignore_patterns("__pycache__"))
        for place in ("solution", "checks"):
            self._fill_in(place)
        self.records = folder / "records.sqlite"
        Records(self.records).take_hint(self.tokens["records"], 1)
        self.bystanders_file = folder / "bystander.txt"
        self.bystanders_file.write_text("untouched", encoding="utf-8")

    def _fill_in(self, place: str) -> None:
        for path in self.root.glob("checks/**/*.py"):
            text = path.read_text(encoding="utf-8")
            text = text.replace(f"canary-of-the-{place}", self.tokens[place])
            path.write_text(text, encoding="utf-8")

    def __enter__(self) -> Self:
        hidden = {"CANARY": self.tokens["bystander"]}
        self.bystander = subprocess.Popen(["sleep", "3600"], env=os.environ | hidden)
        self.doors = [socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX)]
        self.abstract = f"red-team-{os.getpid()}"
        self.doors[1].bind("\0" + self.abstract)
        self.doors[1].listen()
        for door in self.doors:
            door.setblocking(False)
        return self

    def __exit__(self, *_: object) -> None:
        self.bystander.kill()
        self.bystander.wait()
        for door in self.doors:
            door.close()
        _tidy()

    def fight(self, name: str, attack: Attack, *, right: bool = False) -> Outcome:
        """Have a submission with the attack judged; `right`: one that deserves `fixed`."""
        work = self._work(name, attack, right=right)
        before = self._state()
        events: list[str] = []
        try:
            with self._secret_environment():
                outcome = self._check(work, attack, events)
        finally:
            shutil.rmtree(work)
        said = "\n".join([*events, outcome.told])
        outcome.leaked = {self.canaries.get(found, "?") for found in CANARY.findall(said)}
        outcome.harm = list(self._harm(before))
        return outcome

    def _work(self, name: str, attack: Attack, *, right: bool) -> Path:
        exercise = Catalogue(self._catalogue(attack)).find(self._number(attack))
        checks = load_checks(self._catalogue(attack), exercise)
        target = self.folder / f"work-{secrets.token_hex(4)}" / exercise.name
        work = lay_out(exercise, target, checks.reference if right else None)
        lay_over(work, exercise.facts.script, name, attack)
        (work / "facts.json").write_text(json.dumps(self._facts()), encoding="utf-8")
        if name == "link_to_the_checks":
            (work / "link").symlink_to(self.root / "checks")
        return work

    def _facts(self) -> dict[str, Any]:
        """What an attendee may well know."""
        return {
            "root": str(self.root),
            "records": str(self.records),
            "bystander": self.bystander.pid,
            "file": str(self.bystanders_file),
            "port": self.doors[0].getsockname()[1],
            "abstract": self.abstract,
        }

    def _catalogue(self, attack: Attack) -> Path:
        if attack.on == "target":
            return self.root
        return CHECKOUT / "tests" / "golden" if attack.on == "golden" else CHECKOUT

    def _number(self, attack: Attack) -> str:
        return "1" if attack.on in ("target", "golden") else attack.on

    def _check(self, work: Path, attack: Attack, events: list[str]) -> Outcome:
        root = self._catalogue(attack)
        exercise = Catalogue(root).find(self._number(attack))

        def listen(event: dict[str, Any]) -> None:
            if event["event"] != "crash":  # the account for authors
                events.append(json.dumps(event))

        try:
            grade = check(Request(root, exercise, work, isolation=self.isolation), listen)
        except LabError as error:
            return Outcome(Ending.REFUSED, told=f"{error.code}: {error}")
        return Outcome(Ending(grade.verdict.value), told=json.dumps(to_json(grade)))

    @contextmanager
    def _secret_environment(self) -> Iterator[None]:
        changed = {"GPULAB_CANARY": self.tokens["grader"], "HOME": str(self.home)}
        changed["TMPDIR"], tempfile.tempdir = str(self.scratch), str(self.scratch)
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
        changed["XDG_CACHE_HOME"] = cache  # the compiled stub of the rehearsal device
        before = {name: os.environ.get(name) for name in changed}
        os.environ.update(changed)
        try:
            yield
        finally:
            tempfile.tempdir = None
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value

    def _state(self) -> dict[str, Any]:
        """What must be the same afterwards."""
        return {
            "mounts": [line for line in _lines("/proc/self/mountinfo") if "/pytest-" not in line],
            "IPC objects": [_lines(f"/proc/sysvipc/{kind}")[1:] for kind in ("shm", "sem", "msg")],
            "records": self.records.read_bytes(),
            "files of the lab": {
                p: p.read_bytes()
                for p in self.root.rglob("*.*")
                if p.suffix != ".pyc" and p.is_file()
            },
            "a bystander's file": self.bystanders_file.read_text(encoding="utf-8"),
            "files in the home": sorted(self.home.rglob("*")),
        }

    def _harm(self, before: dict[str, Any]) -> Iterator[str]:
        after = self._state()
        yield from (what for what, state in before.items() if after[what] != state)
        if self.bystander.poll() is not None:
            yield "a bystander was killed"
        elif psutil.Process(self.bystander.pid).status() == psutil.STATUS_STOPPED:
            yield "a bystander was stopped"
        for door in self.doors:
            with suppress(BlockingIOError):
                door.accept()[0].close()
                yield "somebody came through a door"
        if left := [p.pid for p in psutil.Process().children() if p.pid != self.bystander.pid]:
            yield f"processes are left: {left}"
        if [p for p in psutil.process_iter(["uids"]) if _uid(p) in self.uids]:
            yield "processes of attempts are left"
        if marked := list(_marked()):
            yield f"files are left: {marked}"
        if left := list(self.scratch.iterdir()):
            yield f"scratch folders are left: {left}"


def _lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines()


def _uid(process: psutil.Process) -> int | None:
    uids = process.info["uids"]  # type: ignore[attr-defined]
    return uids.real if uids else None


def _marked() -> Iterator[Path]:
    for folder in (SHARED_MEMORY, Path("/tmp"), Path("/var/tmp")):  # noqa: S108
        yield from folder.glob(f"*{MARK}*")


def _tidy() -> None:
    """Remove what attacks at the level `local` leave."""
    for path in _marked():
        path.unlink(missing_ok=True)
    for line in _lines("/proc/sysvipc/shm")[1:]:
        key, number, *_ = line.split()
        if int(key) & 0xFFFFFFFF == SEGMENT:
            subprocess.run(["ipcrm", "-m", number], check=False)
