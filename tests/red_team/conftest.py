"""Attacks, a place to try them, and which of them to try."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

collect_ignore = ["bodies", "target"]  # attacks, one of them on whoever collects tests

sys.path.insert(0, str(Path(__file__).parent))

from arena import Arena  # noqa: E402

from gpulab.attempts.sandbox import SandboxConfig  # noqa: E402
from gpulab.attempts.sandbox.config import Bounds, Uids  # noqa: E402


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--full", action="store_true", help="at the level local, too, and over right submissions"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("full") and not config.getoption("--full", default=False):
            item.add_marker(pytest.mark.skip(reason="--full runs it"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "full: runs with --full only")


@pytest.fixture(scope="session")
def config(tmp_path_factory: pytest.TempPathFactory) -> SandboxConfig:
    """This machine as the root file system, and the Python of these tests."""
    if os.geteuid() != 0 or not shutil.which("bwrap"):
        pytest.skip("needs root and bubblewrap")
    return SandboxConfig(
        python=sys.executable,
        folders=(sys.prefix, sys.base_prefix),
        cgroup="gpulab-red-team",
        locks=str(tmp_path_factory.mktemp("locks")),
        uids=Uids(first=62_000),  # others than those of tests/isolated, which may run meanwhile
        bounds=Bounds(memory_mib=1024, shm_mib=64, tmp_mib=64, work_mib=64, pids=128, cpus=2.0),
    )


@pytest.fixture(scope="session")
def isolation(config: SandboxConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("etc") / "isolation.toml"
    table = asdict(config)
    inner = {key: table.pop(key) for key in ("uids", "bounds")}
    lines = [f"{key} = {json.dumps(value)}" for key, value in table.items() if value is not None]
    for name, values in inner.items():
        lines += [f"[{name}]", *(f"{key} = {value}" for key, value in values.items())]
    path.write_text("\n".join(lines), encoding="utf-8")
    path.chmod(0o600)
    return path


@pytest.fixture
def isolated(isolation: Path, config: SandboxConfig, tmp_path: Path) -> Iterator[Arena]:
    """An arena at the level `isolated`."""
    with Arena(tmp_path, isolation, config.uids.numbers) as arena:
        yield arena


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Arena]:
    """An arena at the level `local`."""
    with Arena(tmp_path, None, range(0)) as arena:
        yield arena
