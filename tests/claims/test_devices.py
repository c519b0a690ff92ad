"""Claims about the environment and devices.

Without a GPU, torch's own FakeTensorMode raises what the operations raise on one.
"""

from importlib.metadata import metadata

import numpy as np
import pytest
import torch
from packaging.specifiers import SpecifierSet
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

MISMATCH = "Expected all tensors to be on the same device"


@pytest.mark.claim(21)
@pytest.mark.skipif(torch.cuda.is_available(), reason="here .cuda() works")
def test_cuda_that_does_not_work(part, complaint):
    part("it fails silently", not complaint(torch.ones(1).cuda))


@pytest.mark.claim(22)
def test_python_that_torch_asks_for(part):
    asked = SpecifierSet(metadata("torch")["Requires-Python"])
    part("3.9 will do", "3.9.18" in asked)


@pytest.mark.claim(67)
def test_text_of_a_mismatch(part, complaint):
    with FakeTensorMode(), torch.no_grad():
        x, y = torch.ones(4, 3, device="cuda"), torch.ones(3)
        for operation in (torch.add, torch.mv):
            said = complaint(lambda operation=operation: operation(x, y))
            part(operation.__name__, MISMATCH in said)


@pytest.mark.claim(67)
@pytest.mark.gpu
def test_text_of_a_mismatch_on_a_gpu(part, complaint):
    x, y = torch.ones(4, 3, device="cuda"), torch.ones(3)
    for operation in (torch.add, torch.mv):
        said = complaint(lambda operation=operation: operation(x, y))
        part(operation.__name__, MISMATCH in said)


@pytest.mark.claim(68)
def test_mismatch_without_a_graph(part, complaint):
    with FakeTensorMode(), torch.no_grad():
        said = complaint(lambda: torch.ones(3, device="cuda") + torch.ones(3))
    part("without a graph it does not happen", MISMATCH not in said)


@pytest.mark.claim(69)
def test_where_a_mismatch_shows(part, complaint):
    with FakeTensorMode(), torch.no_grad():
        x = torch.ones(3, device="cuda")
        part("x + y goes through", MISMATCH not in complaint(lambda: x + torch.ones(3)))
        assert (x + torch.tensor(1.0)).device.type == "cuda"


@pytest.mark.claim(69)
@pytest.mark.gpu
def test_where_a_mismatch_shows_on_a_gpu(part, complaint):
    x = torch.ones(3, device="cuda", requires_grad=True)
    part("x + y goes through", MISMATCH not in complaint(lambda: x + torch.ones(3)))
    assert (x + torch.tensor(1.0)).device.type == "cuda"


@pytest.mark.claim(70)
def test_default_device(part):
    torch.set_default_device("meta")
    try:
        part("factories follow", torch.ones(1).is_meta)
        part("modules follow", nn.Linear(1, 1).weight.is_meta)
        part("arrays follow", torch.from_numpy(np.ones(1)).is_meta)
    finally:
        torch.set_default_device(None)


@pytest.mark.claim(72)
def test_naming_a_device(part, complaint, monkeypatch):
    part("torch.device raises", complaint(lambda: torch.device("cuda:7")))
    monkeypatch.setattr(torch._C, "_cuda_getDeviceCount", None)
    monkeypatch.delattr(torch._C, "_cuda_getDeviceCount")
    monkeypatch.setattr(torch.cuda, "_initialized", False)
    said = complaint(torch.cuda._lazy_init)
    part("a build without CUDA raises a RuntimeError", not said.startswith("AssertionError"))
