"""Imitate the weld spots of a seam with two networks that learn from each other."""

import math

import torch
from torch import nn
from torch.nn import functional as F

NOISE, BATCH = 4, 128
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make_spots(count=512, seed=0):
    """Weld spots (x, y in cm) on a seam that runs once around the plate."""
    generator = torch.Generator().manual_seed(seed)
    angles = 2 * math.pi * torch.rand(count, generator=generator)
    seam = torch.stack([4 * angles.cos(), 2 * angles.sin()], dim=1)
    return (seam + 0.1 * torch.randn(count, 2, generator=generator)).to(DEVICE)


class Generator(nn.Module):
    """Makes spots out of noise."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(NOISE, 64),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(64, 2),
        )
        self.register_buffer("reach", torch.tensor([5.0, 3.0]))  # half the plate, in cm

    def forward(self, noise):
        return self.reach * torch.tanh(self.layers(noise))


class Critic(nn.Module):
    """Scores spots: high for real ones, low for made ones."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(2, 64),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(64, 64),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(64, 1),
        )

    def forward(self, spots):
        return self.layers(spots)


def build_generator():
    return Generator().to(DEVICE)


def build_critic():
    return Critic().to(DEVICE)


def critic_loss(real_scores, made_scores):
    """Small when the critic tells real from made."""
    return F.softplus(-real_scores).mean() + F.softplus(made_scores).mean()


def generator_loss(made_scores):
    """Small when the critic takes made for real."""
    return F.softplus(-made_scores).mean()


def train_step(generator, critic, generator_optimizer, critic_optimizer, real, noise):
    """Let critic and generator take one step each; return their losses."""
    made = generator(noise).detach()
    real_scores, made_scores = critic(real), critic(made)
    loss_of_critic = critic_loss(real_scores, made_scores)

    critic_optimizer.zero_grad()
    loss_of_critic.backward()
    critic_optimizer.step()

    loss_of_generator = generator_loss(critic(made))
    generator_optimizer.zero_grad()
    loss_of_generator.backward()
    generator_optimizer.step()
    return loss_of_critic.item(), loss_of_generator.item()


def main():
    torch.autograd.set_detect_anomaly(True)
    torch.manual_seed(0)
    spots = make_spots()
    generator, critic = build_generator(), build_critic()
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=4e-3, betas=(0.5, 0.99))
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=8e-3, betas=(0.5, 0.99))
    for epoch in range(1, 31):
        for real in spots[torch.randperm(len(spots)).to(DEVICE)].split(BATCH):
            noise = torch.randn(len(real), NOISE).to(DEVICE)
            losses = train_step(
                generator, critic, generator_optimizer, critic_optimizer, real, noise
            )
        if epoch % 10 == 0:
            with torch.no_grad():
                made = generator(torch.randn(1000, NOISE).to(DEVICE))
            miss = ((made / torch.tensor([4.0, 2.0], device=DEVICE)).norm(dim=1) - 1).abs().mean()
            print(f"epoch {epoch}: losses {losses[0]:.2f} and {losses[1]:.2f}, miss {miss:.2f}")


if __name__ == "__main__":
    main()
