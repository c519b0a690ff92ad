"""What a sleeping thread waits for, from the system call it is in and that call's operands."""

import os
import platform
from dataclasses import dataclass
from typing import Literal

from gpulab.observe.proc import Denied, read

WaitKind = Literal[
    "private lock", "shared lock", "timer", "read", "write", "child", "input", "other", "unknown"
]

# Names of the system calls that matter here, by number (asm/unistd_64.h, asm-generic/unistd.h).
NUMBERS = {
    "x86_64": {
        0: "read", 1: "write", 7: "poll", 17: "read", 19: "read", 20: "write", 23: "select",
        35: "nanosleep", 45: "read", 44: "write", 46: "write", 47: "read", 61: "wait4",
        202: "futex", 219: "restart", 230: "nanosleep", 232: "epoll", 247: "waitid",
        270: "select", 271: "ppoll", 281: "epoll",
    },
    "aarch64": {
        22: "epoll", 63: "read", 64: "write", 65: "read", 66: "write", 72: "select", 73: "ppoll",
        95: "waitid", 98: "futex", 101: "nanosleep", 115: "nanosleep", 128: "restart",
        206: "write", 207: "read", 211: "write", 212: "read", 260: "wait4",
    },
}  # fmt: skip

# Kernel functions that a thread sleeps in, where only their names can be read.
KERNEL_FUNCTIONS: tuple[tuple[str, WaitKind], ...] = (
    ("nanosleep", "timer"),
    ("futex", "shared lock"),  # with its operands unknown it must not count as private
    ("wait4", "child"),
    ("do_wait", "child"),
    ("pipe_write", "write"),
    ("pipe_read", "read"),
    ("poll", "input"),
    ("select", "input"),
)

FUTEX_WAITS = (0, 9)  # FUTEX_WAIT, FUTEX_WAIT_BITSET
FUTEX_COMMAND = 0x7F
FUTEX_PRIVATE = 0x80

WORDS: dict[WaitKind, str] = {
    "private lock": "a lock that only its own process can release",
    "shared lock": "a lock or semaphore that processes share",
    "timer": "a timer",
    "child": "a child process",
    "input": "a message (it polls)",
    "other": "the kernel",
    "unknown": "something that cannot be seen from here",
}


@dataclass(frozen=True)
class Wait:
    """`kind` of a wait, the file descriptor read or written, and whether a time-out ends it."""

    kind: WaitKind
    file: int | None = None
    timed: bool = False


UNKNOWN = Wait("unknown")


def wait_of(pid: int, thread: int) -> Wait:
    """What a sleeping thread waits for; `unknown` where the kernel does not say."""
    base = f"/proc/{pid}/task/{thread}"
    text = read(f"{base}/syscall")
    if isinstance(text, str):
        wait = interpret(text.split(), platform.machine())
        if wait is not None:
            return wait
    return _by_kernel_function(read(f"{base}/wchan"))


def interpret(line: list[str], machine: str) -> Wait | None:
    """A line of `/proc/PID/task/TID/syscall`, None where it does not tell what the wait is.

    The line holds the call's number and its six operands; a thread that runs shows other words.
    """
    if len(line) < 7:  # noqa: PLR2004 - a number and six operands
        return None
    name = NUMBERS.get(machine, {}).get(int(line[0]))
    operand = [int(value, 16) for value in line[1:7]]
    if name is None:
        return Wait("other") if machine in NUMBERS else None
    if name == "restart":  # a timed call goes on after a stop: the kernel function tells which
        return None
    if name in ("read", "write"):
        return Wait("read" if name == "read" else "write", operand[0])
    if name in ("wait4", "waitid"):
        return Wait("child")
    return _futex(operand) if name == "futex" else _poll(name, operand)


def _futex(operand: list[int]) -> Wait:
    _, operation, _, timeout = operand[:4]
    if operation & FUTEX_COMMAND not in FUTEX_WAITS:
        return Wait("other")
    private = operation & FUTEX_PRIVATE
    return Wait("private lock" if private else "shared lock", timed=timeout != 0)


def _poll(name: str, operand: list[int]) -> Wait:
    """A sleep proper, a wait for input, or one for no descriptor at all: a sleep again.

    Python 3.10 and older sleep with `select`. epoll with a time-out is how asyncio sleeps; the
    loader never uses it.
    """
    if name == "nanosleep":
        return Wait("timer", timed=True)
    if name == "select":
        files, timed = operand[0], operand[4] != 0
    elif name == "ppoll":
        files, timed = operand[1], operand[2] != 0
    else:
        milliseconds = operand[3 if name == "epoll" else 2] & 0xFFFFFFFF
        timed = milliseconds < 1 << 31  # otherwise a negative C int: endless
        files = 0 if name == "epoll" else operand[1]
    return Wait("timer" if timed and not files else "input", timed=timed)


def _by_kernel_function(name: str | Denied | None) -> Wait:
    if not isinstance(name, str) or name in ("", "0"):
        return UNKNOWN
    return Wait(next((kind for part, kind in KERNEL_FUNCTIONS if part in name), "other"))


def in_words(pid: int, wait: Wait) -> str:
    """Completes "the process waits for ..."."""
    if wait.kind in ("read", "write"):
        what = _kind_of_file(pid, wait.file)
        return f"data from {what}" if wait.kind == "read" else f"room in {what}"
    return WORDS[wait.kind]


def _kind_of_file(pid: int, number: int | None) -> str:
    try:
        target = os.readlink(f"/proc/{pid}/fd/{number}")  # noqa: PTH115 - "pipe:[17]" is no path
    except OSError:
        return "a pipe or file"
    for prefix, words in (
        ("pipe:", "a pipe"),
        ("socket:", "a socket"),
        ("anon_inode:", "an event"),
    ):
        if target.startswith(prefix):
            return words
    return f"the file {target}"


def obstacle(pid: int) -> str | None:
    """Why the waits of a process cannot be told exactly, in words; None where they can."""
    text = read(f"/proc/{pid}/syscall")
    if isinstance(text, str) and platform.machine() in NUMBERS:
        return None
    why = "no right to read" if isinstance(text, Denied) else "this machine does not show"
    if _by_kernel_function(read(f"/proc/{pid}/wchan")) == UNKNOWN:
        return f"hangs: {why} what a process waits for; only the time-out ends one"
    return f"early proof of a hang: {why} the operands of system calls"
