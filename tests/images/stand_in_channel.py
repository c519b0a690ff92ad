"""A conda channel of small packages, made on the spot, with its locks."""

import asyncio
import ensurepip
import hashlib
import io
import json
import tarfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import rattler.index

from gpulab.images import locks

PYTHON = "3.11"
BUILD = "0"


@dataclass
class Package:
    """One small package: `files` by path, `links` by path with their targets."""

    name: str
    version: str
    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    depends: tuple[str, ...] = ()

    def write(self, folder: Path) -> Path:
        """Write the archive below the channel's folder."""
        archive = folder / locks.PLATFORM / f"{self.name}-{self.version}-{BUILD}.tar.bz2"
        archive.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive, "w:bz2") as tar:
            for path, content in (self.files | self._facts()).items():
                member = tarfile.TarInfo(path)
                member.size = len(content)
                member.mode = 0o755 if path.startswith("bin/") else 0o644
                tar.addfile(member, io.BytesIO(content))
            for path, target in self.links.items():
                member = tarfile.TarInfo(path)
                member.type, member.linkname = tarfile.SYMTYPE, target
                tar.addfile(member)
        return archive

    def _facts(self) -> dict[str, bytes]:
        index = {
            "name": self.name,
            "version": self.version,
            "build": BUILD,
            "build_number": 0,
            "depends": list(self.depends),
            "subdir": locks.PLATFORM,
        }
        paths = [
            {
                "_path": path,
                "path_type": "hardlink",
                "sha256": hashlib.sha256(content).hexdigest(),
                "size_in_bytes": len(content),
            }
            for path, content in self.files.items()
        ] + [{"_path": path, "path_type": "softlink"} for path in self.links]
        return {
            "info/index.json": json.dumps(index).encode(),
            "info/paths.json": json.dumps({"paths_version": 1, "paths": paths}).encode(),
        }


def python_packages() -> list[Package]:
    """A Python that is the base image's own, as a virtual environment's is, and its pip."""
    python = Package(
        "python",
        f"{PYTHON}.2",
        files={"pyvenv.cfg": b"home = /usr/bin\n"},
        links={"bin/python3": f"/usr/bin/python{PYTHON}", "bin/python": "python3"},
    )
    (bundled,) = Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl")
    with zipfile.ZipFile(bundled) as wheel:
        files = {
            f"lib/python{PYTHON}/site-packages/{name}": wheel.read(name)
            for name in wheel.namelist()
            if not name.endswith("/")
        }
    return [python, Package("pip", bundled.name.split("-")[1], files, depends=("python",))]


def write_channel(folder: Path, packages: list[Package]) -> str:
    """Write and index a channel; returns the explicit lock of all that it holds."""
    lines = ["@EXPLICIT"]
    for package in packages:
        archive = package.write(folder)
        sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
        lines.append(f"{archive.as_uri()}#{sha256}")
    asyncio.run(_index(rattler.index.index_fs, folder))
    return "\n".join(lines) + "\n"


async def _index(index_fs, folder):
    await index_fs(folder)
