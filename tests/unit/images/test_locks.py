"""The committed locks: closed, complete, and nothing but what stacks.yml asks for."""

import asyncio
import json
import re
from pathlib import Path

import pytest
import rattler
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from gpulab import stack
from gpulab.images import locking, locks
from gpulab.model import LabError

ROOT = Path(__file__).resolve().parents[3]
STACKS = stack.load(ROOT)
ENVIRONMENTS = [locks.LAB, *STACKS.stacks]
LOCKED = [name for name in ENVIRONMENTS if (locks.folder(ROOT, name) / locks.CONDA).exists()]


def python_of(name):
    return STACKS.shared.lab.python if name == locks.LAB else STACKS.find(name).python


def resolve(packages, specs, folder):
    """Solve once more, with nothing to choose from but the lock's own packages."""
    for subdir in (locks.PLATFORM, "noarch"):
        mine = {
            package["url"].rpartition("/")[2]: package
            for package in packages
            if package["subdir"] == subdir
        }
        (folder / subdir).mkdir(parents=True, exist_ok=True)
        (folder / subdir / "repodata.json").write_text(
            json.dumps({"info": {"subdir": subdir}, "packages": {}, "packages.conda": mine})
        )
    channel = rattler.Channel(folder.as_uri())
    sparse = [
        rattler.SparseRepoData(channel, subdir, folder / subdir / "repodata.json")
        for subdir in (locks.PLATFORM, "noarch")
    ]

    async def solved():
        return await rattler.solve_with_sparse_repodata(
            specs,
            sparse,
            virtual_packages=locking.virtual_packages(),
            timestamp_policy="allow-missing",
        )

    return asyncio.run(solved())


def test_the_open_pin_is_recorded_as_such():
    missing = set(ENVIRONMENTS) - set(LOCKED)
    assert missing == {"cpu"}
    assert any(pin.startswith("conda: ") for pin in STACKS.find("cpu").open)
    for name in set(LOCKED) - {locks.LAB}:
        assert not any(pin.startswith("conda: ") for pin in STACKS.find(name).open)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_environment_file_is_what_stacks_yml_says(name):
    committed = (locks.folder(ROOT, name) / locks.ENVIRONMENT).read_text(encoding="utf-8")
    assert committed == locking.environment_text(STACKS, name, ROOT)


@pytest.mark.parametrize("name", LOCKED)
def test_conda_lock_is_closed_and_satisfies_its_environment_file(name, tmp_path):
    home = locks.folder(ROOT, name)
    packages = locks.read_packages(home / locks.PACKAGES)
    wishes = yaml.safe_load((home / locks.ENVIRONMENT).read_text(encoding="utf-8"))
    specs = [wish for wish in wishes["dependencies"] if isinstance(wish, str)]
    solution = resolve(packages, specs, tmp_path)
    assert {record.name.normalized for record in solution} <= {p["name"] for p in packages}
    everything = resolve(packages, [f"{p['name']} =={p['version']}" for p in packages], tmp_path)
    assert len(everything) == len(packages), "two packages of the lock exclude each other"


@pytest.mark.parametrize("name", LOCKED)
def test_a_package_less_is_noticed(name, tmp_path):
    home = locks.folder(ROOT, name)
    packages = locks.read_packages(home / locks.PACKAGES)
    without = [package for package in packages if package["name"] != "openssl"]
    with pytest.raises(Exception, match="openssl"):
        resolve(without, [f"python {python_of(name)}.*"], tmp_path)


@pytest.mark.parametrize("name", LOCKED)
def test_conda_lock_and_what_the_channel_says_agree(name):
    home = locks.folder(ROOT, name)
    packages = locks.read_packages(home / locks.PACKAGES)
    assert (home / locks.CONDA).read_text(encoding="utf-8") == locks.conda_text(packages)
    for package in packages:
        assert package["url"].endswith(
            f"/{package['subdir']}/{package['name']}-{package['version']}-{package['build']}.conda"
        )
        assert package["url"].startswith(STACKS.shared.channel + "/")
        assert re.fullmatch("[0-9a-f]{64}", package["sha256"])


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_wheels_have_hashes_and_satisfy_the_environment_file(name):
    home = locks.folder(ROOT, name)
    wheels = [w for w in locks.read_wheels(home / locks.WHEELS) if w.wanted(python_of(name))]
    locked = {wheel.name: wheel.version for wheel in wheels}
    assert len(locked) == len(wheels), "one version of each"
    wishes = yaml.safe_load((home / locks.ENVIRONMENT).read_text(encoding="utf-8"))
    (wanted,) = (wish["pip"] for wish in wishes["dependencies"] if isinstance(wish, dict))
    for wish in map(Requirement, wanted):
        assert wish.specifier.contains(locked[canonicalize_name(wish.name)], prereleases=True)


def test_every_stack_has_what_an_attempt_needs():
    for name, pins in STACKS.stacks.items():
        wheels = locks.read_wheels(locks.folder(ROOT, name) / locks.WHEELS)
        locked = {wheel.name: wheel.version for wheel in wheels}
        assert locked["torch"].partition("+")[0] == pins.torch
        assert {"safetensors", "numpy", "ipykernel"} <= locked.keys()


def test_the_pinned_cudnn_is_the_one_that_is_locked():
    wheels = locks.read_wheels(locks.folder(ROOT, "current") / locks.WHEELS)
    (cudnn,) = (wheel.version for wheel in wheels if wheel.name.startswith("nvidia-cudnn"))
    assert cudnn.startswith(f"{STACKS.find('current').cudnn}.")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("numpy==2.4.6\n", "has no sha256"),
        ("numpy==2.4.6 --hash=md5:00\n", "has no sha256"),
        (f"numpy>=2 --hash=sha256:{'0' * 64}\n", "not one exact version"),
        (f"numpy --hash=sha256:{'0' * 64}\n", "not one exact version"),
        ("-e .\n", "no requirement"),
    ],
)
def test_a_loose_wheel_is_refused(tmp_path, text, said):
    path = tmp_path / locks.WHEELS
    path.write_text(text, encoding="utf-8")
    with pytest.raises(LabError, match=said):
        locks.read_wheels(path)


@pytest.mark.parametrize(
    "text",
    [
        "@EXPLICIT\nhttps://channel.example/linux-64/python-3.12-0.conda\n",
        f"@EXPLICIT\nhttps://channel.example/linux-64/python-3.12-0.conda#{'0' * 32}\n",
        f"https://channel.example/linux-64/python-3.12-0.conda#{'0' * 64}\n",
        "@EXPLICIT\n",
    ],
)
def test_a_loose_conda_package_is_refused(tmp_path, text):
    path = tmp_path / locks.CONDA
    path.write_text(text, encoding="utf-8")
    with pytest.raises(LabError, match=r"invoke images\.lock"):
        locks.read_conda(path)


def test_a_missing_lock_says_how_to_make_it(tmp_path):
    with pytest.raises(LabError, match=r"`invoke images\.lock`, where there is a network"):
        locks.read_conda(tmp_path / locks.CONDA)


def test_markers_are_judged_for_the_seat_not_for_this_machine(tmp_path):
    path = tmp_path / locks.WHEELS
    digest = f"--hash=sha256:{'0' * 64}"
    path.write_text(
        f"appnope==0.1.4 ; sys_platform == 'darwin' {digest}\n"
        f"typing-extensions==4.16.0 ; python_full_version < '3.13' {digest}\n",
        encoding="utf-8",
    )
    wanted = [w.name for w in locks.read_wheels(path) if w.wanted("3.12")]
    assert wanted == ["typing-extensions"]
