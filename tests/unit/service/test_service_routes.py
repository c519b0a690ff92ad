"""Every route, and the identity that a socket is."""

import json
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpulab.model import LabError
from gpulab.service.upload import pack


def test_a_check_from_the_request_to_the_record(service) -> None:
    events = service.judge(service.variant("multiply"))
    kinds = [event["event"] for event in events]
    assert kinds[0] == "accepted"
    assert [kinds.count(kind) for kind in ("plan", "check", "grade")] == [1, 4, 1]
    last = events[-1]
    assert last["grade"]["verdict"] == "fixed"
    assert last["grade"]["level"] == events[0]["level"] == "local"
    assert last["recorded"]
    assert "adding a value to itself" in last["debrief"]["en"]
    (recorded,) = service.client().get("/grades")
    assert recorded == last["grade"]
    assert service.client().get("/progress") == {
        "best": {"exercise-1": "fixed"},
        "checks": {"exercise-1": 1},
        "hints": {},
    }


def test_no_debrief_before_it_is_fixed(service) -> None:
    last = service.judge(service.variant("wrong_for_empty"))[-1]
    assert last["grade"]["verdict"] == "not-fixed"
    assert last["debrief"] == {}


def test_no_syntax_and_no_script(service) -> None:
    for script, key in (("def (", "syntax"), ("", "empty")):
        grade = service.judge(script)[-1]["grade"]
        assert (grade["verdict"], grade["reason"]["key"]) == ("not-fixed", key)


def test_a_seat_sees_its_own_record_only(service) -> None:
    service.judge(service.variant("raises"), "seat-2")
    service.client("seat-2").note_hint("1", 2)
    assert service.client("seat-1").get("/grades") == []
    assert service.client("seat-1").get("/progress")["hints"] == {}
    assert service.client("seat-2").get("/progress")["hints"] == {"exercise-1": 2}
    export = service.client("seat-2").get("/export")
    assert export["seat"] == "seat-2"
    assert [grade["verdict"] for grade in export["grades"]] == ["not-fixed"]
    assert [(hint["exercise"], hint["number"]) for hint in export["hints"]] == [("exercise-1", 2)]


def test_the_whole_record_for_the_trainer(service) -> None:
    service.client("seat-2").note_hint("1", 1)
    done = subprocess.run(service.command("--export"), capture_output=True, check=True)
    assert {name: len(seat["hints"]) for name, seat in json.loads(done.stdout).items()} == {
        "seat-1": 0,
        "seat-2": 1,
    }


def test_many_verdicts_come_page_by_page(service) -> None:
    from gpulab.grading import Records  # noqa: PLC0415 - here only
    from gpulab.model import Grade, Verdict  # noqa: PLC0415

    records = Records(service.state / "seats" / "seat-1" / "records.sqlite", wal=True)
    for number in range(120):
        records.add(Grade("exercise-1", Verdict.FIXED, (), None, str(number), "2026-01-01", 1.0))
    found = [grade["submission"] for grade in service.client().get("/grades")]
    assert found == [str(number) for number in range(120)]


def test_sockets_belong_to_their_seats(service) -> None:
    status = service.place().stat()
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert stat.S_IMODE(service.state.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ({"exercise": "exercise-9", "number": 1}, 1, "no exercise"),
        ({"exercise": "exercise-1", "number": 4}, 1, "1 to 3"),
        ({"exercise": "exercise-1", "number": 0}, 1, "1 to 3"),
        ({"exercise": "exercise-1", "number": True}, 1, "whole number"),
        ({"exercise": ["exercise-1"], "number": 1}, 1, "text"),
        ({"exercise": "exercise-1"}, 1, "exercise and number"),
        ([], 1, "exercise and number"),
    ],
)
def test_hints_that_are_none(shared, body: Any, code: int, words: str) -> None:
    with (
        pytest.raises(LabError, match=words) as caught,
        shared.client()._asked("POST", "/hints", json.dumps(body).encode(), 10),
    ):
        pass
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/../../etc/passwd", 404),
        ("POST", "/nothing", 404),
        ("GET", "/check", 405),
        ("PUT", "/check", 405),
        ("DELETE", "/grades", 405),
        ("POST", "/grades", 405),
        ("GET", "/hints", 405),
        ("BREW", "/health", 405),
        ("HEAD", "/health", 405),
    ],
)
def test_unknown_requests(shared, method: str, path: str, status: int) -> None:
    with shared.connect() as connection:
        connection.sendall(
            f"{method} {path} HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n".encode()
        )
        answer = connection.makefile("rb").read()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert int(head.split()[1]) == status
    assert b"ornado" not in answer
    if method != "HEAD":
        assert json.loads(body) == {"error": "The grader knows no such request."}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"nonsense", "JSON"),
        (pack("exercise-77", None, []), "no exercise"),
        (pack("exercise-1", "tpu", []), "no device"),
        (pack("exercise-1", None, [("../x", b"")]), "name"),
    ],
)
def test_checks_that_are_refused(shared, body: bytes, words: str) -> None:
    with pytest.raises(LabError, match=words) as caught:
        shared.send(body)
    assert caught.value.code == 1
    assert shared.client().get("/grades") == []


def test_changed_checks_need_no_restart(service) -> None:
    service.ready()  # a grading process waits already
    test_file = service.catalogue / "checks" / "exercise-1" / "test_fix.py"
    test_file.write_text(test_file.read_text().replace("The script runs", "Changed: it runs"))
    events = service.judge(service.variant("multiply"))
    titles = [event["result"]["titles"]["en"] for event in events if event["event"] == "check"]
    assert titles[0] == "Changed: it runs to its end"


HIDDEN = "the hidden answer is 42"


def test_a_crashed_check_shows_nothing_of_itself(service) -> None:
    test_file = service.catalogue / "checks" / "exercise-1" / "test_fix.py"
    test_file.write_text(
        test_file.read_text().replace("    require_finished(", f"    1 / 0  # {HIDDEN}\n    (")
    )
    events = service.judge(service.variant("multiply"))
    assert events[-1]["grade"]["verdict"] == "undecided"
    told = json.dumps(events)
    for hidden in (HIDDEN, "Traceback", "ZeroDivision", "test_fix.py", str(service.catalogue)):
        assert hidden not in told
    (account,) = (service.state / "crashes").iterdir()
    assert HIDDEN in account.read_text()
    assert HIDDEN not in service.log.read_text()


def test_a_broken_catalogue_is_the_graders_fault_and_names_no_path(service) -> None:
    (service.catalogue / "checks" / "exercise-1" / "check.toml").write_text("nonsense")
    with pytest.raises(LabError) as caught:
        service.judge(service.variant("multiply"))
    assert caught.value.code == 4
    assert "/" not in str(caught.value)
    reference = str(caught.value).split()[-1].strip(".")
    assert [line["reference"] for line in service.logged("fault")] == [reference]


def test_logs_are_json_and_hold_no_output_of_an_attendee(service) -> None:
    service.judge("print('MY OUTPUT')\n" + service.variant("raises"))
    lines = [json.loads(line) for line in service.log.read_text().splitlines()]
    assert all({"time", "level", "event"} <= line.keys() for line in lines)
    assert "MY OUTPUT" not in service.log.read_text()
    (judged,) = service.logged("check judged")
    assert (judged["seat"], judged["verdict"]) == ("seat-1", "not-fixed")


def test_a_verdict_that_cannot_be_recorded_is_told_all_the_same(service) -> None:
    Path(service.state / "seats").write_text("in the way")
    last = service.judge(service.variant("multiply"))[-1]
    assert last["grade"]["verdict"] == "fixed"
    assert last["recorded"] is False
    assert service.logged("fault")


def test_a_seat_may_have_some_checks_open_and_no_more(idle) -> None:
    idle.limits["checks"] = 2
    service = idle.start()
    held = [service.connect() for _ in range(2)]
    for connection in held:
        connection.sendall(service.http(service.request(service.SLEEPS)))
    service.wait_for(lambda: len(service.logged("check asked")) == 2)
    with pytest.raises(LabError, match="2 checks open"):
        service.judge(service.variant("multiply"))
    with service.connect("seat-2"):  # nobody else is refused
        assert service.client("seat-2").get("/health")["ahead"] == 2
    for connection in held:
        connection.close()
    assert service.judge(service.variant("multiply"))[-1]["grade"]["verdict"] == "fixed"
