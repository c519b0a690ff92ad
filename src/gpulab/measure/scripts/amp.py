# ruff: noqa: ANN001, ANN201, D103, INP001
# mypy: ignore-errors
"""Training in several precisions: gradients that vanish, steps that are left out, the scale.

Runs inside an attempt: the standard library and torch, Python 3.9.
"""

import time

import torch
from torch import nn

WIDTH, BATCH = 256, 128
OVERFLOWS_AT = 10  # the step with one input too large for half precision


def make_scaler(device, enabled):
    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler(device, enabled=enabled)
    if device == "cpu":
        raise RuntimeError("on a CPU this needs torch 2.3 or later")
    return torch.cuda.amp.GradScaler(enabled=enabled)


def measure(precision, scaled, steps):
    """The scale at every step, steps left out, share of zero gradients, ms a step.

    Args:
        precision: "float32", "float16" or "bfloat16".
        scaled: whether the loss is scaled.
        steps: how many; one of them overflows in half precision.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(4)]
    model = nn.Sequential(*layers, nn.Linear(WIDTH, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    scaler = make_scaler(device, scaled)
    data, wanted = torch.randn(BATCH, WIDTH, device=device), torch.zeros(BATCH, 1, device=device)
    dtype = getattr(torch, precision)
    scales, left_out, zeros, seconds = [], 0, 0.0, []
    for step in range(steps):
        begun = time.perf_counter()
        optimizer.zero_grad()
        with torch.autocast(device, dtype=dtype, enabled=precision != "float32"):
            prediction = model(data)
        # A small loss, as of a model that is nearly done: its gradients are small as well.
        loss = 1e-3 * nn.functional.mse_loss(prediction.float(), wanted)
        if step == OVERFLOWS_AT and precision == "float16":
            loss = loss * 1e11
        before = model[0][0].weight.detach().clone()
        scaler.scale(loss).backward()
        gradient = model[0][0].weight.grad
        if step < OVERFLOWS_AT:
            zeros += (gradient == 0).float().mean().item() / OVERFLOWS_AT
        scaler.step(optimizer)
        scaler.update()
        seconds.append(time.perf_counter() - begun)
        left_out += bool(gradient.isfinite().all()) is False and torch.equal(
            before, model[0][0].weight
        )
        scales.append(scaler.get_scale() if scaled else 1.0)
    broken = not all(bool(p.isfinite().all()) for p in model.parameters())
    return {
        "scales": scales,
        "left_out": left_out,
        "zeros": zeros,
        "broken": broken,
        "step_ms": 1000 * sorted(seconds)[steps // 2],
    }
