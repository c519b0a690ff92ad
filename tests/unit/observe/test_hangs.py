"""Real hangs are recognised in time, and slow but healthy scripts are never called hung.

GPULAB_REPEAT=20 repeats the slow workers that often.
"""

import os
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent / "scripts"
REPEAT = int(os.environ.get("GPULAB_REPEAT", "1"))
SIDE_BY_SIDE = {"sleep": 5, "compute": 2}

PROVEN = {
    "d1_lock_held_at_fork.py": "worker",
    "d2_openmp_pool.py": "worker",
    "d3_inherited_executor.py": "worker",
    "d7_bare_fork.py": "worker",
    "two_locks.py": "main",
}
STILL = {
    "d4_bounded_queue.py": "worker",
    "d5_join_before_get.py": "main",
    "d6_lock_around_loop.py": "worker",
}
HEALTHY = [
    "d8_slow_shutdown.py",
    "stuck_at_exit.py",
    "gives_up.py",
    "woken_by_signal.py",
    "sleeper.py time",
    "sleeper.py select",
    "sleeper.py poll",
    "sleeper.py asyncio",
]


def waiting_line(script):
    lines = (SCRIPTS / script).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith("# waits here"))


def assert_names_the_line(hang, script, role):
    process = next(process for process in hang.waiting if process.role == role)
    frame = process.threads[0].frames[0]
    assert frame.file == script
    assert frame.line == waiting_line(script)
    assert frame.source.endswith("# waits here")


@pytest.mark.parametrize("script", PROVEN)
def test_a_lock_that_nobody_can_release_is_proven(watcher, script):
    (seen,) = watcher.watch(script)
    hang = seen.hang
    assert hang is not None, seen.output
    assert hang.kind == "proof"
    assert hang.at - hang.last_sign_of_life <= 3
    assert hang.at - seen.last_output <= 3
    first = hang.waiting[0]
    assert (first.role, first.waits_for) == (
        PROVEN[script],
        "a lock that only its own process can release",
    )
    assert_names_the_line(hang, script, PROVEN[script])
    assert [process.role for process in hang.waiting[1:]] == ["main"] * (first.role == "worker")
    assert seen.evidence.missing == ()


@pytest.fixture(scope="module")
def slow(watcher):
    """The scripts that take long by waiting, side by side."""
    commands = [*STILL, *HEALTHY]
    return dict(zip(commands, watcher.watch(*commands), strict=True))


@pytest.mark.parametrize("script", STILL)
def test_waiting_for_each_other_is_recognised_by_stillness(slow, script):
    hang = slow[script].hang
    assert hang is not None, slow[script].output
    assert hang.kind == "stillness"
    assert 6 < hang.at - hang.last_sign_of_life <= 10
    assert_names_the_line(hang, script, STILL[script])
    assert {process.role for process in hang.waiting} == {"main", "worker"}


def test_stillness_says_what_each_process_waits_for(slow):
    def waits(script):
        return {process.role: process.waits_for for process in slow[script].hang.waiting}

    polls = "a message (it polls)"
    shared = "a lock or semaphore that processes share"
    assert waits("d4_bounded_queue.py") == {"main": polls, "worker": shared}
    assert waits("d5_join_before_get.py") == {"main": "a child process", "worker": "room in a pipe"}
    assert waits("d6_lock_around_loop.py") == {"main": polls, "worker": shared}


@pytest.mark.parametrize("command", HEALTHY)
def test_a_wait_that_ends_by_itself_is_no_hang(slow, command):
    assert slow[command].hang is None
    assert "DONE" in slow[command].output


def test_openblas_before_a_fork_is_no_hang(watcher):
    (seen,) = watcher.watch("d9_numpy_before_fork.py")
    assert seen.hang is None
    assert "DONE" in seen.output


@pytest.mark.timeout(60 * REPEAT)
@pytest.mark.parametrize("way", ["sleep", "compute"])
def test_a_worker_that_takes_eight_seconds_is_no_hang(watcher, way):
    left = REPEAT
    while left > 0:
        count = min(left, SIDE_BY_SIDE[way])
        for seen in watcher.watch(*[f"slow_worker.py {way}"] * count):
            assert seen.hang is None
            assert "DONE" in seen.output
        left -= count


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_hang_shows_with_every_start_method(watcher, method):
    (seen,) = watcher.watch(f"stuck_process.py {method}")
    assert seen.hang is not None
    assert seen.hang.kind == "proof"
    assert_names_the_line(seen.hang, "stuck_process.py", "worker")
    assert [process.role for process in seen.hang.waiting] == ["worker", "main"]
