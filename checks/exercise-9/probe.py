# Plain Python 3.9, like the code it runs beside.
"""Scores, loss and gradients of one batch, and how the work was done."""

import zlib

import torch


def judge(script, seed, trips, states):
    """What the script's functions make of fresh weights and trips."""
    model = fresh_model(script, seed)
    device = next(model.parameters()).device
    trips = [trip.to(device) for trip in trips]
    states = [state.to(device) for state in states]
    calls = count_calls(model)
    loss = script.training_loss(model, trips, states)
    loss.backward()
    gradients = {name: weight.grad for name, weight in model.named_parameters()}
    with torch.no_grad():
        scores = list(script.predict(model, trips))
    return {
        "loss": float(loss.detach()),
        "gradients": gradients,
        "scores": scores,
        "calls": max(calls.values(), default=0),
        "steps": count_steps(script, model, trips, states),
    }


def fresh_model(script, seed):
    """A model each weight of which is drawn for its name."""
    model = script.build_model()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            generator = torch.Generator().manual_seed(seed + zlib.crc32(name.encode()))
            weight.copy_(0.3 * torch.randn(weight.shape, generator=generator))
    return model


def count_calls(model):
    """How often each layer is called from now on, by name."""
    calls = {}
    for name, layer in model.named_modules():
        if next(layer.parameters(recurse=False), None) is not None:
            layer.register_forward_hook(lambda *_, name=name: note_call(calls, name))
    return calls


def note_call(calls, name):
    """Count one call; returns None, so that the layer's output stays."""
    calls[name] = calls.get(name, 0) + 1


def count_steps(script, model, trips, states):
    """How many steps the optimizer takes in an epoch."""
    optimizer = CountingSGD(model.parameters(), lr=1e-3)
    script.train_epoch(model, optimizer, trips, states)
    return optimizer.steps


class CountingSGD(torch.optim.SGD):
    """Plain gradient descent that counts its steps."""

    steps = 0

    def step(self, closure=None):
        """One step more."""
        self.steps += 1
        return super().step(closure)
