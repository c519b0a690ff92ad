"""Claims about the training loop and the optimizer."""

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode


def trained(place: str) -> torch.Tensor:
    """The weights after five steps with `zero_grad` at this place."""
    torch.manual_seed(0)
    model, data = nn.Linear(3, 1), torch.randn(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(5):
        clear(optimizer, place == "before forward")
        loss = model(data).pow(2).mean()
        clear(optimizer, place == "before backward")
        loss.backward()
        clear(optimizer, place == "before step")
        optimizer.step()
        clear(optimizer, place == "after step")
    return model.weight.detach()


def clear(optimizer, wanted: bool) -> None:
    if wanted:
        optimizer.zero_grad()


@pytest.mark.claim(8)
def test_place_of_zero_grad(part):
    right = trained("before backward")
    for other in ("before forward", "after step"):
        part(f"{other} is wrong", not torch.equal(trained(other), right))
    useless = trained("before step")
    part("before step is wrong", not torch.equal(useless, right))
    torch.manual_seed(0)
    assert torch.equal(useless, nn.Linear(3, 1).weight)
    assert not torch.equal(trained("never"), right)


class UsesData(TorchFunctionMode):
    seen = False

    def __torch_function__(self, function, _types, args=(), kwargs=None):
        self.seen |= function == torch.Tensor.data.__get__
        return function(*args, **(kwargs or {}))


@pytest.mark.claim(16)
def test_arithmetic_of_a_step(part):
    w = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([w], lr=0.5, foreach=False)
    w.sum().backward()
    with UsesData() as uses:
        optimizer.step()
    part("the arithmetic", w.tolist() == [0.5, 0.5])
    part("through .data", uses.seen)
    with UsesData() as uses:
        w.data.zero_()
    assert uses.seen, "the mode does not see .data, and so proves nothing"


@pytest.mark.claim(17)
def test_parameter_groups(part):
    w = nn.Parameter(torch.ones(2))
    (group,) = torch.optim.SGD([w], lr=0.1).param_groups
    part("a dictionary with parameters", isinstance(group, dict) and group["params"][0] is w)
    part("and settings", group["lr"] == 0.1)


@pytest.mark.claim(64)
def test_gradients_add_up(part):
    w = nn.Parameter(torch.ones(2))
    for _ in range(3):
        w.sum().backward()
    part("they add up", w.grad.tolist() == [3, 3])


@pytest.mark.claim(65)
def test_what_zero_grad_leaves(part):
    w, model = nn.Parameter(torch.ones(2)), nn.Linear(1, 1)
    w.sum().backward()
    model(torch.ones(1)).backward()
    torch.optim.SGD([w], lr=0.1).zero_grad()
    model.zero_grad()
    part("zeros from an optimizer", w.grad is not None)
    part("zeros from a module", model.weight.grad is not None)


@pytest.mark.claim(66)
def test_asking_for_none(part):
    def left(**options) -> int:
        model = nn.Linear(512, 512)
        model(torch.ones(1, 512)).sum().backward()
        model.zero_grad(**options)
        return sum(p.grad.nbytes for p in model.parameters() if p.grad is not None)

    part("it saves memory against the default", left(set_to_none=True) < left())
    assert left(set_to_none=False) == (512 * 512 + 512) * 4
