"""Claims about export."""

import warnings

import pytest
import torch
from torch import nn

NEGATIVE = -torch.ones(2)


class Branch(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x + 1
        return x - 1


class Loop(nn.Module):
    def forward(self, x):
        total = 0
        for row in range(x.shape[0]):
            total = total + x[row]
        return total


def traced(model, example):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        return torch.jit.trace(model, example), [str(warning.message) for warning in warned]


@pytest.mark.claim(104)
def test_torchscript_is_deprecated(part):
    _, said = traced(Loop(), torch.ones(2, 3))
    part("no other road is named", not any("torch.export" in text for text in said))


@pytest.mark.claim(105)
def test_trace_bakes_in(part, complaint):
    branch, said = traced(Branch(), torch.ones(2))
    part("the branch", torch.equal(branch(NEGATIVE), NEGATIVE + 1))
    assert any("Python boolean" in text for text in said)
    loop, _ = traced(Loop(), torch.ones(2, 3))
    part("the length of a loop", not torch.equal(loop(torch.ones(5, 3)), Loop()(torch.ones(5, 3))))
    refused = complaint(lambda: torch.export.export(Branch(), (torch.ones(2),)))
    assert "data-dependent" in refused
