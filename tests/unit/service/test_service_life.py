"""Start, stop, be killed, start again."""

import json
import signal
import socket
import subprocess
import threading
import time

import psutil
import pytest

from gpulab.model import LabError


def in_background(service, script: str, seat: str = "seat-1"):
    """Ask for a check in a thread; returns the events as they come, and the thread."""
    events: list[dict] = []

    def ask() -> None:
        last = service.client(seat).check(service.request(script), events.append)
        if not events or events[-1] is not last:
            events.append(last)

    thread = threading.Thread(target=ask)
    thread.start()
    return events, thread


def asleep(events: list[dict]) -> bool:
    return any(event.get("text") == "asleep" for event in list(events))


def test_killed_in_the_middle_nothing_is_lost(service) -> None:
    service.judge(service.variant("multiply"))
    events, thread = in_background(service, service.SLEEPS)
    service.wait_for(lambda: asleep(events))
    waiting, other = in_background(service, service.variant("multiply"), "seat-2")
    service.wait_for(lambda: len(waiting) > 1)
    left = service.descendants()
    service.stop(signal.SIGKILL)
    for each in (thread, other):
        each.join(60)
    for seen in (events, waiting):
        assert seen[-1]["event"] == "stopped"
        assert "nothing is lost" in seen[-1]["reason"]["texts"]["en"]
    _, running = psutil.wait_procs(left, timeout=60)
    assert running == []

    service.start()  # over the stale sockets
    assert [grade["verdict"] for grade in service.client().get("/grades")] == ["fixed"]
    assert list((service.state / "scratch").glob("*/work")) == []
    assert service.judge(service.variant("raises"))[-1]["grade"]["verdict"] == "not-fixed"
    assert service.client().get("/progress")["checks"] == {"exercise-1": 2}


def test_killed_while_verdicts_are_written(idle) -> None:
    """Whoever has heard a verdict finds it in the record, whenever the service is killed."""
    service = idle
    heard = 0
    for delay in (0.7, 1.2, 1.7, 2.2):
        service.start()
        threads = [
            in_background(service, "def (", seat) for seat in service.seats for _ in range(3)
        ]
        time.sleep(delay)  # any moment will do
        service.stop(signal.SIGKILL)
        for events, thread in threads:
            thread.join(60)
            heard += any(event["event"] == "grade" for event in events)
    service.start()
    recorded = sum(len(service.client(seat).get("/grades")) for seat in service.seats)
    assert recorded >= heard


def test_sigterm_lets_a_check_end_and_tells_who_waits(service) -> None:
    events, thread = in_background(
        service, "import time\ntime.sleep(1)\n" + service.variant("multiply")
    )
    service.wait_for(lambda: any(event["event"] == "look" for event in list(events)))
    waiting, other = in_background(service, service.variant("multiply"), "seat-2")
    service.wait_for(lambda: len(waiting) > 1)
    assert service.stop() == 0
    thread.join(60)
    other.join(60)
    assert events[-1]["grade"]["verdict"] == "fixed"
    assert [waiting[-1]["event"], waiting[-1]["reason"]["key"]] == ["stopped", "grader_stopped"]
    assert not service.place().exists()
    service.start()
    assert service.client().get("/progress")["best"] == {"exercise-1": "fixed"}


def test_sigterm_waits_only_so_long(idle) -> None:
    idle.limits["grace_seconds"] = 0.5
    service = idle.start()
    events, thread = in_background(service, service.SLEEPS)
    service.wait_for(lambda: asleep(events))
    left = service.descendants()
    assert service.stop() == 0
    thread.join(60)
    assert events[-1]["event"] == "stopped"
    assert psutil.wait_procs(left, timeout=60)[1] == []


def test_a_check_that_takes_too_long_is_ended(idle) -> None:
    idle.limits["check_seconds"] = 1
    service = idle.start()
    last = service.judge(service.SLEEPS)[-1]
    assert last["reason"]["key"] == "check_too_long"
    assert service.judge(service.SLEEPS, "seat-2")[-1]["event"] == "stopped"  # the share is free


def test_sighup_replaces_the_process_that_waits(service) -> None:
    service.ready()
    (before,) = service.descendants()
    service.process.send_signal(signal.SIGHUP)
    service.wait_for(lambda: not before.is_running())
    service.ready()
    (after,) = service.descendants()
    assert after.pid != before.pid


def test_a_spare_that_was_killed_costs_nothing(service) -> None:
    service.ready()
    (spare,) = service.descendants()
    spare.kill()
    service.wait_for(lambda: not service.client().get("/health")["ready"])
    assert service.judge(service.variant("multiply"))[-1]["grade"]["verdict"] == "fixed"


def test_a_grading_process_killed_in_the_middle_is_undecided(service) -> None:
    service.ready()
    (judge,) = service.descendants()
    events, thread = in_background(service, service.SLEEPS)
    service.wait_for(lambda: asleep(events))
    attempts = judge.children()
    judge.kill()
    thread.join(60)
    assert events[-1]["grade"]["verdict"] == "undecided"
    assert events[-1]["grade"]["reason"]["key"] == "judge_died"
    assert psutil.wait_procs(attempts, timeout=60)[1] == []
    assert service.judge(service.variant("multiply"))[-1]["grade"]["verdict"] == "fixed"


def test_two_shares_judge_at_once_and_do_not_disturb_each_other(idle) -> None:
    idle.shares["other"] = {"warm": False, "devices": "3"}
    idle.seats["seat-2"] = "other"
    service = idle.start()
    events, thread = in_background(service, service.SLEEPS)
    service.wait_for(lambda: asleep(events))
    for _ in range(2):
        last = service.judge(service.variant("multiply"), "seat-2")[-1]
        assert last["grade"]["verdict"] == "fixed"
    thread.join(60)
    assert events[-1]["grade"]["verdict"] == "not-fixed"  # out of time, not killed by the other


def test_one_service_for_one_state_folder(service) -> None:
    done = subprocess.run(
        service.command(), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 4
    assert "Another service" in done.stderr
    assert "Traceback" not in done.stderr
    assert service.client().get("/health")["status"] == "ok"


def test_something_else_where_the_socket_should_be(idle) -> None:
    idle.write_config()
    idle.place().parent.mkdir()
    idle.place().write_text("precious")
    done = subprocess.run(idle.command(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 4
    assert done.stderr.count("\n") == 1
    assert idle.place().read_text() == "precious"


@pytest.mark.parametrize("options", [[], ["--verify"], ["--export"]])
def test_a_wrong_configuration(idle, options: list[str]) -> None:
    idle.config.write_text("root = 3")
    done = subprocess.run(
        idle.command(*options), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1


def test_systemd_is_told(idle) -> None:
    address = str(idle.home / "n")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.settimeout(60)
        systemd.bind(address)
        service = idle.start(NOTIFY_SOCKET=address)
        assert systemd.recv(100) == b"READY=1"
        service.stop()
        assert systemd.recv(100) == b"STOPPING=1"


def test_a_service_that_is_not_there(idle) -> None:
    with pytest.raises(LabError, match="cannot be reached") as caught:
        idle.client().get("/health")
    assert caught.value.code == 4
    assert json.dumps(str(caught.value)).count("\\n") == 0


def test_it_is_ready_when_all_that_it_keeps_is(idle) -> None:
    idle.shares["cpu"]["warm"] = True
    service = idle.start()
    service.ready()
    # The grading process, and an attempt's with torch imported.
    assert max(process.memory_info().rss for process in service.descendants()) > 100 << 20
    assert service.judge(service.variant("multiply"))[-1]["grade"]["verdict"] == "fixed"
