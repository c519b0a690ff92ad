"""grader.toml is read strictly."""

from pathlib import Path

import pytest

from gpulab.model import LabError
from gpulab.service import config

GOOD = """
root = "/opt/gpulab"
state = "/var/lib/gpulab"
[shares.gpu0]
isolation = "/etc/gpulab/isolation.toml"
devices = "0"
[seats.seat-01]
socket = "/run/gpulab/seats/seat-01/grader.sock"
uid = 2001
gid = 2001
share = "gpu0"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "grader.toml"


def test_a_good_one(path: Path) -> None:
    path.write_text(GOOD)
    found = config.read(path)
    assert found.seats["seat-01"].uid == 2001
    assert found.limits.checks == 3
    assert found.records_file("seat-01") == Path("/var/lib/gpulab/seats/seat-01/records.sqlite")


SECOND = '[seats.b]\nsocket = "/run/gpulab/seats/seat-01/grader.sock"\nuid = 1\ngid = 1\n'


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('share = "gpu0"', 'share = "gpu1"', "gpu1"),
        ("uid = 2001", 'uid = "root"', "uid"),
        ("gid = 2001\n", "", "gid"),
        ("devices", "device", "devices"),
        ("[seats.seat-01]", '[seats."../x"]', "../x"),
        ("[shares.gpu0]", "[shares.GPU_0]", "GPU_0"),
        ('"/run/gpulab', '"run/gpulab', "absolute"),
        ('"/etc/gpulab', '"gpulab', "absolute"),
        ('state = "/var', 'state = "var', "absolute"),
        ("[shares", "log_level = 'loud'\n[shares", "log_level"),
        ("[seats", "[limits]\nchecks = 0\n[seats", "checks"),
        ("[seats", "[limits]\nupload_seconds = -1\n[seats", "upload_seconds"),
        ("[seats.seat-01]", SECOND + 'share = "gpu0"\n[seats.seat-01]', "same socket"),
    ],
)
def test_one_sentence_for_a_mistake(path: Path, old: str, new: str, named: str) -> None:
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(LabError, match=named) as caught:
        config.read(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
