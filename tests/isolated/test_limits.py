"""Limits that bite, and harm nobody else."""

from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from gpulab.attempts import Ended, Limits
from gpulab.attempts.sandbox import SandboxLauncher, cgroups
from gpulab.model import LabError


def test_memory(sandbox) -> None:
    script = "import time\nheld = []\nwhile True:\n    held.append(bytearray(8 << 20))\n"
    made = sandbox.bounded(memory_mib=128).run(script)
    assert made.ended is Ended.MEMORY


def test_memory_of_a_child_is_the_attempts(sandbox) -> None:
    script = """
        import os, sys
        if os.fork() == 0:
            held = []
            while True:
                held.append(bytearray(8 << 20))
        _, status = os.wait()
        sys.exit(os.waitstatus_to_exitcode(status) != 0)
    """
    made = sandbox.bounded(memory_mib=128).run(script)
    assert made.ended is Ended.MEMORY


def test_a_script_that_survives_the_end_of_a_child_has_survived(sandbox) -> None:
    script = """
        import os
        if os.fork() == 0:
            held = []
            while True:
                held.append(bytearray(8 << 20))
        os.wait()
        print("on")
    """
    made = sandbox.bounded(memory_mib=128).run(script)
    # Whom the kernel chooses is its business: the child is by far the largest.
    assert (made.ended, made.output()) == (Ended.EXIT, "on")


@pytest.mark.parametrize("place", ["/dev/shm", "/tmp", "/work"])  # noqa: S108 - the inside
def test_files_in_memory(sandbox, place: str) -> None:
    script = """
        import os
        def f(place):
            try:
                with open(place + "/big", "wb", buffering=0) as file:
                    while True:
                        file.write(bytes(1 << 20))
            except OSError as error:
                return [error.errno, os.path.getsize(place + "/big") >> 20]
    """
    number, mib = sandbox.bounded(shm_mib=16, tmp_mib=16, work_mib=16).ask(script, place)
    assert number == 28  # no space left
    assert mib <= 16


def test_a_shm_of_the_jobs_own_size(sandbox) -> None:
    script = """
        import os
        def f():
            state = os.statvfs("/dev/shm")
            return state.f_blocks * state.f_frsize
    """
    assert sandbox.ask(script, shm_bytes=8 << 20) == 8 << 20


def test_processes(sandbox) -> None:
    script = """
        import errno, os, time
        def f():
            made = 0
            try:
                while True:
                    if os.fork() == 0:
                        time.sleep(60)
                        os._exit(0)
                    made += 1
            except OSError as error:
                return [error.errno, made]
    """
    number, made = sandbox.bounded(pids=32).ask(script)
    assert number == 11  # try again
    assert made < 32


def test_a_fork_bomb(sandbox) -> None:
    script = """
        import os
        while True:
            try:
                os.fork()
            except OSError:
                pass
    """
    before = {process.pid for process in psutil.process_iter()}
    limits = Limits(seconds=3)
    made = sandbox.bounded(pids=64).run(script, limits=limits)
    assert made.ended is Ended.TIME_OUT
    left = [
        process
        for process in psutil.process_iter(["uids"])
        if process.pid not in before and process.info["uids"].real in sandbox.config.uids.numbers
    ]
    assert left == []


def test_cpu(sandbox) -> None:
    script = """
        import os, time
        if os.fork() == 0:
            while True:
                pass
        begun = time.monotonic()
        while time.monotonic() - begun < 3:
            pass
        os._exit(0)
    """
    made = sandbox.bounded(cpus=0.25).run(script)
    assert made.evidence.cpu < 0.25 * made.evidence.wall * 1.5 + 0.2


def test_output(sandbox) -> None:
    script = "while True:\n    print('x' * 100_000)\n"
    assert sandbox.run(script).ended is Ended.FLOOD


def test_no_core_and_no_huge_file(sandbox) -> None:
    script = """
        import resource
        def f():
            kinds = (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE)
            return [resource.getrlimit(kind) for kind in kinds]
    """
    assert sandbox.ask(script) == [[0, 0], [4 << 30, 4 << 30]]


def test_a_time_out_is_the_last_resort(sandbox) -> None:
    script = "import time\nwhile True:\n    pass\n"
    assert sandbox.run(script, limits=Limits(seconds=1)).ended is Ended.TIME_OUT


def test_a_limit_that_cannot_be_set_is_refused(sandbox, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cgroups.Group.__init__, "__defaults__", (tmp_path,))
    job = sandbox.job("print(1)")
    with pytest.raises(LabError, match="limits cannot be set") as refused:
        SandboxLauncher(sandbox.config).launch(job)
    assert refused.value.code == 4


def test_version_2_without_controllers_is_refused() -> None:
    hierarchy = Path("/sys/fs/cgroup/unified")
    if not (hierarchy / "cgroup.controllers").exists():
        pytest.skip("no hierarchy of version 2 beside one of version 1")
    if "memory" in (hierarchy / "cgroup.controllers").read_text().split():
        pytest.skip("it has the controllers")
    before = list(hierarchy.iterdir())
    with pytest.raises(LabError, match=r"cgroup\.subtree_control"):
        cgroups.Group("gpulab-tests/attempt-1", cgroups.Quota(1 << 30, 64, 1.0), hierarchy)
    assert list(hierarchy.iterdir()) == before


def test_when_every_account_is_taken_it_says_so(sandbox) -> None:
    uids = replace(sandbox.config.uids, count=1)
    launcher = SandboxLauncher(replace(sandbox.config, uids=uids))
    setting = sandbox.job("print(1)").setting
    first = launcher.prepare(setting, ())
    try:
        with pytest.raises(LabError, match="Every account"):
            launcher.prepare(setting, ())
    finally:
        first.close()
    again = launcher.prepare(setting, ())
    again.become_ready()
    again.close()
