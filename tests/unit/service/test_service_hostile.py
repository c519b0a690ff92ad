"""Clients that misbehave: bounded, answered where that is possible, and nobody else notices."""

import json
import socket
import time

import pytest

from gpulab.model import LabError

FLOOD = "import sys\nwhile True: sys.stdout.write('x' * 50 + '\\n')\n"


def answer(connection: socket.socket) -> tuple[int, bytes]:
    """Status and body of what comes until the service closes."""
    head, _, body = connection.makefile("rb").read().partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def still_judges(service) -> None:
    assert service.judge(service.variant("multiply"), "seat-2")[-1]["grade"]["verdict"] == "fixed"


def test_too_large(service) -> None:
    with service.connect() as connection:
        connection.sendall(service.http(b"", length=100 << 20))
        status, body = answer(connection)
    assert status == 413
    assert "66 MiB" in json.loads(body)["error"]


def test_no_length(service) -> None:
    with service.connect() as connection:
        connection.sendall(b"POST /check HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.sendall(b"ffffff\r\n" + b"x" * 1000)
        connection.shutdown(socket.SHUT_WR)
        connection.makefile("rb").read()  # ends
    still_judges(service)


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\0\1\2\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /health HTTP/9.9\r\n\r\n",
        b"GET /health HTTP/1.1\r\nbroken\r\n\r\n",
        b"POST /check HTTP/1.1\r\nHost: g\r\nContent-Length: -5\r\n\r\n",
        b"POST /check HTTP/1.1\r\nHost: g\r\nContent-Length: 5, 6\r\n\r\nabcde",
        b"POST /hints HTTP/1.1\r\nHost: g\r\nContent-Length: 99999999\r\n\r\n",
        b"GET /health HTTP/1.1\r\n" + b"A: " + b"x" * (1 << 20) + b"\r\n\r\n",
        b"GET /health HTTP/1.1\r\n" + b"A: b\r\n" * 100_000 + b"\r\n",
    ],
    ids=range(9),
)
def test_what_is_no_request(shared, nonsense: bytes) -> None:
    with shared.connect() as connection:
        try:
            connection.sendall(nonsense)
            connection.shutdown(socket.SHUT_WR)
            said = connection.makefile("rb").read()
        except ConnectionError:
            said = b""
    assert b"Traceback" not in said
    assert shared.client().get("/health")["status"] == "ok"
    assert not shared.logged("fault")


@pytest.mark.parametrize("part", ["headers", "body"])
def test_a_slow_sender_is_cut_off(idle, part: str) -> None:
    idle.limits["upload_seconds"] = 1
    service = idle.start()
    with service.connect() as connection:
        begun = time.monotonic()
        connection.sendall(
            b"POST /check HTTP/1.1\r\n" if part == "headers" else service.http(b"x", length=9)
        )
        connection.settimeout(0.2)
        while time.monotonic() - begun < 60:
            try:
                connection.sendall(
                    b"x" if part == "body" and time.monotonic() - begun < 0.5 else b""
                )
                if connection.recv(1000) == b"":
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        assert 0.8 < time.monotonic() - begun < 30
    still_judges(service)


def test_half_a_body(service) -> None:
    for _ in range(20):
        with service.connect() as connection:
            connection.sendall(service.http(service.request("x" * 1000)[:500], length=2000))
    still_judges(service)
    last = service.judge(service.variant("multiply"))[-1]  # the seat's places are free again
    assert last["grade"]["verdict"] == "fixed"
    service.wait_for(lambda: not list((service.state / "scratch").iterdir()))


def test_too_many_connections(idle) -> None:
    idle.limits["connections"] = 5
    service = idle.start()
    held = [service.connect() for _ in range(40)]
    still_judges(service)
    with pytest.raises(LabError, match="cannot be reached"):
        service.client().get("/health")
    for connection in held:
        connection.close()
    service.wait_for(service.serves)


def test_a_client_that_goes_away_ends_its_check(service) -> None:
    with service.connect() as connection:
        connection.sendall(service.http(service.request(service.SLEEPS)))
        stream = connection.makefile("rb")
        while b"asleep" not in stream.readline():
            pass
        attempt = [p for p in service.descendants() if "train.py" in " ".join(p.cmdline())]
        assert attempt
        stream.close()
    begun = time.monotonic()
    service.wait_for(lambda: not any(process.is_running() for process in attempt))
    service.wait_for(lambda: service.logged("check given up"))
    still_judges(service)
    assert time.monotonic() - begun < 30
    assert service.client().get("/grades") == []
    assert service.client().get("/health")["ahead"] == 0


def test_a_client_that_goes_away_leaves_the_queue(service) -> None:
    with service.connect("seat-2") as running:
        running.sendall(service.http(service.request(service.SLEEPS)))
        service.wait_for(lambda: service.logged("judging"))
        with service.connect() as waiting:
            waiting.sendall(service.http(service.request(service.SLEEPS)))
            stream = waiting.makefile("rb")
            while b"queued" not in (line := stream.readline()):
                pass
            assert json.loads(line) == {"event": "queued", "ahead": 1}
            stream.close()
        service.wait_for(lambda: service.client().get("/health")["ahead"] == 1)


def test_a_flooding_script_and_a_client_that_never_reads(service) -> None:
    before = service.process.memory_info().rss
    with service.connect() as connection:
        connection.sendall(service.http(service.request(FLOOD)))
        service.wait_for(lambda: service.logged("check judged"))
        assert service.process.memory_info().rss - before < 64 << 20
        still_judges(service)
    (grade,) = service.client().get("/grades")
    assert grade["verdict"] == "not-fixed"


def test_second_request_in_the_same_breath(service) -> None:
    body = service.request(service.variant("multiply"))
    with service.connect() as connection:
        connection.sendall(service.http(body) * 2)
        connection.shutdown(socket.SHUT_WR)  # it reads no more: both are given up, or judged
        connection.makefile("rb").read()
    still_judges(service)


def test_large_uploads_do_not_stay(service) -> None:
    body = service.request(service.variant("multiply"), data="x" * (40 << 20))
    before = service.process.memory_info().rss
    assert service.send(body)[-1]["grade"]["verdict"] == "fixed"
    assert service.process.memory_info().rss - before < 32 << 20
    service.wait_for(lambda: not list((service.state / "scratch").iterdir()))
