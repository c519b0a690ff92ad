"""How attempts are shut in: a TOML file that only root may write."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass, field
from pathlib import Path

from gpulab import tables
from gpulab.model import LabError

LEAST_MIB = 64


@dataclass(frozen=True)
class Uids:
    """User numbers for attempts, which no account of the machine has."""

    first: int = 61_000
    count: int = 64

    @property
    def numbers(self) -> range:
        """All of them."""
        return range(self.first, self.first + self.count)


@dataclass(frozen=True)
class Bounds:
    """What one attempt may have, all its processes together.

    Attributes:
        memory_mib: memory, the files of the next three included.
        shm_mib: /dev/shm, which loaders use.
        tmp_mib: /tmp.
        work_mib: the work folder and what it was given, and what is brought back of it.
        pids: processes and threads.
        cpus: cores.
    """

    memory_mib: int = 8192
    shm_mib: int = 1024
    tmp_mib: int = 1024
    work_mib: int = 1024
    pids: int = 1024
    cpus: float = 4.0


@dataclass(frozen=True)
class SandboxConfig:
    """isolation.toml.

    Attributes:
        python: the Python of attempts, by its path inside the root file system.
        rootfs: the root file system that attempts see, or "/" for this machine's own.
        folders: what they see of it besides /usr and the like: Python's own folders.
        gpu: a device of the machine's CDI specification, such as nvidia.com/gpu=0.
        cgroup: the control group below which each attempt has its own.
        locks: folder for the locks of accounts.
    """

    python: str
    rootfs: str = "/"
    folders: tuple[str, ...] = ()
    gpu: str | None = None
    cgroup: str = "gpulab-attempts"
    locks: str = "/run/gpulab/accounts"
    uids: Uids = field(default_factory=Uids)
    bounds: Bounds = field(default_factory=Bounds)


def read(path: Path) -> SandboxConfig:
    """Read and validate a configuration.

    Raises:
        LabError: it cannot be used; the message names the key.
    """
    config = tables.read(path, SandboxConfig)
    _refuse_foreign_writers(path)
    for place in (config.python, config.rootfs, config.locks, *config.folders):
        if not Path(place).is_absolute() or ".." in Path(place).parts:
            raise LabError(f"{path}: {place!r} must be an absolute path.", code=4)
    if Path(config.cgroup).is_absolute() or ".." in Path(config.cgroup).parts:
        raise LabError(f"{path}: `cgroup` must be a relative path.", code=4)
    if not Path(config.rootfs).is_dir():
        raise LabError(f"{path}: `rootfs` is {config.rootfs}, which is no folder.", code=4)
    if config.uids.first < 1 or config.uids.count < 1:
        raise LabError(f"{path}: `uids` must be numbers above 0; root runs no attempt.", code=4)
    for account in pwd.getpwall():
        if account.pw_uid in config.uids.numbers:
            raise LabError(f"{path}: `uids` holds {account.pw_name}'s number; move it.", code=4)
    for key, value in vars(config.bounds).items():
        if value <= 0 or (key == "memory_mib" and value < LEAST_MIB):
            raise LabError(f"{path}: `bounds.{key}` is too small.", code=4)
    return config


def _refuse_foreign_writers(path: Path) -> None:
    """Whoever writes this file decides what runs as root."""
    state = path.stat()
    if os.geteuid() == 0 and (state.st_uid != 0 or state.st_mode & 0o022):
        raise LabError(f"{path} must be root's, and writable by root alone.", code=4)
