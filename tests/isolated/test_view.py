"""What an attempt sees, and what it does not."""

from pathlib import Path

import pytest

from gpulab.model import Device
from gpulab.rehearsal import launch

LOOK = """
import json, os, socket

def status(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(line.split(":", 1)[1].split() for line in lines if line.startswith(name + ":"))

def f():
    return {
        "uids": status("Uid"), "gids": status("Gid"), "groups": status("Groups"),
        "capabilities": [status(n)[0] for n in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")],
        "no_new_privs": status("NoNewPrivs"), "seccomp": status("Seccomp"),
        "root": sorted(os.listdir("/")), "etc": sorted(os.listdir("/etc")),
        "devices": sorted(os.listdir("/dev")), "environment": dict(os.environ),
        "processes": sorted(name for name in os.listdir("/proc") if name.isdigit()),
        "commands": [open(f"/proc/{n}/cmdline").read() for n in os.listdir("/proc") if n.isdigit()],
        "interfaces": sorted(l.split(":")[0].strip() for l in open("/proc/net/dev") if ":" in l),
        "groups_of": open("/proc/self/cgroup").read(), "host": socket.gethostname(),
        "folder": os.getcwd(), "passwd": open("/etc/passwd").read(),
        "standard_input": os.readlink("/proc/self/fd/0"),
        "descriptors": sorted(os.listdir("/proc/self/fd"), key=int),
    }
"""


@pytest.fixture(params=["cold", "warm"])
def seen(request, sandbox):
    return sandbox.ask(LOOK) if request.param == "cold" else sandbox.ask_warm(LOOK)


def test_it_is_somebody_without_any_right(seen, sandbox) -> None:
    number = str(sandbox.config.uids.first)
    assert seen["uids"] == seen["gids"] == [number] * 4
    assert seen["groups"] == []
    assert set(seen["capabilities"]) == {"0" * 16}
    assert (seen["no_new_privs"], seen["seccomp"]) == (["1"], ["2"])


def test_it_sees_the_system_its_own_folders_and_nothing_else(seen, sandbox) -> None:
    system = {"bin", "lib", "lib32", "lib64", "libx32", "sbin", "usr", "etc"}
    python = {Path(folder).parts[1] for folder in sandbox.config.folders}
    own = {"dev", "proc", "sys", "tmp", "work", "lab"}
    assert set(seen["root"]) <= system | python | own
    assert not {"shadow", "ssh", "cdi", "gpulab"} & set(seen["etc"])
    assert len(seen["passwd"].splitlines()) == 2
    assert seen["folder"] == "/work/exercise-9"
    assert seen["host"] == "attempt"
    assert seen["interfaces"] == ["lo"]
    assert not any("gpulab" in line for line in seen["groups_of"].splitlines())
    assert seen["standard_input"] == "/dev/null"
    assert len(seen["descriptors"]) == 5  # three streams, the answer, the folder that is listed


def test_it_sees_its_own_processes_only(seen) -> None:
    assert len(seen["processes"]) <= 3
    commands = " ".join(seen["commands"])
    assert "--ro-bind" not in commands  # how the sandbox was made is nobody's business


def test_devices_are_few(seen) -> None:
    plain = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "core"}
    assert set(seen["devices"]) <= plain | {"fd", "stdin", "stdout", "stderr", "console"}


def test_the_environment_is_the_attempts_own(seen) -> None:
    environment = seen["environment"]
    assert environment["HOME"] == environment["TMPDIR"] == "/tmp"  # noqa: S108 - the inside
    assert environment["USER"] == "attempt"
    assert not any(name.startswith(("PYTEST", "GPULAB", "SSH")) for name in environment)
    for folder in ("/root", str(Path.home())):
        assert folder not in environment["PATH"] or folder in str(environment["PATH"].split(":")[0])


EXISTS = """
import os
def f(paths):
    return [path for path in paths if os.path.lexists(path)]
"""


def test_nothing_of_the_host_is_there(sandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    checkout = Path(__file__).resolve().parents[2]
    # Of a checkout that holds the Python of these tests, that Python is there and nothing else.
    ours = ("checks", "tests", "src", "tasks.py", "README.md", ".git")
    places = [secret, *(checkout / name for name in ours), "/run", "/var", "/home"]
    places += ["/srv", "/boot", "/mnt", "/media", "/var/run/docker.sock", "/run/docker.sock"]
    places += ["/root/.ssh", "/root/.bashrc", "/proc/1/root/etc/shadow", "/etc/shadow"]
    assert sandbox.ask(EXISTS, [str(place) for place in places]) == []


WRITABLE = """
import os
def f():
    found = []
    for folder, folders, _ in os.walk("/"):
        if folder in ("/proc", "/sys"):
            folders.clear()
        elif os.access(folder, os.W_OK):
            found.append(folder)
            folders.clear()
    return sorted(found)
"""


def test_it_can_write_to_memory_folders_only(sandbox) -> None:
    assert sandbox.ask(WRITABLE) == ["/dev/shm", "/tmp", "/work"]  # noqa: S108 - the inside


HOSTILE = """
import os
def f():
    said = {}
    for path in ("/proc/1/environ", "/proc/1/mem", "/proc/1/fd", "/proc/kcore", "/dev/mem",
                 "/proc/sysrq-trigger", "/sys/fs/cgroup", "/dev/kmsg", "/dev/vda"):
        said[path] = os.access(path, os.R_OK) or os.access(path, os.W_OK)
    said["core_pattern"] = os.access("/proc/sys/kernel/core_pattern", os.W_OK)
    try:
        os.kill(1, 9)
        said["kill"] = True
    except PermissionError:
        pass
    return [name for name, able in said.items() if able]
"""


def test_it_reaches_neither_its_keeper_nor_the_kernel(sandbox) -> None:
    assert sandbox.ask(HOSTILE) == []


SOCKETS = """
import errno, socket
def f():
    said = {}
    for family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_VSOCK):
        try:
            socket.socket(family, socket.SOCK_DGRAM)
            said[family.name] = "made"
        except OSError as error:
            said[family.name] = errno.errorcode[error.errno]
    a, b = socket.socketpair()
    a.send(b"x")
    said["pair"] = b.recv(1) == b"x"
    return said
"""


def test_there_is_no_network(sandbox) -> None:
    said = sandbox.ask(SOCKETS)
    assert said.pop("pair") is True
    assert set(said.values()) == {"EAFNOSUPPORT"}


def test_two_attempts_are_two_users(sandbox) -> None:
    script = "import os, time\ndef f():\n    return os.getuid()\n"
    first = sandbox.launcher.prepare(sandbox.job(script).setting, ())
    second = sandbox.launcher.prepare(sandbox.job(script).setting, ())
    try:
        first.become_ready()
        second.become_ready()
        leaders = [sandbox.leader(waiting.process.pid) for waiting in (first, second)]
        uids = [Path(f"/proc/{pid}").stat().st_uid for pid in leaders]
        assert len(set(uids)) == 2
        assert 0 not in uids
    finally:
        first.close()
        second.close()


def test_the_rehearsal_device_is_there(sandbox) -> None:
    why = launch.availability(Path(sandbox.config.python))
    if why:
        pytest.skip(why)
    script = """
        import torch
        def f():
            return [torch.cuda.is_available(), torch.ones(2, device="cuda").sum().item()]
    """
    assert sandbox.ask(script, device=Device.REHEARSAL) == [True, 2.0]
