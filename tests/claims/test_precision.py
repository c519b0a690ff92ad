"""Claims about mixed precision. The scaler works on the CPU as well."""

import pytest
import torch
from torch import nn


def after_an_inf() -> tuple[list[float], float]:
    """Two parameters of 1 after a step in which one has an infinite gradient; the scale."""
    a, b = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    optimizer, scaler = torch.optim.SGD([a, b], lr=0.1), torch.amp.GradScaler("cpu")
    scaler.scale((a * float("inf") + b).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    return [a.item(), b.item()], scaler.get_scale()


@pytest.mark.claim(97)
def test_old_names(part):
    for name in ("GradScaler", "autocast"):
        with pytest.warns(FutureWarning, match="is deprecated") as warned:
            getattr(torch.cuda.amp, name)(enabled=False)
        part(f"torch.cuda.amp.{name} is the way", not warned)


@pytest.mark.claim(98)
@pytest.mark.gpu
def test_lists_of_autocast(part):
    half = torch.ones(2, 2, device="cuda", dtype=torch.float16)
    with torch.autocast("cuda"):
        product = torch.ones(2, 2, device="cuda") @ torch.ones(2, 2, device="cuda")
        part("products in half", product.dtype == torch.float16)
        part("softmax in single", half.softmax(-1).dtype == torch.float32)
        norm = nn.functional.layer_norm(half, (2,))
        part("layer norm in single", norm.dtype == torch.float32)
    with torch.autocast("cpu", dtype=torch.float16):
        assert half.cpu().softmax(-1).dtype == torch.float16


@pytest.mark.claim(99)
def test_defaults_of_the_scaler(part):
    plain = torch.amp.GradScaler("cpu")
    told = torch.amp.GradScaler("cpu", init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5)
    settings = [
        (s.get_scale(), s.get_growth_factor(), s.get_backoff_factor()) for s in (plain, told)
    ]
    part("the values", settings[1] == (65536, 2, 0.5))
    part("setting them changes something", settings[0] != settings[1])


@pytest.mark.claim(100)
def test_reach_of_half(part):
    part("up to 65504", torch.finfo(torch.float16).max == 65504)
    part("nothing below 6e-5", torch.tensor(6e-8).half() == 0)
    assert torch.tensor(2e-8).half() == 0
    assert torch.tensor(7e4).half().isinf()


@pytest.mark.claim(101)
def test_step_with_an_inf(part):
    (_, other), _ = after_an_inf()
    part("the other parameter is updated", other != 1)


@pytest.mark.claim(102)
def test_step_with_an_underflow(part):
    w, other = nn.Parameter(torch.zeros(4, 4)), nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([w, other], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=1.0)
    with torch.autocast("cpu", dtype=torch.float16):
        y = torch.full((4, 4), 1e-3) @ w
    scaler.scale((y.float() * 1e-6).sum() + other.sum()).backward()
    assert w.grad.abs().sum() == 0
    scaler.step(optimizer)
    scaler.update()
    part("the step is left out", other == 1)
    part("the scale says so", scaler.get_scale() != 1)


@pytest.mark.claim(103)
def test_scale_after_an_inf(part):
    _, scale = after_an_inf()
    part("it is halved", scale == 32768)
