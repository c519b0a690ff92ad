"""Control groups: version 1 and 2, imitated by plain folders."""

from pathlib import Path

import pytest

from gpulab.attempts.sandbox.cgroups import Group, Quota
from gpulab.model import LabError

QUOTA = Quota(memory=1 << 30, pids=64, cpus=1.5)
VERSION_1 = {
    "memory": ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.oom_control"],
    "pids": ["pids.max"],
    "cpu": ["cpu.cfs_period_us", "cpu.cfs_quota_us", "cpu.shares"],
}
VERSION_2 = ["memory.max", "memory.swap.max", "pids.max", "cpu.max", "cpu.weight", "memory.events"]
NAME = "lab/attempt-1"


def offer(folder: Path, names: list[str]) -> None:
    """What the kernel puts into a group as it is made."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ["cgroup.procs", *names]:
        (folder / name).touch()


def version_1(mounted: Path) -> Path:
    for kind, names in VERSION_1.items():
        offer(mounted / kind, [])
        offer(mounted / kind / NAME, names)
    return mounted


def version_2(mounted: Path) -> Path:
    offer(mounted, ["cgroup.controllers", "cgroup.subtree_control"])
    offer(mounted / "lab", ["cgroup.subtree_control"])
    offer(mounted / NAME, VERSION_2)
    return mounted


def test_version_1(tmp_path: Path) -> None:
    group = Group(NAME, QUOTA, version_1(tmp_path))
    values = {path.name: path.read_text() for path in tmp_path.rglob("*.*_*") if path.is_file()}
    assert values["memory.limit_in_bytes"] == values["memory.memsw.limit_in_bytes"] == str(1 << 30)
    assert (values["cpu.cfs_quota_us"], values["cpu.cfs_period_us"]) == ("150000", "100000")
    assert (tmp_path / "pids" / NAME / "pids.max").read_text() == "64"
    assert group.entrances == [
        tmp_path / kind / NAME / "cgroup.procs" for kind in ("memory", "pids", "cpu")
    ]


def test_version_2(tmp_path: Path) -> None:
    group = Group(NAME, QUOTA, version_2(tmp_path))
    folder = tmp_path / NAME
    found = {name: (folder / name).read_text() for name in VERSION_2[:4]}
    assert found == {
        "memory.max": str(1 << 30),
        "memory.swap.max": "0",
        "pids.max": "64",
        "cpu.max": "150000 100000",
    }
    assert group.entrances == [folder / "cgroup.procs"]
    for parent in (tmp_path, tmp_path / "lab"):
        assert (parent / "cgroup.subtree_control").read_text() == "+memory +pids +cpu"


def test_who_waits_stands_back(tmp_path: Path) -> None:
    first = Group(NAME, QUOTA, version_1(tmp_path / "1"))
    second = Group(NAME, QUOTA, version_2(tmp_path / "2"))
    shares = tmp_path / "1" / "cpu" / NAME / "cpu.shares"
    weight = tmp_path / "2" / NAME / "cpu.weight"
    assert (shares.read_text(), weight.read_text()) == ("10", "1")
    first.come_forward()
    second.come_forward()
    assert (shares.read_text(), weight.read_text()) == ("1000", "100")  # about the kernel's own


def test_who_was_killed_for_memory(tmp_path: Path) -> None:
    first = Group(NAME, QUOTA, version_1(tmp_path / "1"))
    second = Group(NAME, QUOTA, version_2(tmp_path / "2"))
    assert not first.killed_for_memory()
    assert not second.killed_for_memory()
    control = tmp_path / "1" / "memory" / NAME / "memory.oom_control"
    control.write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
    (tmp_path / "2" / NAME / "memory.events").write_text("low 0\nmax 3\noom 1\noom_kill 1\n")
    assert first.killed_for_memory()
    assert second.killed_for_memory()


@pytest.mark.parametrize("missing", ["memory.max", "pids.max", "cpu.max"])
def test_a_limit_that_is_not_offered_is_refused(tmp_path: Path, missing: str, monkeypatch) -> None:
    version_2(tmp_path)
    (tmp_path / NAME / missing).unlink()
    monkeypatch.setattr(Group, "remove", lambda _: None)  # a plain folder is not empty
    with pytest.raises(LabError, match=missing) as refused:
        Group(NAME, QUOTA, tmp_path)
    assert refused.value.code == 4


def test_no_control_groups_at_all(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="not mounted"):
        Group(NAME, QUOTA, tmp_path)


def test_it_goes_when_it_is_empty(tmp_path: Path) -> None:
    group = Group(NAME, QUOTA, version_2(tmp_path))
    for path in (tmp_path / NAME).iterdir():
        path.unlink()
    group.remove()
    group.remove()
    assert not (tmp_path / NAME).exists()
