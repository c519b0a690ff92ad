"""The level `isolated`: attempts in bubblewrap, started by root."""

from gpulab.attempts.sandbox.config import SandboxConfig, read
from gpulab.attempts.sandbox.launcher import SandboxLauncher

__all__ = ["SandboxConfig", "SandboxLauncher", "read"]
