"""System calls that an attempt may not make; the kernel is asked for each."""

import errno
import os

import pytest

from gpulab.attempts.sandbox import seccomp

CALL = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    ctypes.set_errno(0)
    libc.syscall(number, *(ctypes.c_long(a) for a in arguments))
    return ctypes.get_errno()
def f(numbers, clone, unshare_flags):
    said = {name: call(number, 0, 0, 0, 0, 0, 0) for name, number in numbers.items()}
    said["clone namespaces"] = [call(clone, flag | 17, 0, 0, 0, 0) for flag in unshare_flags]
    return said
"""
NEW = [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]


def test_denied_calls_fail_with_eperm(sandbox) -> None:
    column = seccomp.MACHINES[os.uname().machine]
    numbers = {name: found[column] for name, found in seccomp.DENIED.items()}
    numbers = {name: number for name, number in numbers.items() if number is not None}
    said = sandbox.ask(CALL, numbers, seccomp.CLONE[column], NEW)
    assert said.pop("clone namespaces") == [errno.EPERM] * len(NEW)
    assert {name for name, found in said.items() if found != errno.EPERM} == set()


def test_clone3_is_unknown(sandbox) -> None:
    column = seccomp.MACHINES[os.uname().machine]
    said = sandbox.ask(CALL, {"clone3": seccomp.CLONE3[column]}, seccomp.CLONE[column], [])
    assert said["clone3"] == errno.ENOSYS


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="x86-64 has a second numbering")
def test_the_other_numbering_is_closed(sandbox) -> None:
    said = sandbox.ask(CALL, {"x32 getpid": 0x40000000 + 39}, seccomp.CLONE[0], [])
    assert said["x32 getpid"] == errno.ENOSYS


LOADERS = """
import sys
import torch
from torch.utils.data import DataLoader, Dataset

class Squares(Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, index):
        return torch.tensor(float(index)) ** 2

if __name__ == "__main__":
    for context in ("fork", "spawn", "forkserver"):
        loader = DataLoader(Squares(), 8, num_workers=2, multiprocessing_context=context)
        print(context, int(sum(batch.sum() for batch in loader)))
"""


def test_what_training_needs_works(sandbox) -> None:
    made = sandbox.run(LOADERS)
    total = sum(n * n for n in range(64))
    assert made.output("stdout").splitlines() == [
        f"{context} {total}" for context in ("fork", "spawn", "forkserver")
    ], made.output()
