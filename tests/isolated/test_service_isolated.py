"""The service at level isolated: what an attempt cannot reach, and what a kill leaves."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.unit.service.conftest import Service, stopped_service

CGROUP = "gpulab-service-tests"
READS = """
import os, sys
read = []
for place in {places}:
    try:
        read.append((place, open(place).read(20) if os.path.isfile(place) else os.listdir(place)))
    except OSError:
        pass
if __name__ == "__main__":
    sys.exit(f"user {{os.getuid() > 0}} has read {{read}}")
"""


@pytest.fixture
def service() -> Iterator[Service]:
    with stopped_service() as service:
        isolation = service.home / "isolation.toml"
        isolation.write_text(
            f"""
python = "{sys.executable}"
folders = ["{sys.prefix}", "{sys.base_prefix}"]
cgroup = "{CGROUP}"
locks = "{service.home / "locks"}"
[bounds]
memory_mib = 2048
cpus = 2.0
pids = 256
"""
        )
        isolation.chmod(0o600)
        service.shares["cpu"] = {"warm": False, "isolation": str(isolation)}
        yield service.start()


def test_a_check_from_end_to_end(service: Service) -> None:
    events = service.judge(service.variant("multiply"))
    grade = events[-1]["grade"]
    assert (grade["verdict"], grade["level"]) == ("fixed", "isolated")
    grade = service.judge("def (")[-1]["grade"]
    assert grade["reason"]["key"] == "syntax"
    grade = service.judge(service.variant("dies"))[-1]["grade"]
    assert grade["verdict"] == "not-fixed"


def test_nothing_of_the_service_can_be_reached(service: Service) -> None:
    checks = service.catalogue / "checks" / "exercise-1"
    places = [service.state, service.place(), service.home, service.config, service.log]
    places += [checks, checks / "test_fix.py", checks / "solutions" / "multiply" / "train.py"]
    script = READS.format(places=[str(place) for place in places])
    grade = service.judge(script)[-1]["grade"]
    # The rationale quotes the last line of a script that ends with an exit code.
    assert "user True has read []" in grade["checks"][0]["rationale"]["texts"]["en"]


def test_killed_in_the_middle_nothing_is_left(service: Service) -> None:
    from tests.unit.service.test_service_life import (  # noqa: PLC0415 - one helper of it
        asleep,
        in_background,
    )

    events, thread = in_background(service, service.SLEEPS)
    service.wait_for(lambda: asleep(events))
    left = service.descendants()
    assert any("bwrap" in process.name() for process in left)
    service.stop(signal.SIGKILL)
    thread.join(60)
    assert events[-1]["event"] == "stopped"
    assert psutil.wait_procs(left, timeout=60)[1] == []
    service.start()
    assert service.judge(service.variant("multiply"))[-1]["grade"]["verdict"] == "fixed"
    service.wait_for(lambda: not list(Path("/sys/fs/cgroup").glob(f"*/{CGROUP}/attempt-*/tasks")))


def test_the_state_folder_is_roots_alone(service: Service) -> None:
    service.client().note_hint("1", 1)
    for path in [service.state, *service.state.rglob("*")]:
        if path.is_dir() and path.parent == service.state:
            assert path.stat().st_uid == 0
    assert service.state.stat().st_mode & 0o077 == 0


def test_a_sandbox_that_does_not_work_is_found_at_the_start(service: Service) -> None:
    service.stop()
    isolation = service.home / "isolation.toml"
    for old, new in ((sys.executable, "/nowhere/python"), (CGROUP, "../escape")):
        text = isolation.read_text()
        isolation.write_text(text.replace(old, new))
        done = subprocess.run(
            service.command(), capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode != 0
        assert "Traceback" not in done.stderr
        assert not service.place().exists()
        isolation.write_text(text)
