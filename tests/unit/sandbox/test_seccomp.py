"""The filter, run by a small machine of our own; the kernel's word is in tests/isolated."""

import errno
import socket
import struct

import pytest

from gpulab.attempts.sandbox import seccomp
from gpulab.model import LabError

ALLOW, KILL = "allow", "kill"


def run(machine: str, number: int, argument: int = 0, arch: int | None = None) -> object:
    """What the filter says: ALLOW, KILL, or an error number."""
    column = seccomp.MACHINES[machine]
    arch = seccomp.AUDIT_ARCH[column] if arch is None else arch
    data = struct.pack("=IIQ6Q", number, arch, 0, argument, 0, 0, 0, 0, 0)
    program = list(struct.iter_unpack("=HBBI", seccomp.program(machine)))
    at, word = 0, 0
    while True:
        code, if_true, if_false, value = program[at]
        at += 1
        if code == seccomp.LOAD_WORD:
            (word,) = struct.unpack_from("=I", data, value)
        elif code == seccomp.RETURN:
            kinds = {seccomp.ALLOW: ALLOW, seccomp.KILL: KILL}
            return kinds.get(value, value & 0xFFFF)
        else:
            held = {
                seccomp.JUMP_EQUAL: word == value,
                seccomp.JUMP_AT_LEAST: word >= value,
                seccomp.JUMP_ANY_BIT: bool(word & value),
            }[code]
            at += if_true if held else if_false


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_every_denied_call_is_refused_and_no_other(machine: str) -> None:
    column = seccomp.MACHINES[machine]
    denied = {numbers[column] for numbers in seccomp.DENIED.values()} - {None}
    special = {n[column] for n in (seccomp.CLONE, seccomp.CLONE3, seccomp.SOCKET)}
    special |= {seccomp.SOCKETPAIR[column]}
    for number in range(600):
        if number not in special:
            assert run(machine, number) == (errno.EPERM if number in denied else ALLOW), number


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_threads_and_forks_but_no_namespaces(machine: str) -> None:
    column = seccomp.MACHINES[machine]
    clone = seccomp.CLONE[column]
    assert run(machine, clone, 0x3D0F00) == ALLOW  # a thread of the C library
    assert run(machine, clone, 17) == ALLOW  # fork
    for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert run(machine, clone, flag | 17) == errno.EPERM
    assert run(machine, seccomp.CLONE3[column]) == errno.ENOSYS


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_sockets_of_this_machine_only(machine: str) -> None:
    column = seccomp.MACHINES[machine]
    for call in (seccomp.SOCKET[column], seccomp.SOCKETPAIR[column]):
        assert run(machine, call, socket.AF_UNIX) == ALLOW
        for family in range(2, 50):
            assert run(machine, call, family) == errno.EAFNOSUPPORT


def test_another_numbering_is_no_way_round() -> None:
    assert run("x86_64", 39, arch=0x40000003) == KILL  # 32 bit
    assert run("x86_64", 0x40000000 + 39) == errno.ENOSYS
    assert run("aarch64", 1, arch=0x40000028) == KILL


def test_another_machine_is_refused() -> None:
    with pytest.raises(LabError, match="riscv64"):
        seccomp.program("riscv64")
