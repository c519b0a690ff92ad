"""A Docker Engine of the tests' own, and images that stand in for those of no registry."""

import contextlib
import os
import shutil
import subprocess
import time
from pathlib import Path

import rattler
import yaml
from stand_in_channel import PYTHON, python_packages, write_channel

from gpulab import stack
from gpulab.images import locks

CHECKOUT = Path(__file__).resolve().parents[2]
PROGRAMS = ("/usr/bin/docker", "/usr/sbin/dockerd", "/usr/sbin/debootstrap")


def obstacle():
    """Why no engine can be started here, or None."""
    if os.geteuid() != 0:
        return "only root can start a Docker Engine"
    missing = [program for program in PROGRAMS if not Path(program).exists()]
    if missing:
        return f"{', '.join(missing)} missing (Debian: apt-get install docker.io debootstrap)"
    return None


@contextlib.contextmanager
def engine(folder: Path):
    """Start an engine whose everything is below `folder`; DOCKER_HOST names it meanwhile."""
    socket, log = folder / "docker.sock", folder / "dockerd.log"
    command = ["/usr/sbin/dockerd", "--data-root", folder / "data", "--exec-root", folder / "exec"]
    command += ["--pidfile", folder / "dockerd.pid", "--host", f"unix://{socket}"]
    command += ["--storage-driver", "overlay2", "--bridge=none", "--iptables=false"]
    command += ["--ip6tables=false"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    before = {name: os.environ.get(name) for name in ("DOCKER_HOST", "PATH")}
    os.environ["DOCKER_HOST"] = f"unix://{socket}"
    os.environ["PATH"] = f"/usr/bin:{os.environ['PATH']}"  # the client that belongs to the engine
    try:
        _wait_for(process, log)
        yield
    finally:
        process.terminate()
        process.wait(60)
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        _unmount_below(folder)


def _wait_for(process, log):
    deadline = time.monotonic() + 120
    while subprocess.run(["docker", "version"], capture_output=True, check=False).returncode:
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"dockerd does not start: {log.read_text()[-2000:]}")
        time.sleep(0.2)


def _unmount_below(folder):
    """An engine leaves its network namespace mounted, which nobody could remove."""
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for mount in reversed(mounts):
        if Path(mount).is_relative_to(folder):
            subprocess.run(["umount", "--lazy", mount], check=True)


def make_tree(folder: Path) -> Path:
    """A checkout whose cpu stack is locked to a channel of small packages."""
    tree = folder / "tree"
    for part in ("images", "exercises", "checks", "src"):
        shutil.copytree(
            CHECKOUT / part, tree / part, ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
        )
    for part in ("tasks.py", "pyproject.toml"):
        shutil.copy(CHECKOUT / part, tree / part)
    pins = yaml.safe_load((tree / stack.FILE).read_text(encoding="utf-8"))
    pins["shared"]["lab"]["python"] = PYTHON
    (tree / stack.FILE).write_text(yaml.safe_dump(pins), encoding="utf-8")
    lock = write_channel(folder / "channel", python_packages())
    for name in ("cpu", locks.LAB):
        (locks.folder(tree, name) / locks.CONDA).write_text(lock, encoding="utf-8")
    return tree


def import_bases(folder: Path, tree: Path) -> None:
    """Give the engine stand-ins for the cpu stack's base and for micromamba, by their names."""
    pins = stack.load(tree)
    root = folder / "rootfs"
    if not root.exists():
        include = "--include=python3,python3-venv"
        command = ["/usr/sbin/debootstrap", "--variant=minbase", include, "bookworm", root]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    base = pins.find("cpu").base.name
    with subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE) as tar:
        command = ["docker", "import", "--change", 'CMD ["bash"]', "-", base]
        subprocess.run(command, stdin=tar.stdout, check=True, stdout=subprocess.DEVNULL)
    context = folder / "micromamba"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(rattler.__file__).parent, context / "rattler", ignore=ignore)
    shutil.copy(Path(__file__).with_name("micromamba"), context / "micromamba")
    (context / "Dockerfile").write_text(
        f"FROM {base}\nCOPY rattler /opt/stand-in/rattler\nCOPY micromamba /usr/bin/micromamba\n"
    )
    command = ["docker", "build", "--quiet", "--tag", pins.shared.micromamba.name, context]
    environment = {**os.environ, "DOCKER_BUILDKIT": "1"}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
