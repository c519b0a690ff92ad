"""Another root file system than the machine's: here put together of binds."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from .conftest import Sandbox


@pytest.fixture
def stack(config, tmp_path: Path) -> Iterator[Path]:
    """A tree with /usr and Python's folders of this machine, and a mark of its own."""
    root, mounted = tmp_path / "root", []
    (root / "etc").mkdir(parents=True)
    (root / "etc" / "nsswitch.conf").write_text("# the stack's own\n")
    (root / "secret").mkdir()
    for name in ("bin", "sbin", "lib", "lib64"):
        here = Path("/", name)
        if here.is_symlink():
            (root / name).symlink_to(here.readlink())
    for folder in ("/usr", *config.folders):
        place = root / folder.lstrip("/")
        place.mkdir(parents=True)
        subprocess.run(["mount", "--bind", folder, place], check=True)
        mounted.append(place)
    try:
        yield root
    finally:
        for place in reversed(mounted):
            subprocess.run(["umount", place], check=True)


def test_it_is_what_an_attempt_sees(config, stack: Path, tmp_path: Path) -> None:
    sandbox = Sandbox(replace(config, rootfs=str(stack)), tmp_path / "jobs")
    script = """
        import os
        import torch
        def f():
            with open("/etc/nsswitch.conf") as file:
                return [file.read(), os.path.exists("/secret"), os.listdir("/etc")]
    """
    text, secret, etc = sandbox.ask(script)
    assert text == "# the stack's own\n"
    assert not secret
    assert set(etc) == {"group", "hosts", "nsswitch.conf", "passwd"}


def test_a_newer_tree_is_taken_by_the_next_attempt(config, stack: Path, tmp_path: Path) -> None:
    current = tmp_path / "current"
    current.symlink_to(stack)
    sandbox = Sandbox(replace(config, rootfs=str(current)), tmp_path / "jobs")
    assert sandbox.ask("def f():\n    return 1\n") == 1
