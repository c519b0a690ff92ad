"""The pieces of a build that need no engine: its context, its failures in words, its proofs."""

import io
import shutil
import tarfile
from pathlib import Path

import pytest

from gpulab import stack
from gpulab.images import build, context, locks, verify
from gpulab.model import LabError

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def tree(tmp_path):
    """A checkout whose cpu stack is locked."""
    tree = tmp_path / "tree"
    for part in ("images", "exercises", "checks", "src"):
        shutil.copytree(ROOT / part, tree / part)
    for part in ("tasks.py", "pyproject.toml"):
        shutil.copy(ROOT / part, tree / part)
    current = locks.folder(tree, "current") / locks.CONDA
    shutil.copy(current, locks.folder(tree, "cpu") / locks.CONDA)
    return tree


def laid_out(tree, supplies, target):
    stacks = stack.load(tree)
    context.lay_out(tree, stacks, "cpu", supplies, target)
    return stacks


def test_the_context_holds_the_lab_and_no_check(tree, tmp_path):
    target = tmp_path / "context"
    stacks = laid_out(tree, context.Supplies(), target)
    files = {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()}
    assert "root/lab/exercises/exercise-4/exercise.toml" in files
    assert "root/lab/images/stacks.yml" in files
    assert "locks/stack/requirements.lock" in files
    assert not [name for name in files if "test_fix" in name or "/checks/" in name]
    assert not [name for name in files if name.endswith(".pyc")]
    hidden = verify._contents(tree / "checks")
    contents = {verify._fingerprint(path.read_bytes()) for path in map(target.joinpath, files)}
    assert hidden
    assert not hidden & contents
    index = (target / "locks/stack/wheel-index").read_text(encoding="utf-8")
    assert index == stacks.find("cpu").wheel_index


def test_neither_umask_nor_age_of_a_checkout_counts(tree, tmp_path):
    (tree / "tasks.py").chmod(0o600)
    (tree / "images/seat/install-conda").chmod(0o700)
    target = tmp_path / "context"
    epoch = laid_out(tree, context.Supplies(), target).shared.epoch
    assert (target / "root/lab/tasks.py").stat().st_mode & 0o777 == 0o644
    assert (target / "seat/install-conda").stat().st_mode & 0o777 == 0o755
    laid = [target / "seat", target / "root", *(target / "root").rglob("*")]
    assert {int(path.stat().st_mtime) for path in laid} == {epoch}


def test_supplies_that_are_empty_are_refused(tree, tmp_path):
    with pytest.raises(LabError, match="holds no wheels"):
        laid_out(tree, context.Supplies(wheels=tmp_path / "none"), tmp_path / "a")
    with pytest.raises(LabError, match="fetch it with"):
        laid_out(tree, context.Supplies(conda_packages=tmp_path), tmp_path / "b")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            ["#9 12.3 ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE."],
            "not what was locked: THESE PACKAGES DO NOT MATCH",
        ),
        (
            ["#7 0.6 error    libmamba File not valid: SHA256 sum doesn't match expectation /p"],
            "not what was locked",
        ),
        (["#9 ERROR: write /x: no space left on device"], "docker system prune"),
        (["#9 ERROR: No matching distribution found for torch==2.13.0+cpu"], "--wheels"),
        (
            ["#3 ERROR: failed to do request: Head https://x: dial tcp: lookup x: no such host"],
            "--local-bases",
        ),
        (["#3 ERROR: pull access denied for mambaorg/micromamba"], "base image cannot be fetched"),
        (["ERROR: BuildKit is enabled but the buildx component is missing"], "docker-buildx"),
        (["#5 0.2 sh: 1: install-conda: not found"], "The build failed: sh: 1"),
    ],
)
def test_a_failed_build_says_what_to_do(lines, said):
    text = build.why_it_failed(["#1 [internal] load build definition", *lines, "------"])
    assert said in text
    assert "\n" not in text


def file_system(files):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    text = stream.getvalue()
    return [text[start : start + 1000] for start in range(0, len(text), 1000)]


@pytest.mark.parametrize(
    ("files", "right"),
    [
        ({"lab/tasks.py": b"pass\n"}, True),
        ({"lab/notes.txt": b"the hidden check\n"}, False),
        ({"lab/checks/exercise-4/test_fix.py": b"anything\n"}, False),
        ({"home/wrong_fixes/first/train.py": b"anything\n"}, False),
        ({"lab/same-length.txt": b"not hidden check\n"}, True),
    ],
)
def test_a_check_in_an_image_is_found_by_name_and_by_content(tmp_path, files, right):
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "probe.py").write_bytes(b"the hidden check\n")
    finding = verify._no_checks(file_system(files), tmp_path / "checks")
    assert finding.right is right


@pytest.mark.parametrize(
    ("number", "version"), [(8700, "8.7.0"), (8907, "8.9.7"), (91900, "9.19.0"), (None, "none")]
)
def test_cudnn_numbers_are_versions(number, version):
    assert verify._cudnn(number) == version
