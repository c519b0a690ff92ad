"""What an attempt sees: bubblewrap's arguments and the environment inside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gpulab.attempts.job import CHILD, Setting
from gpulab.attempts.sandbox.cdi import Gpu
from gpulab.attempts.sandbox.config import SandboxConfig
from gpulab.attempts.sandbox.stage import INSIDE
from gpulab.model import Device
from gpulab.rehearsal import launch as rehearsal
from gpulab.rehearsal.site.gpulab_rehearsal import settings as rehearsal_settings

MIB = 1 << 20
LAB = Path("/lab")  # what of ours an attempt sees
CHILD_INSIDE, SITE_INSIDE, STUB_INSIDE = LAB / "child.py", LAB / "rehearsal", LAB / "stub.so"
DRIVER = "/nvidia"  # driver files, apart: the root file system is read-only and has no place
SYSTEM = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "nsswitch.conf")
SYSFS = ("/sys/devices/system/cpu", "/sys/devices/system/node")
SYSFS_OF_GPUS = ("/sys/bus", "/sys/class", "/sys/dev", "/sys/devices")
# Variables that name places outside.
PLACES = ("PATH", "HOME", "USER", "LOGNAME", "LD_LIBRARY_PATH", "XDG_CACHE_HOME", "VIRTUAL_ENV")
APART = ("pid", "net", "ipc", "uts", "cgroup")
TO_BECOME_ANOTHER = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")


class View:
    """The inside of one sandbox.

    Attributes:
        environment: the variables of the attempt.
        texts: small files that exist only inside, by path.
    """

    def __init__(
        self, config: SandboxConfig, gpu: Gpu | None, setting: Setting, number: int
    ) -> None:
        self._config, self._setting = config, setting
        self._gpu = gpu if setting.device is Device.CUDA else None
        self.environment = self._environment()
        account = f"attempt:x:{number}:{number}:attempt:/tmp:/bin/sh\n"
        self.texts = {
            "/etc/passwd": f"root:x:0:0:root:/:/bin/sh\n{account}".encode(),
            "/etc/group": f"root:x:0:\nattempt:x:{number}:\n".encode(),
            "/etc/hosts": b"127.0.0.1 localhost\n",
            str(CHILD_INSIDE): CHILD.read_bytes(),
        }

    def arguments(self, texts: dict[str, int]) -> list[str]:
        """Bubblewrap's arguments; `texts` are descriptors of the texts by path."""
        words = [f"--unshare-{kind}" for kind in APART]
        words += ["--die-with-parent", "--new-session", "--hostname", "attempt", "--clearenv"]
        words += ["--cap-drop", "ALL"]
        for capability in TO_BECOME_ANOTHER:  # setpriv gives them up at once
            words += ["--cap-add", capability]
        for name, value in self.environment.items():
            words += ["--setenv", name, value]
        words += [*self._root(), *self._memory_folders(), *self._folders(), *self._ours()]
        words += self._gpu_files() if self._gpu else []
        for place, fd in texts.items():
            words += [*_parents(place), "--perms", "0644", "--ro-bind-data", str(fd), place]
        return [*words, "--remount-ro", "/", "--chdir", "/"]

    def _environment(self) -> dict[str, str]:
        given = self._setting.environment()
        kept = {name: value for name, value in given.items() if name not in PLACES}
        kept |= {
            "PATH": f"{self._setting.python.parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": "/tmp",  # noqa: S108 - the attempt's own
            "USER": "attempt",
            "LOGNAME": "attempt",
            "TMPDIR": "/tmp",  # noqa: S108
        }
        if self._setting.device is Device.REHEARSAL:
            kept["PYTHONPATH"] = str(SITE_INSIDE)
            kept[rehearsal_settings.STUB] = str(STUB_INSIDE)
        if self._gpu:
            kept.pop("CUDA_VISIBLE_DEVICES", None)  # it counts the GPUs outside
            kept |= self._gpu.environment
            kept["LD_LIBRARY_PATH"] = ":".join(DRIVER + place for place in self._gpu.libraries)
        return kept

    def _root(self) -> Iterator[str]:
        root = Path(self._config.rootfs).resolve()
        for name in SYSTEM:
            place = root / name
            if place.is_symlink():
                yield from ("--symlink", str(place.readlink()), f"/{name}")
            elif place.is_dir():
                yield from _read_only(place, f"/{name}")
        for name in ETC:
            yield from _read_only(root / "etc" / name, f"/etc/{name}", maybe=True)

    def _folders(self) -> Iterator[str]:
        """After the folders in memory: a Python may lie below /tmp."""
        root = Path(self._config.rootfs).resolve()
        for folder in self._config.folders:
            if Path(folder).parts[1] not in SYSTEM:
                yield from _read_only(root / folder.lstrip("/"), folder)

    def _memory_folders(self) -> Iterator[str]:
        bounds = self._config.bounds
        yield from ("--proc", "/proc", "--dev", "/dev")
        shm = self._setting.shm_bytes or bounds.shm_mib * MIB
        sizes = {"/dev/shm": shm, "/tmp": bounds.tmp_mib * MIB, str(INSIDE): bounds.work_mib * MIB}  # noqa: S108
        for place, size in sizes.items():
            yield from ("--perms", "1777", "--size", str(size), "--tmpfs", place)
        for place in SYSFS_OF_GPUS if self._gpu else SYSFS:
            yield from _read_only(Path(place), place, maybe=True)

    def _ours(self) -> Iterator[str]:
        if self._setting.device is Device.REHEARSAL:
            yield from _read_only(rehearsal.SITE, str(SITE_INSIDE))
            yield from _read_only(rehearsal.compiled_stub(), str(STUB_INSIDE))

    def _gpu_files(self) -> Iterator[str]:
        if self._gpu is None:
            return
        for here, inside in self._gpu.nodes:
            yield from ("--dev-bind", here, inside)
        for here, place in self._gpu.files:
            yield from _read_only(Path(here), DRIVER + place)
        for target, place in self._gpu.links:
            yield from (*_parents(DRIVER + place), "--symlink", target, DRIVER + place)


def _read_only(here: Path, inside: str, *, maybe: bool = False) -> Iterator[str]:
    yield from _parents(inside)
    yield from ("--ro-bind-try" if maybe else "--ro-bind", str(here), inside)


def _parents(place: str) -> Iterator[str]:
    """Folders above, for all to enter; bubblewrap's own would be root's alone."""
    for folder in reversed(Path(place).parents[:-1]):
        yield from ("--perms", "0755", "--dir", str(folder))
