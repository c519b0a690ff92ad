# Plain Python 3.9, like the code it runs beside.
"""What a model is given to learn from, step by step of its optimizer."""

import zlib

import torch


def learn(script, seed, readings, valve):
    """The gradients of every parameter (None: none) at each step of one pass with fresh weights."""
    model = script.build_model()
    device = next(model.parameters()).device
    with torch.no_grad():
        for name, weight in model.named_parameters():
            generator = torch.Generator().manual_seed(seed + zlib.crc32(name.encode()))
            weight.copy_(0.7 * torch.randn(weight.shape, generator=generator))
    optimizer = Listener(model)
    script.train_epoch(model, optimizer, readings.to(device), valve.to(device))
    return {"names": optimizer.names, "steps": optimizer.heard}


class Listener(torch.optim.SGD):
    """Gradient descent at rate 0 that notes the gradients it is given."""

    def __init__(self, model):
        named = dict(model.named_parameters())
        super().__init__(named.values(), lr=0.0)
        self.names, self.heard = list(named), []

    def step(self, closure=None):
        """Note the gradients, by name, and go nowhere."""
        weights = self.param_groups[0]["params"]
        gradients = [None if w.grad is None else w.grad.clone() for w in weights]
        self.heard.append(dict(zip(self.names, gradients)))
        return super().step(closure)
