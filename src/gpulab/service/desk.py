"""What the service knows of its seats: the office they share, and a desk for each."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from datetime import UTC, datetime
from pathlib import Path

from gpulab.grading import Records
from gpulab.service import log
from gpulab.service.config import Config, Limits
from gpulab.service.shares import Share

KEPT_ACCOUNTS = 200  # of crashed checks, the newest


class Office:
    """Shares, checks under way, and the folder for what attendees must not see."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.root = Path(config.root)
        self.stopping = False
        self.checks: set[asyncio.Future[None]] = set()
        self.shares = {
            name: Share(share, config.limits.check_seconds) for name, share in config.shares.items()
        }
        self._refills: set[asyncio.Task[None]] = set()

    def refill_soon(self, share: Share) -> None:
        """Make a grading process ready in the background."""
        if not self.stopping:
            task = asyncio.ensure_future(share.refill())
            self._refills.add(task)
            task.add_done_callback(self._refilled)

    def _refilled(self, task: asyncio.Task[None]) -> None:
        self._refills.discard(task)
        if not task.cancelled() and (failure := task.exception()):
            log.error("no grading process can be started", failure=failure)

    def keep_account(self, seat: str, exercise: str, text: str) -> None:
        """Keep pytest's account of a crashed check for its author; it quotes hidden checks."""
        folder = self.config.state_folder / "crashes"
        stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
        path = folder / f"{stamp}-{seat}-{exercise}-{secrets.token_hex(3)}.txt"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            for old in sorted(folder.iterdir())[:-KEPT_ACCOUNTS]:
                with contextlib.suppress(FileNotFoundError):
                    old.unlink()
        except OSError as error:
            log.error("a crashed check's account was not kept", why=str(error))
        else:
            log.error("a check crashed", seat=seat, exercise=exercise, account=str(path))


class Desk:
    """One seat as the service sees it."""

    def __init__(self, name: str, office: Office) -> None:
        self.name, self.office = name, office
        self.share = office.shares[office.config.seats[name].share]
        self.records = Records(office.config.records_file(name), wal=True)
        self._checks = 0

    @property
    def limits(self) -> Limits:
        """The bounds of every seat."""
        return self.office.config.limits

    @property
    def level(self) -> str:
        """The level of hiding at which this seat's work is judged."""
        return "isolated" if self.share.setup.isolation else "local"

    def begin_check(self) -> bool:
        """Count one more check; False where the seat has as many as it may."""
        if self._checks >= self.limits.checks:
            return False
        self._checks += 1
        return True

    def end_check(self) -> None:
        """Count one less."""
        self._checks -= 1
