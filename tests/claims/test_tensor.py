"""Claims about tensors."""

import gc
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.autograd.graph import get_gradient_edge

LEAF = "a leaf Variable that requires grad is being used in an in-place operation"


def leaf() -> torch.Tensor:
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


def with_gradient() -> torch.Tensor:
    x = leaf()
    x.sum().backward()
    return x


def storage(x: torch.Tensor) -> int:
    return x.untyped_storage().data_ptr()


@pytest.mark.claim(5)
def test_two_constructors(part):
    part("torch.tensor is written in Python", hasattr(torch.tensor, "__code__"))
    assert (torch.tensor([1, 2]).dtype, torch.Tensor([1, 2]).dtype) == (torch.int64, torch.float32)
    assert (torch.tensor(3).shape, torch.Tensor(3).shape) == ((), (3,))


@pytest.mark.claim(6)
def test_no_node_at_creation(part):
    x = leaf()
    part("grad_fn points to a node", x.grad_fn is not None)
    node = get_gradient_edge(x).node
    node.metadata["seen"] = True
    assert get_gradient_edge(x).node.metadata == {"seen": True}
    del node
    gc.collect()
    part("the node is there from creation on", get_gradient_edge(x).node.metadata != {})


@pytest.mark.claim(7)
def test_ids_prove_nothing(part):
    x = with_gradient()
    one, two = x.data, x.data
    part("other ids mean other memory", id(one) == id(two) or storage(one) != storage(two))


@pytest.mark.claim(10)
def test_data_need_not_be_contiguous(part):
    x = torch.arange(6.0).view(2, 3).t()
    part(".data is contiguous", x.data.is_contiguous())
    assert storage(x.data) == storage(x)


@pytest.mark.claim(11)
def test_gradient_and_node(part):
    x = with_gradient()
    part(".grad is a tensor of its own", isinstance(x.grad, torch.Tensor) and x.grad is not x)
    part("grad_fn is a node", (x + 1).grad_fn.name() == "AddBackward0")


@pytest.mark.claim(23)
@pytest.mark.gpu
def test_cuda_returns_another_tensor(part):
    x = torch.ones(3)
    before = x.data_ptr()
    y = x.cuda()
    part("it changes the tensor's device", x.is_cuda)
    part("and its pointer", x.data_ptr() != before)
    assert y.is_cuda


@pytest.mark.claim(24)
def test_twelve_bytes(part):
    part("three floats take 12 bytes", leaf().untyped_storage().nbytes() == 12)


@pytest.mark.claim(25)
def test_name_of_the_constructor(part):
    library = (Path(torch.__file__).parent / "lib" / "libtorch_python.so").read_bytes()
    part("THPVariable_New is there", b"THPVariable_New" in library)
    assert b"THPVariable_pynew" in library


@pytest.mark.claim(26)
def test_who_keeps_memory(part):
    x = torch.arange(3.0)
    again, view = x, x[1:]
    del x
    part("a reference keeps it", again[0] == 0)
    del again
    part("nothing else does", view.untyped_storage().nbytes() == 0)
    assert view.tolist() == [1, 2]


@pytest.mark.claim(27)
def test_no_dump_of_a_stack(part):
    part("the function is there", hasattr(torch._C, "_debug_dump_autodiff_stack"))
    assert get_gradient_edge(leaf()).node.name() == "torch::autograd::AccumulateGrad"


@pytest.mark.claim(28)
def test_gradient_lies_elsewhere(part):
    x = with_gradient()
    part("two storages", storage(x) != storage(x.grad))


@pytest.mark.claim(29)
def test_distance(part):
    pairs = [with_gradient() for _ in range(20)]
    distances = {abs(x.grad.data_ptr() - x.data_ptr()) for x in pairs}
    part("333 bytes apart", 333 in distances)
    assert all(distance % 64 == 0 for distance in distances)


@pytest.mark.claim(30)
def test_in_place_on_a_leaf(part):
    x = with_gradient()
    with pytest.raises(RuntimeError, match=LEAF):
        x.add_(1)
    part("x.add_(1) goes through", x.tolist() != [1, 2, 3])
    w = torch.ones(2, requires_grad=True)
    loss = (w**2).sum()
    w.data.add_(1)
    loss.backward()
    part("past the check the gradient is right", w.grad.tolist() == [2, 2])


@pytest.mark.claim(31)
def test_zeroing_a_gradient(part):
    x = with_gradient()
    before = storage(x.grad)
    x.grad.zero_()
    part("zero_ leaves it as it was", x.grad.abs().sum() > 0)
    assert storage(x.grad) == before
    x.grad = None
    torch.optim.SGD([x], lr=1.0, weight_decay=1.0).step()
    assert x.tolist() == [1, 2, 3]


@pytest.mark.claim(32)
def test_clipping_a_gradient(part):
    x = with_gradient()
    x.grad.fill_(5)
    x.grad.clamp_(-1, 1)
    part("it raises", x.grad.tolist() != [1, 1, 1])
    with pytest.raises(RuntimeError, match=LEAF):
        x.clamp_(-1, 1)
    nn.utils.clip_grad_norm_([x], 0.5)
    assert x.grad.norm() <= 0.5
