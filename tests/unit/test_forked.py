"""Grading processes and attempts that are forked: apart from each other, and all ended."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from gpulab import attempts
from gpulab.attempts import Attempt, Call, Ended, ForkLauncher, ForkServer, Job, Setting
from gpulab.attempts.launch import LocalLauncher
from gpulab.catalogue import Catalogue, load_checks
from gpulab.grading.forks import Forks
from gpulab.grading.verify import Case, cases, prove
from gpulab.model import Device, LabError

GOLDEN = Path(__file__).parents[1] / "golden"
(EXERCISE,) = Catalogue(GOLDEN)
CASES = cases(load_checks(GOLDEN, EXERCISE))


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    server = ForkServer.start(Setting(Path(sys.executable), Device.CPU))
    yield server
    server.close()


@pytest.fixture
def run(tmp_path: Path, server: ForkServer) -> Callable[..., Attempt]:
    def run(script: str, **options) -> Attempt:
        (tmp_path / "work").mkdir(exist_ok=True)
        (tmp_path / "work" / "train.py").write_text(script)
        job = Job(tmp_path / "work", "train.py", tmp_path, **options)
        return attempts.run(job, launcher=ForkLauncher(LocalLauncher(), server))

    return run


def test_no_attempt_sees_what_another_did(run: Callable[..., Attempt]) -> None:
    script = "import torch\nprint(getattr(torch, 'mine', None))\ntorch.mine = 1\n"
    assert [run(script).output() for _ in range(2)] == ["None", "None"]


@pytest.mark.parametrize(
    "drawn", ["numpy.random.rand()", "random.random()", "torch.rand(1).item()"]
)
def test_draws_differ(run: Callable[..., Attempt], drawn: str) -> None:
    script = f"import numpy, random, torch\nprint({drawn})\n"
    assert len({run(script).output() for _ in range(3)}) == 3


def test_what_an_attempt_leaves_behind_is_ended(run: Callable[..., Attempt]) -> None:
    script = """if True:
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            time.sleep(600)
        os.wait()
        time.sleep(0.5)
    """
    made = run(script)
    assert (made.ended, made.left_running) == (Ended.EXIT, 1)
    names = {process.pid for process in made.evidence.processes}
    assert not any(psutil.pid_exists(pid) for pid in names)


def test_descriptors_are_the_attempt_s_own(run: Callable[..., Attempt]) -> None:
    script = "import os\ndef f():\n    return sorted(map(int, os.listdir('/proc/self/fd')))\n"
    assert len(run(script, call=Call("f")).answer) == 5  # three streams, the answer, the folder
    before = psutil.Process().num_fds()
    for _ in range(5):
        run("pass")
    assert psutil.Process().num_fds() == before


def test_another_setting_and_a_cold_job_are_started_afresh(run: Callable[..., Attempt]) -> None:
    script = "import sys\nprint('torch' in sys.modules)\n"
    assert run(script).output() == "True"
    assert run(script, cold=True).output() == "False"
    assert run(script, device_bytes=1 << 20).output() == "False"


def test_a_module_of_theirs_that_would_come_first(
    run: Callable[..., Attempt], tmp_path: Path
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "torch.py").write_text("value = 5\n")
    assert run("import torch\nprint(torch.value)\n").output() == "5"


def test_a_server_that_was_killed() -> None:
    before = psutil.Process().children()
    server = ForkServer.start(Setting(Path(sys.executable), Device.CPU))
    (process,) = set(psutil.Process().children()) - set(before)
    process.kill()
    with pytest.raises(LabError, match="fork server was lost"):
        server.fork([0])
    server.close()


def test_no_server_on_a_python_without_torch(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nexec {sys.executable} -S -I $@\n")
    python.chmod(0o755)
    with pytest.raises(LabError, match="does not start"):
        ForkServer.start(Setting(python, Device.CPU))


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with Forks() as forks:
        yield forks


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_verdicts_are_the_same(case: Case, forks: Forks) -> None:
    assert prove(GOLDEN, case, setup=forks.setup(EXERCISE, None)).problem is None


def test_nothing_outlives_who_asked(tmp_path: Path) -> None:
    token = f"forked-{os.getpid()}"
    busy = f"import os, time\nif os.fork() == 0:\n    os.execlp('tail', 'tail', '-f', '{token}')\n"
    program = f"""if True:
        import sys
        from pathlib import Path
        from gpulab.catalogue import Catalogue
        from gpulab.grading.check import Request, check
        from gpulab.grading.forks import Forks
        from gpulab.grading.judges import Judge
        (exercise,) = Catalogue(Path({str(GOLDEN)!r}))
        with Forks() as forks:
            request = Request(Path({str(GOLDEN)!r}), exercise, Path({str(tmp_path)!r}))
            check(request, judge=Judge(forks.setup(exercise, None)))
    """
    (tmp_path / token).touch()
    (tmp_path / EXERCISE.facts.script).write_text(busy + "time.sleep(600)\n")
    asker = subprocess.Popen([sys.executable, "-c", program])
    deadline = time.monotonic() + 60
    while not any(token in words(process) for process in tree_of(asker)):
        assert time.monotonic() < deadline
    tree = tree_of(asker)
    asker.kill()
    asker.wait()
    _, alive = psutil.wait_procs(tree, timeout=30)
    assert not alive


def tree_of(process: subprocess.Popen) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:  # ended meanwhile
        return []
