"""Nothing of an attempt is left, however it ends."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path

import psutil
import pytest

from gpulab import attempts
from gpulab.attempts import Ended, Limits, WarmPool
from gpulab.attempts.sandbox import SandboxLauncher
from gpulab.model import LabError
from gpulab.observe import become_subreaper, end_orphans

GONE_WITHIN = 20.0


def of_attempts(sandbox) -> list[psutil.Process]:
    """Living processes of the accounts of attempts."""
    found = []
    for process in psutil.process_iter(["uids", "status"]):
        uids = process.info["uids"]
        if uids and uids.real in sandbox.config.uids.numbers:
            found.append(process)
    return [process for process in found if process.info["status"] != psutil.STATUS_ZOMBIE]


def mounts() -> list[str]:
    """What is mounted here; other tests that run meanwhile mount in their own folders."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if "/pytest-of-" not in line]


LEAVER = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("/dev/shm/left", "w").write("x")
        open("/tmp/left", "w").write("x")
        while True:
            time.sleep(1)
    os._exit(0)
os.wait()
print("done")
"""
ENDINGS = {
    "well": ("", Ended.EXIT),
    "by a signal": ("os.kill(os.getpid(), 9)", Ended.EXIT),
    "by the time-out": ("while True: pass", Ended.TIME_OUT),
    "by a flood": ("while True: print('x' * 100_000)", Ended.FLOOD),
}


@pytest.mark.parametrize("how", ENDINGS)
def test_nothing_is_left(sandbox, how: str) -> None:
    last, ended = ENDINGS[how]
    before = mounts()
    made = sandbox.run(LEAVER + last + "\n", limits=Limits(seconds=2))
    assert made.ended is ended
    assert of_attempts(sandbox) == []
    assert mounts() == before
    assert sandbox.groups() == []
    assert not Path("/dev/shm/left").exists()  # noqa: S108 - the host's: it must not be there
    assert not psutil.Process().children(recursive=True)


def test_a_signals_number_is_negative(sandbox) -> None:
    assert sandbox.run("import os\nos.kill(os.getpid(), 9)\n").exit_code == -signal.SIGKILL
    assert sandbox.run("import sys\nsys.exit(3)\n").exit_code == 3


GRADER = """
import sys, time
from pathlib import Path
from gpulab import attempts
from gpulab.attempts import Job, WarmPool
from gpulab.attempts.sandbox import SandboxConfig, SandboxLauncher
from gpulab.attempts.sandbox.config import Bounds, Uids
config = {config}
config |= {{"uids": Uids(**config["uids"]), "bounds": Bounds(**config["bounds"])}}
launcher = SandboxLauncher(SandboxConfig(**config))
job = Job(Path({folder!r}), "train.py", Path({scratch!r}), python=Path(config["python"]))
pool = WarmPool(launcher, job.setting, modules=())
pool.wait()
print("waiting", flush=True)
attempts.run(job, lambda seen: print("seen", flush=True), launcher=launcher)
"""


def test_it_ends_with_the_grader(sandbox) -> None:
    job = sandbox.job(LEAVER + "while True: time.sleep(1)\n")
    code = GRADER.format(
        config=asdict(sandbox.config), folder=str(job.folder), scratch=str(job.scratch)
    )
    command = [sys.executable, "-c", textwrap.dedent(code)]
    grader = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    lines = [grader.stdout.readline() for _ in range(2)]
    assert lines == [b"waiting\n", b"seen\n"]
    deadline = time.monotonic() + GONE_WITHIN
    while len(of_attempts(sandbox)) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(of_attempts(sandbox)) >= 3  # one that waits, one that runs, what it started
    grader.kill()
    grader.wait()
    grader.stdout.close()
    while of_attempts(sandbox) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert of_attempts(sandbox) == []
    end_orphans()  # the dead of a killed grader are its asker's to reap
    # Empty control groups are all that is left, until their account is taken again.
    launcher = SandboxLauncher(sandbox.config)
    setting = job.setting
    again = [launcher.prepare(setting, ()) for _ in range(2)]
    for each in again:
        each.become_ready()
        each.close()
    assert sandbox.groups() == []


def test_what_waited_in_vain_leaves_nothing(sandbox) -> None:
    before = mounts()
    become_subreaper()
    with WarmPool(sandbox.launcher, sandbox.job("").setting):
        pass  # closed while torch is being imported
    with WarmPool(sandbox.launcher, sandbox.job("").setting, modules=()) as pool:
        pool.wait()
    assert psutil.Process().children(recursive=True) == []
    assert of_attempts(sandbox) == []
    assert (sandbox.groups(), mounts()) == ([], before)


def test_a_job_whose_process_is_killed_on_its_way_is_given_to_another(sandbox) -> None:
    job = sandbox.job("print(1)\n")
    with WarmPool(sandbox.launcher, job.setting, modules=()) as pool:
        pool.wait()
        waits = sandbox.leader(pool._waiting[job.setting][0].result().process.pid)
        os.kill(waits, signal.SIGSTOP)  # the job is sent, and nobody takes it
        killer = threading.Timer(0.5, os.kill, (waits, signal.SIGKILL))
        killer.start()
        assert attempts.run(job, launcher=pool).output() == "1"
        killer.join()


def test_a_python_that_is_not_there(sandbox) -> None:
    job = replace(sandbox.job("print(1)"), python=Path("/opt/nothing/python"))
    with pytest.raises(LabError, match=r"does not start: .*nothing/python") as refused:
        sandbox.launcher.launch(job)
    assert refused.value.code == 4
