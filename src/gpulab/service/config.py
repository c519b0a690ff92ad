"""The service's configuration, a TOML file that only root may write."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from gpulab import tables
from gpulab.model import LabError

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")  # a seat's name is also its folder's


class LogLevel(StrEnum):
    """How much is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Share:
    """One GPU share, on which one check runs at a time.

    Attributes:
        isolation: the sandbox's configuration; None judges at level `local`.
        devices: CUDA_VISIBLE_DEVICES for its attempts; None leaves it as the service has it.
        warm: keep attempts with torch imported at the ready.
    """

    isolation: str | None = None
    devices: str | None = None
    warm: bool = True


@dataclass(frozen=True)
class Seat:
    """One seat: its socket, who may connect to it, and the share that judges its work."""

    socket: str
    uid: int
    gid: int
    share: str


@dataclass(frozen=True)
class Limits:
    """Bounds that keep one seat from spoiling the service for the others.

    Attributes:
        checks: requests for a check that a seat may have open: sending, waiting, running.
        connections: open connections of a seat.
        upload_mib: the largest request for a check.
        upload_seconds: time to send one request, headers and body each.
        check_seconds: time of one check run, the wait not counted.
        grace_seconds: time that running checks get when the service is stopped.
    """

    checks: int = 3
    connections: int = 16
    upload_mib: int = 66
    upload_seconds: float = 30.0
    check_seconds: float = 900.0
    grace_seconds: float = 20.0


@dataclass(frozen=True)
class Config:
    """grader.toml."""

    root: str
    state: str
    shares: dict[str, Share]
    seats: dict[str, Seat]
    limits: Limits = field(default_factory=Limits)
    log_level: LogLevel = LogLevel.INFO

    @property
    def state_folder(self) -> Path:
        """Where records, crash accounts and scratch folders are."""
        return Path(self.state)

    def records_file(self, seat: str) -> Path:
        """The record of one seat: a file each, so that one can be reset or lost alone."""
        return self.state_folder / "seats" / seat / "records.sqlite"


def read(path: Path) -> Config:
    """Read and validate a configuration.

    Raises:
        LabError: it cannot be used; the message names the key.
    """
    config = tables.read(path, Config)
    for name in (*config.shares, *config.seats):
        if not _NAME.fullmatch(name):
            raise LabError(f"{path}: {name!r} is no name; use a-z, 0-9 and hyphens.")
    for name, seat in config.seats.items():
        if seat.share not in config.shares:
            raise LabError(f"{path}: seat {name} names the share {seat.share!r}; there is none.")
    sockets = [seat.socket for seat in config.seats.values()]
    if len(set(sockets)) != len(sockets):
        raise LabError(f"{path}: two seats have the same socket; a socket is a seat's identity.")
    places = [config.root, config.state, *sockets]
    places += [share.isolation for share in config.shares.values() if share.isolation]
    for place in places:
        if not Path(place).is_absolute():
            raise LabError(f"{path}: {place!r} must be an absolute path.")
    for key, limit in vars(config.limits).items():
        if limit <= 0:
            raise LabError(f"{path}: limits.{key} must be more than 0.")
    return config
