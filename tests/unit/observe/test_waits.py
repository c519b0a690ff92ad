"""System calls, told from their numbers and operands on both kinds of machine."""

import platform

import pytest

from gpulab.observe import waits
from gpulab.observe.proc import DENIED
from gpulab.observe.waits import Wait, interpret

MINUS_ONE = 0xFFFFFFFF
PRIVATE_WAIT, SHARED_WAIT = 0x189, 0x109


def line(number, *operands):
    padded = [*operands, *[0] * (6 - len(operands))]
    return [str(number), *(hex(value) for value in padded), "0x7ffe0000", "0x7f000000"]


SAME_ON_BOTH = [
    ({"x86_64": 202, "aarch64": 98}, (1, PRIVATE_WAIT), Wait("private lock")),
    ({"x86_64": 202, "aarch64": 98}, (1, 0x80), Wait("private lock")),
    ({"x86_64": 202, "aarch64": 98}, (1, PRIVATE_WAIT, 0, 9), Wait("private lock", timed=True)),
    ({"x86_64": 202, "aarch64": 98}, (1, SHARED_WAIT), Wait("shared lock")),
    ({"x86_64": 202, "aarch64": 98}, (1, 0x86), Wait("other")),  # FUTEX_LOCK_PI
    ({"x86_64": 230, "aarch64": 115}, (1, 1, 9), Wait("timer", timed=True)),
    ({"x86_64": 35, "aarch64": 101}, (9,), Wait("timer", timed=True)),
    ({"x86_64": 270, "aarch64": 72}, (0, 0, 0, 0, 9), Wait("timer", timed=True)),
    ({"x86_64": 270, "aarch64": 72}, (5, 1, 0, 0, 9), Wait("input", timed=True)),
    ({"x86_64": 270, "aarch64": 72}, (5, 1), Wait("input")),
    ({"x86_64": 271, "aarch64": 73}, (0, 0, 9), Wait("timer", timed=True)),
    ({"x86_64": 271, "aarch64": 73}, (9, 1, 9), Wait("input", timed=True)),
    ({"x86_64": 281, "aarch64": 22}, (3, 9, 1, 7000), Wait("timer", timed=True)),
    ({"x86_64": 281, "aarch64": 22}, (3, 9, 1, MINUS_ONE), Wait("input")),
    ({"x86_64": 0, "aarch64": 63}, (7,), Wait("read", 7)),
    ({"x86_64": 1, "aarch64": 64}, (8,), Wait("write", 8)),
    ({"x86_64": 61, "aarch64": 260}, (5,), Wait("child")),
    ({"x86_64": 247, "aarch64": 95}, (5,), Wait("child")),
    ({"x86_64": 219, "aarch64": 128}, (), None),
    ({"x86_64": 16, "aarch64": 29}, (5,), Wait("other")),  # ioctl
]
X86_ONLY = [
    ((23, 0, 0, 0, 0, 9), Wait("timer", timed=True)),
    ((7, 9, 0, 7000), Wait("timer", timed=True)),
    ((7, 9, 1, 5000), Wait("input", timed=True)),
    ((7, 9, 1, MINUS_ONE), Wait("input")),
    ((232, 3, 9, 1, 7000), Wait("timer", timed=True)),
]


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize(("numbers", "operands", "expected"), SAME_ON_BOTH)
def test_calls_that_both_machines_have(machine, numbers, operands, expected):
    assert interpret(line(numbers[machine], *operands), machine) == expected


@pytest.mark.parametrize(("call", "expected"), X86_ONLY)
def test_calls_of_x86_alone(call, expected):
    assert interpret(line(*call), "x86_64") == expected


@pytest.mark.parametrize("words", [["running"], ["-1", "0x7ffe0000", "0x7f000000"], []])
def test_a_thread_outside_a_call_tells_nothing(words):
    assert interpret(words, "x86_64") is None


def test_an_unknown_machine_tells_nothing():
    assert interpret(line(202, 1, PRIVATE_WAIT), "riscv64") is None


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        ("hrtimer_nanosleep", "timer"),
        ("futex_do_wait", "shared lock"),
        ("pipe_write", "write"),
        ("anon_pipe_read", "read"),
        ("do_wait", "child"),
        ("do_poll.constprop.0", "input"),
        ("something_new", "other"),
        ("0", "unknown"),
        (DENIED, "unknown"),
        (None, "unknown"),
    ],
)
def test_without_operands_the_kernel_function_stands_in(monkeypatch, function, kind):
    answers = {"syscall": DENIED, "wchan": function}
    monkeypatch.setattr(waits, "read", lambda path: answers[path.rpartition("/")[2]])
    assert waits.wait_of(1, 1).kind == kind
    missing = waits.obstacle(1)
    assert ("only the time-out" in missing) == (kind == "unknown")
    assert "no right" in missing


def test_nothing_is_missing_where_operands_can_be_read(monkeypatch):
    monkeypatch.setattr(waits, "read", lambda _: "202 0x1 0x189 0x0 0x0 0x0 0x0 0x1 0x1")
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert waits.obstacle(1) is None
