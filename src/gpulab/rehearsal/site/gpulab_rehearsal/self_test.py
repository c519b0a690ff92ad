"""A first look at the device: `python -m gpulab_rehearsal.self_test` exits 0 when it behaves.

It asks one thing of each part: arithmetic and gradients, the allocator and its error, the device
checks, random numbers, streams, pinned memory, a fork.
"""

from __future__ import annotations

import os
import sys
from typing import Callable

import torch
from torch import nn


def arithmetic() -> None:
    """A layer and its gradients have the CPU's values."""
    torch.manual_seed(0)
    layer = nn.Linear(8, 3)
    inputs = torch.randn(4, 8)
    twin = nn.Linear(8, 3)
    twin.load_state_dict(layer.state_dict())
    twin.cuda()
    layer(inputs).square().sum().backward()
    twin(inputs.cuda()).square().sum().backward()
    torch.testing.assert_close(twin.weight.grad.cpu(), layer.weight.grad)


def recurrence() -> None:
    """A fused cell, which the CPU lacks, has the values of the CPU's plain one."""
    layer = nn.LSTM(4, 5)
    inputs = torch.randn(3, 2, 4)
    expected = layer(inputs)[0]
    torch.testing.assert_close(layer.cuda()(inputs.cuda())[0].cpu(), expected)


def memory() -> None:
    """Torch's allocator counts, gives back, and refuses with its own error."""
    before = torch.cuda.memory_allocated()
    block = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
    assert torch.cuda.memory_allocated() == before + (1 << 20)  # noqa: S101 - this is a test
    del block
    assert torch.cuda.memory_allocated() == before  # noqa: S101
    capacity = torch.cuda.get_device_properties(0).total_memory
    refused = False
    try:
        torch.empty(capacity + 1, dtype=torch.uint8, device="cuda")
    except torch.cuda.OutOfMemoryError as error:
        refused = str(error).startswith("CUDA out of memory")
    assert refused  # noqa: S101


def device_checks() -> None:
    """Mixed devices are refused in torch's words."""
    text = ""
    try:
        torch.ones(2, 2, device="cuda") @ torch.ones(2, 2)
    except RuntimeError as error:
        text = str(error)
    assert text.startswith("Expected all tensors to be on the same device"), text  # noqa: S101


def randomness() -> None:
    """A restored generator state gives the same numbers again."""
    state = torch.cuda.get_rng_state()
    first = torch.rand(4, device="cuda")
    second = torch.rand(4, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(first, torch.rand(4, device="cuda"))  # noqa: S101
    assert not torch.equal(first, second)  # noqa: S101


def streams() -> None:
    """A copy that does not wait has arrived after the synchronisation."""
    stream = torch.cuda.Stream()
    target = torch.zeros(4, pin_memory=True)
    with torch.cuda.stream(stream):
        target.copy_(torch.ones(4, device="cuda"), non_blocking=True)
    stream.synchronize()
    assert target.sum().item() == 4  # noqa: S101, PLR2004


def fork() -> None:
    """A forked child may not use the device."""
    child = os.fork()
    if child == 0:
        try:
            torch.ones(1).cuda()
        except RuntimeError as error:
            os._exit(0 if "forked subprocess" in str(error) else 1)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0  # noqa: S101


def main() -> int:
    """Run every test; the first failure's name is the last line on stderr."""
    assert torch.cuda.device_count() == 1  # noqa: S101
    assert "ehearsal" in torch.cuda.get_device_name()  # noqa: S101
    tests: list[Callable[[], None]] = [
        arithmetic, recurrence, memory, device_checks, randomness, streams, fork,
    ]  # fmt: skip
    for test in tests:
        try:
            test()
        except Exception as error:  # noqa: BLE001 - whatever it is, the device is not fit for use
            reason = (str(error).strip().splitlines() or [""])[0]
            print(f"rehearsal: {test.__name__}: {type(error).__name__} {reason}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
