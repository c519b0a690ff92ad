"""Predict the flow through a pump, with an activation whose slopes are learnt."""

import torch
from torch import nn
from torch.nn import functional as F

INPUTS, WIDTH = 6, 32
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Swish(torch.autograd.Function):
    """x * sigmoid(slope * x); keeps nothing but its two inputs."""

    @staticmethod
    def forward(ctx, x, slope):
        ctx.save_for_backward(x, slope)
        return x * torch.sigmoid(slope * x)

    @staticmethod
    def backward(ctx, grad):
        x, slope = ctx.saved_tensors
        gate = torch.sigmoid(slope * x)
        bend = gate * (1 - gate)
        to_x = gate + slope * x * bend
        to_slope = (x * x * bend).flatten(0, -2).sum(dim=0)
        return grad * to_x, grad * to_slope


def swish(x, slope):
    """The activation of x (..., channels) with one slope for each channel (channels,)."""
    return Swish.apply(x, slope)


class Activation(nn.Module):
    """`swish` with slopes that are learnt."""

    def __init__(self, channels):
        super().__init__()
        self.slope = nn.Parameter(torch.ones(channels))

    def forward(self, x):
        return swish(x, self.slope)


def build_model():
    model = nn.Sequential(
        nn.Linear(INPUTS, WIDTH),
        Activation(WIDTH),
        nn.Linear(WIDTH, WIDTH),
        Activation(WIDTH),
        nn.Linear(WIDTH, 1),
    )
    return model.to(DEVICE)


def training_loss(model, readings, flow):
    """The mean squared error of the predicted flow (count,)."""
    return F.mse_loss(model(readings).squeeze(1), flow)


def self_test():
    """The largest difference between the gradients of a sum and its measured slopes."""
    torch.manual_seed(1)
    inputs = [torch.randn(5, 3).double(), torch.rand(3).double() + 0.5]
    inputs = [tensor.to(DEVICE).requires_grad_() for tensor in inputs]
    gradients = torch.autograd.grad(swish(*inputs).sum(), inputs)
    worst, step = 0.0, 1e-6
    with torch.no_grad():
        for tensor, gradient in zip(inputs, gradients):
            for place in range(tensor.numel()):
                tensor.view(-1)[place] += step
                above = swish(*inputs).sum()
                tensor.view(-1)[place] -= 2 * step
                below = swish(*inputs).sum()
                tensor.view(-1)[place] += step
                slope = (above - below).item() / (2 * step)
                worst = max(worst, abs(slope - gradient.view(-1)[place].item()))
    return worst


def make_data(count=512, seed=0):
    """Readings (count, INPUTS), and the flow that belongs to them (count,)."""
    generator = torch.Generator().manual_seed(seed)
    readings = torch.randn(count, INPUTS, generator=generator)
    flow = readings[:, 0] * readings[:, 1] + torch.sin(2 * readings[:, 2])
    return readings.to(DEVICE), flow.to(DEVICE)


def main():
    print(f"self test: gradients agree to {self_test():.0e}")
    torch.manual_seed(0)
    readings, flow = make_data()
    model = build_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(1, 201):
        loss = training_loss(model, readings, flow)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch % 50 == 0:
            print(f"epoch {epoch:3}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
