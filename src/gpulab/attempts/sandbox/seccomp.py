"""The system calls that an attempt may not make, as a BPF program for bubblewrap.

Written here because the need is one list and two rules (docs/decisions/0006-seccomp.md).
"""

from __future__ import annotations

import errno
import os
import socket
import struct

from gpulab.model import LabError

# name: number on x86-64, on aarch64. What looks into or steers other processes or the kernel,
# or gives more rights; none is needed to train.
DENIED: dict[str, tuple[int, int | None]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "listmount": (458, 458),
    "lookup_dcookie": (212, 18),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "statmount": (457, 457),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
}
CLONE, CLONE3, SOCKET, SOCKETPAIR = (56, 220), (435, 435), (41, 198), (53, 199)
MACHINES = {"x86_64": 0, "aarch64": 1}
AUDIT_ARCH = (0xC000003E, 0xC00000B7)
X32_BIT = 0x40000000
NEW_NAMESPACES = 0x7E020000  # every CLONE_NEW* flag that clone takes

LOAD_WORD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCH, FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050000, 0x80000000


def program(machine: str | None = None) -> bytes:
    """The filter for a machine, by default this one.

    A denied call fails with EPERM; a socket that is not of the machine itself (AF_UNIX) with
    EAFNOSUPPORT; clone3 with ENOSYS, since its flags cannot be seen and the C library then falls
    back on clone, whose flags can.

    Raises:
        LabError: neither x86-64 nor aarch64.
    """
    machine = machine or os.uname().machine
    if machine not in MACHINES:
        raise LabError(f"Attempts cannot be isolated on {machine}; use x86-64 or aarch64.", code=4)
    column = MACHINES[machine]
    code = [_op(LOAD_WORD, ARCH), *_unless(AUDIT_ARCH[column], KILL), _op(LOAD_WORD, NUMBER)]
    if machine == "x86_64":
        code += [_op(JUMP_AT_LEAST, X32_BIT, 0, 1), _refuse(errno.ENOSYS)]
    for numbers in DENIED.values():
        if (number := numbers[column]) is not None:
            code += [_op(JUMP_EQUAL, number, 0, 1), _refuse(errno.EPERM)]
    code += [_op(JUMP_EQUAL, CLONE3[column], 0, 1), _refuse(errno.ENOSYS)]
    code += [
        _op(JUMP_EQUAL, CLONE[column], 0, 4),
        _op(LOAD_WORD, FIRST_ARGUMENT),
        _op(JUMP_ANY_BIT, NEW_NAMESPACES, 0, 1),
        _refuse(errno.EPERM),
        _op(RETURN, ALLOW),
    ]
    code += [
        _op(JUMP_EQUAL, SOCKET[column], 1, 0),
        _op(JUMP_EQUAL, SOCKETPAIR[column], 0, 3),
        _op(LOAD_WORD, FIRST_ARGUMENT),
        *_unless(socket.AF_UNIX, REFUSE | errno.EAFNOSUPPORT),
    ]
    return b"".join([*code, _op(RETURN, ALLOW)])


def _unless(value: int, result: int) -> list[bytes]:
    return [_op(JUMP_EQUAL, value, 1, 0), _op(RETURN, result)]


def _refuse(number: int) -> bytes:
    return _op(RETURN, REFUSE | number)


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """One instruction; the jumps count the instructions to leave out."""
    return struct.pack("=HBBI", code, if_true, if_false, value)
