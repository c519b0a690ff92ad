"""Runs inside the attempt: where two training steps lead generator and critic."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

RATE = 0.2
ORDERS = ("together", "critic first", "generator first")

Batches = list[torch.Tensor]
Changes = list[dict[str, torch.Tensor]]


def steps(script: Any, seed: int, reals: Batches, noises: Batches) -> dict[str, Any]:
    """What both networks say with fresh weights, and how each training step changes them."""
    generator, critic = networks(script, seed)
    device = next(critic.parameters()).device
    with torch.no_grad():
        said = {"made": generator(noises[0].to(device)), "scores": critic(reals[0].to(device))}
    return {**said, "changes": walk(script, seed, reals, noises, script.train_step)}


def expected(script: Any, seed: int, reals: Batches, noises: Batches) -> dict[str, Any]:
    """The same, each network following its own loss, for every order of their steps."""

    def walked(order: str) -> Changes:
        return walk(script, seed, reals, noises, partial(step, script, order))

    return {**steps(script, seed, reals, noises), "orders": {name: walked(name) for name in ORDERS}}


def networks(script: Any, seed: int) -> tuple[Any, Any]:
    """Generator and critic with fresh weights, each drawn for its name."""
    pair = script.build_generator(), script.build_critic()
    for number, network in enumerate(pair):
        for name, weight in network.named_parameters():
            generator = torch.Generator().manual_seed(seed + number + zlib.crc32(name.encode()))
            with torch.no_grad():
                weight.copy_(0.3 * torch.randn(weight.shape, generator=generator))
    return pair


def walk(
    script: Any, seed: int, reals: Batches, noises: Batches, train_step: Callable[..., Any]
) -> Changes:
    """How all weights change in each step under plain gradient descent."""
    generator, critic = networks(script, seed)
    optimizers = [torch.optim.SGD(net.parameters(), lr=RATE) for net in (generator, critic)]
    device = next(critic.parameters()).device
    changes = []
    for real, noise in zip(reals, noises):
        before = weights(generator, critic)
        train_step(generator, critic, *optimizers, real.to(device), noise.to(device))
        after = weights(generator, critic)
        changes.append({name: after[name] - before[name] for name in before})
    return changes


def weights(generator: Any, critic: Any) -> dict[str, torch.Tensor]:
    """A copy of all weights by name."""
    return {
        f"{role}.{name}": weight.detach().clone()
        for role, network in (("generator", generator), ("critic", critic))
        for name, weight in network.named_parameters()
    }


def step(script: Any, order: str, generator: Any, critic: Any, *rest: Any) -> None:
    """One step of both, taking what `train_step` takes."""
    generator_optimizer, critic_optimizer, real, noise = rest

    def generator_learns() -> None:
        learn(generator, script.generator_loss(critic(generator(noise))))

    def critic_learns() -> None:
        learn(critic, script.critic_loss(critic(real), critic(generator(noise))))

    turns = [(generator_learns, generator_optimizer), (critic_learns, critic_optimizer)]
    if order == "together":
        for learns, _ in turns:
            learns()
        for _, optimizer in turns:
            optimizer.step()
        return
    for learns, optimizer in turns if order == "generator first" else reversed(turns):
        learns()
        optimizer.step()


def learn(network: Any, loss: torch.Tensor) -> None:
    """Give each weight of one network the gradient of the loss."""
    parameters = list(network.parameters())
    for weight, grad in zip(parameters, torch.autograd.grad(loss, parameters)):
        weight.grad = grad
