"""Claims about the graph and autograd."""

import pytest
import torch
from torch.overrides import TorchFunctionMode

SECOND = "Trying to backward through the graph a second time"
CHANGED = "modified by an inplace operation"


def leaf() -> torch.Tensor:
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


def scalar() -> torch.Tensor:
    return torch.tensor(2.0, requires_grad=True)


@pytest.mark.claim(1)
def test_backward_twice(part, complaint):
    y = scalar() ** 2
    y.retain_grad()
    y.backward()
    part("retain_grad lets the second backward pass", SECOND not in complaint(y.backward))
    x = scalar()
    y = x**2
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad == 8
    y = x + 3
    y.backward()
    y.backward()


class WithoutBackward(torch.autograd.Function):
    @staticmethod
    def forward(_, x):
        return x * 2


class WithoutForward(torch.autograd.Function):
    @staticmethod
    def backward(_, gradient):
        return gradient


@pytest.mark.claim(13)
def test_what_a_function_needs(part, complaint):
    said = complaint(lambda: WithoutForward.apply(leaf()))
    part("forward is required", "must implement the forward function" in said)
    y = WithoutBackward.apply(leaf())
    part("backward is required", y.tolist() != [2, 4, 6])
    with pytest.raises(NotImplementedError, match="must implement either the backward or vjp"):
        y.sum().backward()


@pytest.mark.claim(18)
def test_nothing_compiles_unasked(part):
    model = torch.nn.Linear(2, 1)
    part("compiled unasked", "Compiled" in repr(model(torch.ones(1, 2)).grad_fn))


@pytest.mark.claim(19)
def test_compiled_node(part):
    compiled = torch.compile(lambda x: x**2 + 3, backend="aot_eager")
    part("the node is the compiler's", "CompiledFunction" in repr(compiled(leaf()).grad_fn))


@pytest.mark.claim(34)
def test_graph_is_built_as_it_runs(part):
    def branch(x):
        return x**2 if x > 0 else x.exp()

    names = [branch(torch.tensor(v, requires_grad=True)).grad_fn.name() for v in (1.0, -1.0)]
    part("each run has its own graph", names == ["PowBackward0", "ExpBackward0"])
    part("it has no cycle", not has_cycle(branch(scalar()).grad_fn, ()))


def has_cycle(node, above) -> bool:
    if node in above:
        return True
    return any(has_cycle(n, (*above, node)) for n, _ in node.next_functions if n is not None)


@pytest.mark.claim(35)
def test_kind_of_a_node(part):
    node = (scalar() ** 2).grad_fn
    part("a Function", isinstance(node, torch.autograd.Function))
    assert isinstance(node, torch.autograd.graph.Node)


@pytest.mark.claim(36)
def test_next_functions(part):
    y = scalar() ** 2
    (first, _), (second, _) = (y + 3).grad_fn.next_functions
    part("the power's node comes first", first is y.grad_fn)
    part("the other is an object named None", second is not None)


@pytest.mark.claim(37)
def test_end_of_the_graph(part):
    x = scalar()
    y = x**2
    part("the leaf has no grad_fn", x.grad_fn is None)
    ((node, _),) = y.grad_fn.next_functions
    part("the power leads to the accumulator", node.name().endswith("AccumulateGrad"))


class Calls(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, function, _types, args=(), kwargs=None):
        self.seen.append(function)
        return function(*args, **(kwargs or {}))


@pytest.mark.claim(38)
def test_way_of_an_operator(part):
    with Calls() as calls:
        y = scalar() ** 2
    part("it ends at a node", y.grad_fn.name() == "PowBackward0")
    part("through torch.pow", torch.pow in calls.seen)


@pytest.mark.claim(39)
def test_gradient_without_grad(part):
    x = scalar()
    (gradient,) = torch.autograd.grad(x**2 + 3, x)
    part("it returns the gradient", gradient == 4)
    part(".grad is left alone", x.grad is None)


@pytest.mark.claim(40)
def test_backward_builds_nothing(part):
    x = scalar()
    z = x**2 + 3
    nodes = [z.grad_fn, z.grad_fn.next_functions[0][0]]
    with Calls() as calls:
        z.backward(retain_graph=True)
        z.backward()
    again = [z.grad_fn, z.grad_fn.next_functions[0][0]]
    part("the second backward has another graph", again != nodes)
    assert torch.pow not in calls.seen
    assert x.grad == 8


@pytest.mark.claim(73)
def test_in_place_after_a_power(part):
    x = leaf()
    y = x**2
    y[0] = 0
    part("grad_fn is None", y.grad_fn is None)
    y.sum().backward()
    part("backward fails or is wrong", x.grad.tolist() != [0, 4, 6])
    for function in (torch.exp, torch.sigmoid, torch.tanh, torch.relu, torch.sqrt):
        y = function(leaf())
        y[0] = 0
        with pytest.raises(RuntimeError, match=CHANGED):
            y.sum().backward()


@pytest.mark.claim(74)
def test_clone_first(part):
    x = leaf()
    y = x.exp().clone()
    y[0] = 0
    y.sum().backward()
    part("the gradient is right", torch.equal(x.grad[1:], x.detach().exp()[1:]) and x.grad[0] == 0)


@pytest.mark.claim(75)
def test_detached(part):
    part("no grad is required", not (leaf().detach() ** 2).requires_grad)


@pytest.mark.claim(76)
def test_backward_from_a_detached(part, complaint):
    said = complaint((leaf().detach() ** 2).sum().backward)
    part("it is silent", "element 0 of tensors does not require grad" not in said)
    x = leaf()
    ((x.detach() ** 2).sum() + x.sum()).backward()
    assert x.grad.tolist() == [1, 1, 1]


@pytest.mark.claim(77)
def test_detached_shares_memory(part):
    x = leaf()
    x.detach()[0] = 100
    part("the original is untouched", x[0] == 1)


@pytest.mark.claim(78)
def test_clone_keeps_the_graph(part):
    x = leaf()
    (x.clone().requires_grad_(True) ** 2).sum().backward()
    part("the gradient arrives", x.grad.tolist() == [2, 4, 6])


@pytest.mark.claim(79)
def test_python_numbers(part):
    with_number, with_tensor = leaf(), leaf()
    ((with_number.sum() + 5) ** 2).backward()
    ((with_tensor.sum() + torch.tensor(5.0, requires_grad=True)) ** 2).backward()
    part("a number loses the gradient", not torch.equal(with_number.grad, with_tensor.grad))
    x = leaf()
    torch.tensor((x**2).sum().item(), requires_grad=True).backward()
    assert x.grad is None
