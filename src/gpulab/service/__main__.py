"""The grader as a service.

    python -m gpulab.service --config /etc/gpulab/grader.toml            serve
    python -m gpulab.service --config /etc/gpulab/grader.toml --export   every seat's record, JSON
    python -m gpulab.service --config /etc/gpulab/grader.toml --verify   read the configuration

SIGTERM stops it: running checks get some seconds, waiting ones are told. SIGHUP replaces the
grading processes that wait, after an upgrade.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path

from gpulab.catalogue import Catalogue, load_checks
from gpulab.grading import Records, machine
from gpulab.grading.means import Plan, made_ready
from gpulab.model import LabError
from gpulab.service import config as configuration
from gpulab.service import log
from gpulab.service.config import Config


def export(config: Config) -> None:
    """Print every seat's record."""
    separator = "{"
    for name in config.seats:
        records = Records(config.records_file(name), wal=True)
        head = json.dumps({"hints": records.hint_times()}).removesuffix("}")
        print(f'{separator}{json.dumps(name)}: {head}, "grades": [', end="")
        for page in records.pages():
            print(page, end="")
        print("]}", end="")
        separator = ",\n"
    print("}" if config.seats else "{}")


def try_attempts(isolation: Path | None) -> None:
    """Make an attempt, so that what is wrong is found now and not by the first attendee.

    Raises:
        LabError: attempts cannot be made this way here.
    """
    with made_ready(Plan(isolation)) as means:
        facts = machine.look_at_python(means.python, Path(__file__), means.launcher)
    if facts.torch is None:
        raise LabError(f"{means.python} has no torch; install the stack's there.", code=4)


def serve(config: Config) -> None:
    """Serve until told to stop.

    Raises:
        LabError: the exercises, their checks, the sandbox or a socket cannot be used.
    """
    from gpulab.service import server  # noqa: PLC0415 - tornado is needed only to serve

    root = Path(config.root)
    for exercise in Catalogue(root):
        load_checks(root, exercise)
    log.configure(config.log_level)
    with server.only_one(config.state_folder):
        for isolation in {share.isolation for share in config.shares.values()}:
            try_attempts(Path(isolation) if isolation else None)
        asyncio.run(server.serve(config))


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m gpulab.service",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--config", type=Path, required=True)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--export", action="store_true", help="print every seat's record")
    what.add_argument("--verify", action="store_true", help="read the configuration, no more")
    given = parser.parse_args()
    try:
        config = configuration.read(given.config)
        if given.export:
            export(config)
        elif not given.verify:
            serve(config)
    except LabError as error:
        print(error, file=sys.stderr)
        return error.code
    return 0


if __name__ == "__main__":
    sys.exit(main())
