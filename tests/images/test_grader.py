"""A check from inside the seat: judged by a grader outside, on the seat's own root file system."""

import contextlib
import json
import os
import subprocess
import sys
import time

import pytest
import stand_in_docker

PATIENCE = 120
UID = 10001


def write_configuration(folder, tree, rootfs):
    isolation, grader = folder / "isolation.toml", folder / "grader.toml"
    isolation.write_text(
        f"""
python = "/opt/gpulab/stack/bin/python"
rootfs = "{rootfs}"
folders = ["/opt/gpulab"]
cgroup = "gpulab-images-tests"
locks = "{folder / "locks"}"
[bounds]
memory_mib = 4096
cpus = 2.0
"""
    )
    grader.write_text(
        f"""
root = "{tree}"
state = "{folder / "state"}"
[shares.cpu]
isolation = "{isolation}"
warm = false
[seats.seat-1]
socket = "{folder / "socket" / "grader.sock"}"
share = "cpu"
uid = {UID}
gid = {UID}
"""
    )
    for path in (isolation, grader):
        path.chmod(0o600)
    return grader


@contextlib.contextmanager
def grader_service(folder, tree, rootfs):
    """The grader on the host; yields the folder of the seat's socket."""
    grader, log = write_configuration(folder, tree, rootfs), folder / "log"
    place = folder / "socket"
    command = [sys.executable, "-m", "gpulab.service", "--config", grader]
    environment = {**os.environ, "GPULAB_STACK": "cpu"}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    try:
        deadline = time.monotonic() + PATIENCE
        while not (place / "grader.sock").exists():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield place
    finally:
        process.terminate()
        process.wait(PATIENCE)


@pytest.fixture
def seat(workshop, unpacked, tmp_path, engine_command):
    """A seat with a grader behind its socket."""
    if not os.access("/usr/bin/bwrap", os.X_OK):
        pytest.skip("bwrap is missing (Debian: apt-get install bubblewrap)")
    with grader_service(tmp_path, workshop.tree, unpacked) as place:
        volume = f"{place}:/run/gpulab"
        options = ["--detach", "--network", "none", "--volume", volume, "gpulab-seat:cpu"]
        name = engine_command("run", *options).strip()
        try:
            yield name
        finally:
            engine_command("rm", "--force", name)


def check(seat):
    command = ["docker", "exec", seat, "invoke", "check", "exercise-4", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_a_check_in_the_seat_is_judged_outside_it(seat, engine_command):
    code, grade = check(seat)
    assert (code, grade["verdict"], grade["level"]) == (2, "not-fixed", "isolated")
    solutions = stand_in_docker.CHECKOUT / "checks" / "exercise-4" / "solutions"
    solution = min(solutions.iterdir()) / "train.py"
    command = ["docker", "exec", "--interactive", seat, "sh", "-c"]
    command += ["cat >/home/attendee/work/exercise-4/train.py"]
    subprocess.run(command, input=solution.read_bytes(), check=True)
    code, grade = check(seat)
    assert (code, grade["verdict"], grade["level"]) == (0, "fixed", "isolated"), grade
    assert grade["hardware"]["torch"].endswith("+cpu")
    assert grade["hardware"]["stack"] == "cpu"
    assert "test_fix" not in engine_command("exec", seat, "sh", "-c", "ls -R /run/gpulab /lab")
