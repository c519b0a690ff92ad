"""Claims about memory that creeps away."""

import gc
import weakref

import pytest
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks


class Trainer:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.history = []

    def step(self, keep):
        loss = self.model(torch.randn(4, 16)).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.history.append(keep(loss))


def whole(loss):
    return loss


@pytest.fixture
def no_collector():
    Trainer().step(torch.Tensor.item)  # the first step of a process leaves a cycle of its own
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.claim(90)
def test_item(part):
    trainer = Trainer()
    trainer.step(torch.Tensor.item)
    part("it is a number", type(trainer.history[0]) is float)


@pytest.mark.claim(91)
@pytest.mark.usefixtures("no_collector")
def test_no_cycle(part):
    trainer = Trainer()
    trainer.step(whole)
    watched = [weakref.ref(trainer), weakref.ref(trainer.model)]
    del trainer
    part("only the collector frees trainer and model", any(ref() is not None for ref in watched))


@pytest.mark.claim(92)
@pytest.mark.usefixtures("no_collector")
def test_what_a_loss_keeps(part):
    trainer = Trainer()
    trainer.step(whole)
    kept = trainer.history
    model, weight = weakref.ref(trainer.model), weakref.ref(trainer.model[0].weight)
    del trainer
    part("the module", model() is not None)
    part("its parameters", weight() is not None)
    del kept
    assert weight() is None


def still_saved(backward: bool) -> int:
    """Bytes that five kept losses hold for a backward."""
    alive = []

    def keep(tensor):
        copy = tensor.clone()
        alive.append(weakref.ref(copy))
        return copy

    model, kept = Trainer().model, []
    with saved_tensors_hooks(keep, whole):
        for _ in range(5):
            loss = model(torch.randn(64, 16)).pow(2).mean()
            if backward:
                loss.backward()
            kept.append(loss)
            del loss
    return sum(ref().nbytes for ref in alive if ref() is not None)


@pytest.mark.claim(93)
def test_growth_by_kept_losses(part):
    part("after backward", still_saved(backward=True) > 0)
    part("without backward", still_saved(backward=False) > 5 * 64 * 16 * 4)


@pytest.mark.claim(94)
def test_cure_of_the_leak(part):
    loss = torch.tensor([2.0], requires_grad=True).sum()
    part("it gives a number", loss.detach().cpu().item() == 2)
    assert loss.item() == loss.detach().cpu().item()


@pytest.mark.claim(95)
def test_dropout_under_no_grad(part):
    with torch.no_grad():
        zeros = (nn.Dropout(0.5)(torch.ones(10_000)) == 0).float().mean()
    part("half are zero", 0.4 < zeros < 0.6)


@pytest.mark.claim(96)
@pytest.mark.usefixtures("no_collector")
def test_what_a_prediction_keeps(part):
    model = Trainer().model
    with torch.no_grad():
        prediction = model(torch.randn(4, 16))
    module, weight = weakref.ref(model), weakref.ref(model[0].weight)
    del model
    part("the module", module() is not None)
    part("its parameters", weight() is not None)
    assert prediction[:1].untyped_storage().nbytes() == prediction.nbytes
