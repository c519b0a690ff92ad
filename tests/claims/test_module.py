"""Claims about modules."""

from collections import OrderedDict

import pytest
import torch
from torch import nn


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 2))
        self.bias = nn.Parameter(torch.zeros(2))


class Forgetful(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.randn(3, 2)


@pytest.mark.claim(2)
def test_without_super(part, complaint):
    class Bare(nn.Module):
        def __init__(self, value):
            self.part = value

    for kind, value in (("parameters", nn.Parameter(torch.ones(1))), ("module", nn.Linear(1, 1))):
        said = complaint(lambda value=value: Bare(value))
        part(f"for {kind}", f"cannot assign {kind} before Module.__init__() call" in said)


@pytest.mark.claim(4)
def test_no_grad_and_eval(part):
    norm, drop = nn.BatchNorm1d(3), nn.Dropout(0.5)
    with torch.no_grad():
        norm(torch.randn(8, 3))
        part("no_grad leaves dropout on", (drop(torch.ones(1000)) == 0).any())
    part("no_grad leaves statistics moving", norm.num_batches_tracked == 1)
    part("eval() leaves gradients on", norm.eval()(torch.randn(8, 3)).requires_grad)


@pytest.mark.claim(12)
def test_apply_reaches_children(part):
    class Parent(nn.Module):
        def __init__(self):
            super().__init__()
            self.child = nn.BatchNorm1d(2)
            self.plain = torch.ones(2)

    parent = Parent().to(torch.float64)
    part("registered", "weight" in parent.child._parameters)
    part("converted", parent.child.weight.dtype == torch.float64)
    assert parent.child.running_mean.dtype == torch.float64
    assert parent.plain.dtype == torch.float32


@pytest.mark.claim(41)
def test_dictionaries(part):
    module = Small()
    three = [module._parameters, module._buffers, module._modules]
    part("three dictionaries", all(isinstance(each, dict) for each in three))
    part("ordered ones", all(isinstance(each, OrderedDict) for each in three))
    assert isinstance(module.state_dict(), OrderedDict)


@pytest.mark.claim(42)
def test_parameter_knows_no_module(part):
    registered = []

    class Watched(nn.Module):
        def register_parameter(self, name, value):
            registered.append(name)
            super().register_parameter(name, value)

    module = Watched()
    parameter = nn.Parameter(torch.ones(1))
    part("the constructor registers", bool(registered))
    module.weight = parameter
    assert registered == ["weight"]


@pytest.mark.claim(43)
def test_same_object(part):
    module = Small()
    part("the same object", module.weight is module._parameters["weight"])
    assert "weight" not in module.__dict__


@pytest.mark.claim(44)
def test_plain_tensor_as_attribute(part, complaint):
    said = complaint(lambda: setattr(Small(), "weight", torch.randn(3, 2)))
    part("silently over a parameter", "as parameter 'weight'" not in said)
    forgetful = Forgetful()
    part("silently under a new name", not list(forgetful.parameters()))
    assert not forgetful.state_dict()
    with pytest.raises(ValueError, match="empty parameter list"):
        torch.optim.SGD(forgetful.parameters(), lr=0.1)


@pytest.mark.claim(45)
def test_registering_afterwards(part, complaint):
    free, taken = nn.Module(), Forgetful()
    free.register_parameter("weight", nn.Parameter(torch.ones(1)))
    part("under a free name", len(list(free.parameters())) == 1)
    again = nn.Parameter(torch.ones(1))
    said = complaint(lambda: taken.register_parameter("weight", again))
    part("after the assignment", "attribute 'weight' already exists" not in said)
    taken.weight = nn.Parameter(torch.ones(1))
    assert len(list(taken.parameters())) == 1


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn1 = torch.nn.BatchNorm2d(4)
        self.listed = [nn.BatchNorm2d(4)]


@pytest.mark.claim(46)
def test_norm_as_attribute(part):
    module = Norms().eval()
    part("not registered", len(module.state_dict()) != 5)
    part("eval() misses it", module.bn1.training)
    assert module.listed[0].training


@pytest.mark.claim(47)
def test_setattr_registers(part):
    module = nn.Module()
    module.weight, module.child = nn.Parameter(torch.ones(1)), nn.Linear(1, 1)
    part("parameters", "weight" in module._parameters)
    part("modules", "child" in module._modules)


@pytest.mark.claim(48)
def test_state_dict_is_the_model(part):
    module = Small()
    state = module.state_dict()
    state["bias"].fill_(7)
    part("from the dictionary to the model", module.bias.tolist() == [7, 7])
    with torch.no_grad():
        module.bias.fill_(3)
    part("from the model to the dictionary", state["bias"].tolist() == [3, 3])


@pytest.mark.claim(63)
def test_node_of_a_linear_layer(part):
    plain, without_bias = nn.Linear(3, 2), nn.Linear(3, 2, bias=False)
    cases = {
        "two dimensions, bias": plain(torch.ones(4, 3)),
        "without bias": without_bias(torch.ones(4, 3)),
        "three dimensions": plain(torch.ones(2, 4, 3)),
    }
    for said, y in cases.items():
        part(said, y.grad_fn.name() == "AddmmBackward0")
