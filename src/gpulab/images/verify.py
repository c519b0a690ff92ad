"""Start a seat image and compare what is in it with what was locked."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shlex
import tarfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from packaging.utils import canonicalize_name

from gpulab.images import engine, locks, store
from gpulab.model import LabError
from gpulab.observe import Gpu
from gpulab.stack import Stack, Stacks

_HEALTHY_WITHIN = 120  # seconds from the start to Jupyter's first answer
_SINCE_CUDNN_9 = 90000  # from here on the major version has four digits behind it
_HIDDEN_NAMES = ("test_fix.py", "check.toml", "debrief.md", "debrief.zh.md")

# Runs on an environment's own Python, which may be 3.9. The whole answer is one line of JSON.
_PROBE = r"""
import glob, json, os, platform, sys
from importlib import metadata
found = {
    "python": platform.python_version(),
    "user": os.getuid(),
    "wheels": {d.metadata["Name"]: d.version for d in metadata.distributions()},
    "conda": [os.path.basename(p)[:-5] for p in glob.glob(sys.prefix + "/conda-meta/*.json")],
}
if "torch" in sys.argv:
    import torch
    found["torch"] = torch.__version__
    found["cuda"] = torch.version.cuda
    found["cudnn"] = torch.backends.cudnn.version() if torch.version.cuda else None
print(json.dumps(found))
"""
_SMOKE = r"""
import torch
a = torch.randn(256, 256, device="cuda", requires_grad=True)
(a @ a).sum().backward()
torch.cuda.synchronize()
assert torch.isfinite(a.grad).all()
print(torch.cuda.get_device_name())
"""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; `right` is None where it could not be looked at here."""

    what: str
    right: bool | None
    seen: str


def verify(root: Path, stacks: Stacks, name: str, tell: Callable[[Finding], None]) -> bool:
    """Verify a stack's image; whether everything that could be looked at is right.

    Raises:
        LabError: no engine, no such image, a lock is missing, or the image does not start.
    """
    stack, tag = stacks.find(name), engine.tag(name)
    good = True
    with engine.connect() as client:
        image = engine.find_image(client, tag)
        for finding in _findings(client, image, root, stacks, stack, name):
            tell(finding)
            good = good and finding.right is not False
    return good


def _findings(
    client: Any, image: Any, root: Path, stacks: Stacks, stack: Stack, name: str
) -> Iterator[Finding]:
    yield _base(image, stack)
    with _started(client, image) as container:
        probe = _ask(container, "/opt/gpulab/stack/bin/python", "torch")
        yield from _stack(probe, stack)
        yield from _environment(root, name, stack.python, probe)
        lab = _ask(container, "/opt/gpulab/lab/bin/python")
        yield from _environment(root, locks.LAB, stacks.shared.lab.python, lab)
        yield _jupyter(container)
    with store.exported(client, image) as stream:
        yield _no_checks(stream, root / "checks")
    yield _gpu(client, image, stack)


def _base(image: Any, stack: Stack) -> Finding:
    origin = image.labels.get("gpulab.base", "unknown")
    return Finding("base image", origin == stack.base.reference or None, origin)


@contextlib.contextmanager
def _started(client: Any, image: Any) -> Iterator[Any]:
    """A container of the image with its usual command, without a network."""
    container = client.containers.run(image.id, detach=True, network_mode="none")
    try:
        yield container
    finally:
        container.remove(force=True)


def _ask(container: Any, python: str, *arguments: str) -> dict[str, Any]:
    code, output = container.exec_run([python, "-c", _PROBE, *arguments])
    try:
        answer: dict[str, Any] = json.loads(output.splitlines()[-1])
    except (ValueError, IndexError):
        said = output.decode(errors="replace").strip().splitlines()[-1:] or [f"exit code {code}"]
        raise LabError(f"{python} does not work in the image: {said[0]}; build it anew.") from None
    return answer


def _stack(probe: dict[str, Any], stack: Stack) -> Iterator[Finding]:
    yield _equal("torch", probe["torch"].partition("+")[0], stack.torch)
    yield _equal("torch.version.cuda", probe["cuda"] or "none", stack.cuda or "none")
    yield _equal("cuDNN", _cudnn(probe["cudnn"]), stack.cudnn or "none")
    yield Finding("user", probe["user"] != 0, f"uid {probe['user']}")


def _cudnn(number: int | None) -> str:
    """8700 is 8.7.0; from 9 on, 91900 is 9.19.0."""
    if number is None:
        return "none"
    major, rest = divmod(number, 10000 if number >= _SINCE_CUDNN_9 else 1000)
    return f"{major}.{rest // 100}.{rest % 100}"


def _environment(root: Path, name: str, python: str, probe: dict[str, Any]) -> Iterator[Finding]:
    home = locks.folder(root, name)
    minor = ".".join(probe["python"].split(".")[:2])
    yield _equal(f"{name}: Python", minor, python)
    wanted = {w.name: w.version for w in locks.read_wheels(home / locks.WHEELS) if w.wanted(minor)}
    found = {str(canonicalize_name(key)): version for key, version in probe["wheels"].items()}
    yield _all(
        f"{name}: wheels",
        len(wanted),
        [
            f"{key} {found.get(key, 'missing')}, not {version}"
            for key, version in wanted.items()
            if found.get(key) != version
        ],
    )
    packages = {package.label for package in locks.read_conda(home / locks.CONDA)}
    strays = sorted(packages ^ set(probe["conda"]))
    yield _all(f"{name}: conda packages", len(packages), strays)


def _equal(what: str, found: str, wanted: str) -> Finding:
    seen = found if found == wanted else f"{found}, not {wanted}"
    return Finding(what, found == wanted, seen)


def _all(what: str, total: int, wrong: list[str]) -> Finding:
    return Finding(what, not wrong, "; ".join(wrong) or f"all {total} as locked")


def _jupyter(container: Any) -> Finding:
    begun = time.monotonic()
    while (spent := time.monotonic() - begun) < _HEALTHY_WITHIN:
        code, output = container.exec_run(["seat-health"])
        if code == 0:
            return Finding("Jupyter", right=True, seen="answers")
        time.sleep(0.25)
    said = output.decode(errors="replace").strip()
    return Finding("Jupyter", right=False, seen=f"no answer after {spent:.0f} s: {said}")


def _no_checks(stream: Iterable[bytes], checks: Path) -> Finding:
    """Neither a name nor a content of the hidden folder may be anywhere in the image."""
    hidden = _contents(checks)
    sizes = {size for size, _ in hidden}
    leaks = []
    with tarfile.open(fileobj=cast("BinaryIO", _Reader(stream)), mode="r|") as tar:
        for member in tar:
            if member.isfile() and member.size in sizes:
                content = tar.extractfile(member)
                text = content.read() if content else b""
                if _fingerprint(text) in hidden:
                    leaks.append(member.name)
                    continue
            parts = member.name.split("/")
            if parts[-1] in _HIDDEN_NAMES or "wrong_fixes" in parts:
                leaks.append(member.name)
    seen = f"found /{shlex.join(leaks[:3])}" if leaks else f"none of {len(hidden)} files"
    return Finding("hidden checks", not leaks, seen)


def _contents(checks: Path) -> set[tuple[int, str]]:
    """Size and sha256 of every hidden file that says anything."""
    files = [p for p in checks.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    texts = [path.read_bytes() for path in files]
    return {_fingerprint(text) for text in texts if text.strip()}


def _fingerprint(text: bytes) -> tuple[int, str]:
    return len(text), hashlib.sha256(text).hexdigest()


class _Reader:
    """A stream of chunks as a file that can be read once."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = b""

    def read(self, size: int) -> bytes:
        while len(self._rest) < size:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._rest += chunk
        answer, self._rest = self._rest[:size], self._rest[size:]
        return answer


def _gpu(client: Any, image: Any, stack: Stack) -> Finding:
    what = "GPU smoke test"
    if stack.driver is None:
        return Finding(what, right=None, seen="not run: the stack is for machines without a GPU")
    if absent := Gpu().absent:
        return Finding(what, right=None, seen=f"not run: {absent}")
    request = {"Driver": "nvidia", "Count": -1, "Capabilities": [["gpu"]]}
    container = client.containers.create(
        image.id,
        ["/opt/gpulab/stack/bin/python", "-c", _SMOKE],
        network_mode="none",
        device_requests=[request],
    )
    try:
        container.start()
        code = container.wait()["StatusCode"]
        said = container.logs().decode(errors="replace").strip().splitlines()[-1:] or [""]
    finally:
        container.remove(force=True)
    return Finding(what, code == 0, said[0])
