"""What `invoke` runs; the commands live in gpulab.tasks."""

from gpulab.tasks import namespace

__all__ = ["namespace"]
