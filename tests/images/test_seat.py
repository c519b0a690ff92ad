"""The seat really runs: Jupyter, the kernel, the commands; it is proven, moved and unpacked."""

import contextlib
import json
import os
import statistics
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

ANSWER_WITHIN = 120
STACK_PYTHON = "/opt/gpulab/stack/bin/python"


@contextlib.contextmanager
def container(docker, *options):
    """A running seat."""
    name = docker("run", "--detach", *options, "gpulab-seat:cpu").strip()
    try:
        yield name
    finally:
        docker("rm", "--force", name)


@pytest.fixture(scope="module")
def seat(built, engine_command):  # noqa: ARG001 - it must be built
    """A seat whose Jupyter answers."""
    with container(engine_command, "--network", "none", "--env", "JUPYTER_TOKEN=secret") as name:
        deadline = time.monotonic() + ANSWER_WITHIN
        command = ["docker", "exec", name, "seat-health"]
        while subprocess.run(command, capture_output=True, check=False).returncode:
            assert time.monotonic() < deadline, engine_command("logs", name)
            time.sleep(0.25)
        yield name


def run_in(seat, *command):
    return subprocess.run(
        ["docker", "exec", seat, *command], capture_output=True, text=True, check=False
    )


@pytest.mark.usefixtures("built")
def test_every_finding_of_verify_is_right(workshop):
    done = workshop.invoke("images.verify", "--stack", "cpu", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    findings = {f["what"]: f for f in json.loads(done.stdout)["cpu"]}
    left_open = {what for what, finding in findings.items() if finding["right"] is None}
    assert left_open == {"base image", "GPU smoke test"}
    assert findings["hidden checks"]["right"]
    assert "as found here" in findings["base image"]["seen"], "a stand-in never passes for the pin"


@pytest.mark.usefixtures("built")
def test_the_image_is_small_enough_and_labelled(workshop, engine_command):
    (image,) = json.loads(workshop.invoke("images.list", "--json").stdout)
    assert image["stack"] == "cpu"
    assert image["size"] <= 2.0e9
    assert "GB" in workshop.invoke("images.list").stdout
    facts = json.loads(engine_command("inspect", "gpulab-seat:cpu"))[0]["Config"]
    assert facts["User"] == "10001"
    assert facts["Labels"]["gpulab.torch"].endswith("+cpu")
    assert facts["Healthcheck"]["Test"] == ["CMD", "seat-health"]


def test_a_notebook_runs_on_the_stacks_python(seat):
    script = (
        "import jupyter_client\n"
        "manager, client = jupyter_client.manager.start_new_kernel()\n"
        "client.execute_interactive('import sys, torch; print(sys.prefix, torch.__version__)')\n"
        "manager.shutdown_kernel()\n"
    )
    done = run_in(seat, "/opt/gpulab/lab/bin/python", "-c", script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("/opt/gpulab/stack ")


def test_jupyter_wants_its_token(seat):
    script = (
        "import urllib.request, urllib.error\n"
        "address = 'http://127.0.0.1:8888/api/contents'\n"
        "for query in ('', '?token=secret'):\n"
        "    try:\n"
        "        print(urllib.request.urlopen(address + query).status)\n"
        "    except urllib.error.HTTPError as error:\n"
        "        print(error.code)\n"
    )
    assert run_in(seat, STACK_PYTHON, "-c", script).stdout.split() == ["403", "200"]


def test_the_seat_holds_no_check_and_says_so_in_one_sentence(seat):
    assert run_in(seat, "ls", "/lab/checks").returncode != 0
    done = run_in(seat, "invoke", "check", "exercise-4")
    assert done.returncode in {1, 4}
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr + done.stdout


def test_the_attendee_cannot_change_the_lab(seat):
    assert run_in(seat, "id", "-u").stdout.strip() == "10001"
    for folder in ("/lab", "/opt/gpulab", "/opt/gpulab/stack", "/etc"):
        assert run_in(seat, "touch", f"{folder}/mine").returncode != 0
    assert run_in(seat, "touch", "/home/attendee/mine").returncode == 0


def test_an_exercise_runs_on_the_seat(seat):
    done = run_in(seat, "invoke", "show", "exercise-4")
    assert done.returncode == 0, done.stderr
    assert "/home/attendee/work/exercise-4" in done.stdout


def test_the_root_file_system_is_the_images(built, unpacked):
    assert (unpacked / "etc/gpulab-image").read_text().strip() == built.id
    assert (unpacked / "home/attendee").stat().st_uid == 10001
    assert not list(unpacked.glob("**/test_fix.py"))
    command = ["chroot", "--userspec=10001:10001", str(unpacked), STACK_PYTHON, "-c"]
    script = "import torch; print(int(torch.ones(3).sum()))"
    done = subprocess.run([*command, script], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "3", done.stderr


def test_unpacking_never_overwrites(workshop, unpacked):
    done = workshop.invoke("images.unpack", "--stack", "cpu", "--to", unpacked)
    assert done.returncode == 1
    assert "exists already" in done.stderr


def first_answer(port, begun):
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/api", timeout=5).close()
        except OSError:
            assert time.monotonic() - begun < ANSWER_WITHIN
            time.sleep(0.02)
        else:
            return time.monotonic() - begun


def start_in_container(docker):
    begun = time.monotonic()
    with container(docker, "--network", "host"):
        return first_answer(8888, begun)


def start_bare(root):
    command = ["chroot", "--userspec=10001:10001", root, "/usr/bin/env", "-i"]
    command += ["HOME=/home/attendee", "LANG=C.UTF-8", f"PATH={os.environ['PATH']}"]
    command += ["/opt/gpulab/lab/bin/jupyter-lab", "--no-browser", "--port=8889"]
    begun = time.monotonic()
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            return first_answer(8889, begun)
        finally:
            process.terminate()


def test_the_container_starts_jupyter_about_as_fast_as_a_bare_start(unpacked, engine_command):
    start_bare(unpacked)  # the disk's cache is warm for both
    start_in_container(engine_command)
    bare, contained = [], []
    for _ in range(3):
        bare.append(start_bare(unpacked))
        contained.append(start_in_container(engine_command))
    ratio = statistics.median(contained) / statistics.median(bare)
    print(f"Jupyter's first answer: bare {bare}, in the container {contained}, ratio {ratio:.2f}")
    assert ratio <= 1.5


def test_saved_and_loaded_the_image_is_the_same(workshop, built, tmp_path):
    target = tmp_path / "seat.tar"
    done = workshop.invoke("images.save", "--stack", "cpu", "--to", target)
    assert done.returncode == 0, done.stderr
    note = Path(f"{target}.sha256")
    right = note.read_text()
    note.write_text("0" * 64 + right[64:])
    done = workshop.invoke("images.load", target)
    assert done.returncode == 1
    assert "differs from its sha256" in done.stderr
    note.write_text(right)
    done = workshop.invoke("images.load", target)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "gpulab-seat:cpu"
    assert json.loads(workshop.invoke("images.list", "--json").stdout)[0]["id"] == built.id
    target.unlink()


def test_loading_what_is_not_there_says_so(workshop, tmp_path):
    done = workshop.invoke("images.load", tmp_path / "none.tar")
    assert done.returncode == 1
    assert "write it with `invoke images.save`" in done.stderr


@pytest.mark.parametrize("command", ["save", "verify"])
def test_an_image_that_is_not_built_is_named(workshop, command):
    done = workshop.invoke(f"images.{command}", "--stack", "current")
    assert done.returncode == 1
    assert "invoke images.build --stack current" in done.stderr


@pytest.mark.usefixtures("built")
def test_pushing_where_nobody_answers_is_one_sentence(workshop):
    done = workshop.invoke("images.push", "--stack", "cpu", "--to", "127.0.0.1:1/gpulab-seat")
    assert done.returncode == 1
    assert "refused" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert len(json.loads(workshop.invoke("images.list", "--json").stdout)) == 1
