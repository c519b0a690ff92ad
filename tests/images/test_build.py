"""The seat is really built: cached, reproducible, and never from anything but what was locked."""

import fnmatch
import hashlib
import json
import re
import shutil
import subprocess
import tarfile
import time

import pytest
import stand_in_docker
import yaml

from gpulab.images import locks


def altered(workshop, tmp_path, name, change):
    """A copy of the tree, one of the lab's locks changed."""
    tree = tmp_path / "tree"
    shutil.copytree(workshop.tree, tree)
    path = locks.folder(tree, locks.LAB) / name
    text = path.read_text(encoding="utf-8")
    assert change(text) != text
    path.write_text(change(text), encoding="utf-8")
    return tree


def facts_of(member, tar):
    content = member.linkname
    if member.isfile():
        content = hashlib.file_digest(tar.extractfile(member), "sha256").hexdigest()
    kind = (member.type, member.mode, member.uid, member.gid)
    return {"kind": kind, "content": content, "time": member.mtime}


def files_of(image):
    """Type, rights, owner, content and time of every file of an image."""
    container = subprocess.run(
        ["docker", "create", image], capture_output=True, text=True, check=True
    ).stdout.strip()
    files = {}
    command = ["docker", "export", container]
    try:
        with (
            subprocess.Popen(command, stdout=subprocess.PIPE) as export,
            tarfile.open(fileobj=export.stdout, mode="r|") as tar,
        ):
            for member in tar:
                files[member.name] = facts_of(member, tar)
    finally:
        subprocess.run(["docker", "rm", container], capture_output=True, check=True)
    return files


def test_a_second_build_uses_the_cache_and_is_the_same_image(workshop, built):
    begun = time.monotonic()
    done = workshop.build()
    seconds = time.monotonic() - begun
    assert done.returncode == 0, done.stderr
    assert built.id in done.stdout.replace("\n", "")
    assert seconds <= 15


@pytest.mark.usefixtures("built")
def test_a_package_whose_hash_differs_is_refused(workshop, tmp_path):
    wrong = altered(
        workshop, tmp_path, locks.CONDA, lambda text: re.sub("#[0-9a-f]{64}", "#" + "0" * 64, text)
    )
    done = workshop.build(root=wrong)
    assert done.returncode == 1
    assert "not what was locked" in done.stderr
    assert "SHA256 sum doesn't match" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.usefixtures("built")
def test_a_wheel_whose_hash_differs_is_refused(workshop, tmp_path):
    wrong = altered(
        workshop,
        tmp_path,
        locks.WHEELS,
        lambda text: re.sub(r"(?<=sha256:)[0-9a-f]{64}", "0" * 64, text),
    )
    done = workshop.build(root=wrong)
    assert done.returncode == 1
    assert "not what was locked" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_fetching_refuses_an_archive_whose_hash_differs(workshop, tmp_path):
    wrong = altered(
        workshop, tmp_path, locks.CONDA, lambda text: re.sub("#[0-9a-f]{64}", "#" + "0" * 64, text)
    )
    done = workshop.invoke(
        "images.fetch", "--stack", "cpu", "--to", tmp_path / "supplies", root=wrong
    )
    assert done.returncode == 1
    assert "as locked" in done.stderr
    assert not list((tmp_path / "supplies").rglob("*.part"))


def test_a_missing_archive_is_named(workshop, tmp_path):
    done = workshop.invoke("images.build", "--stack", "cpu", "--conda-packages", tmp_path)
    assert done.returncode == 1
    assert "fetch it with `invoke images.fetch`" in done.stderr


def test_a_base_image_that_cannot_be_fetched_is_named(workshop):
    done = workshop.invoke("images.build", "--stack", "cpu")
    assert done.returncode == 1
    assert "base image cannot be fetched" in done.stderr
    assert "--local-bases" in done.stderr


def test_a_base_image_that_is_not_here_is_named(workshop):
    done = workshop.invoke("images.build", "--stack", "article", "--local-bases")
    assert done.returncode == 1
    assert "nvidia/cuda" in done.stderr


def test_two_builds_from_nothing_differ_only_where_that_is_explained(workshop, built):
    first = files_of(built.id)
    done = workshop.build("--fresh")
    assert done.returncode == 0, done.stderr
    (image,) = json.loads(workshop.invoke("images.list", "--json").stdout)
    second = files_of(image["id"])
    assert image["id"] != built.id
    assert first.keys() == second.keys()
    allowed = yaml.safe_load(
        (stand_in_docker.CHECKOUT / "images" / "differences.yml").read_text(encoding="utf-8")
    )
    assert all(entry["reason"] for entry in allowed)
    unexplained = [
        f"{path} ({what})"
        for path, facts in first.items()
        for what in facts
        if facts[what] != second[path][what]
        and not any(
            what in entry["in"] and any(fnmatch.fnmatch(path, each) for each in entry["paths"])
            for entry in allowed
        )
    ]
    assert unexplained == []
    docker_tag = ["docker", "tag", built.id, "gpulab-seat:cpu"]
    subprocess.run(docker_tag, check=True)


@pytest.mark.parametrize("host", ["unix:///no/such/socket", "tcp://127.0.0.1:1"])
def test_no_engine_is_one_sentence(workshop, host):
    done = workshop.invoke("images.list", DOCKER_HOST=host)
    assert done.returncode == 1
    assert done.stderr.startswith("Docker does not answer")
    assert len(done.stderr.strip().splitlines()) == 1
