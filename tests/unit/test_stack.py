"""images/stacks.yml: its schema, and the comparison with a machine."""

import copy
from pathlib import Path

import pytest
import yaml

from gpulab import stack
from gpulab.model import Device, Hardware, LabError

ROOT = Path(__file__).parents[2]
GOOD = yaml.safe_load((ROOT / stack.FILE).read_text(encoding="utf-8"))


def written(folder, table):
    (folder / "images").mkdir(exist_ok=True)
    (folder / stack.FILE).write_text(yaml.safe_dump(table), encoding="utf-8")
    return folder


def test_the_committed_file_holds_the_three_stacks():
    stacks = stack.load(ROOT)
    assert list(stacks.stacks) == ["article", "current", "cpu"]
    assert stacks.find("article").driver.version == "525.85.12"
    assert stacks.find("cpu").driver is None


@pytest.mark.parametrize(
    ("keys", "value", "said"),
    [
        (("stacks", "cpu", "python"), 3.11, "must be text"),
        (("stacks", "cpu", "python"), "3.11.7", "write it like 3.12"),
        (("stacks", "cpu", "pyhton"), "3.11", "did you mean `python`"),
        (("stacks", "cpu", "cuda"), "11.8", "is a CPU build"),
        (("stacks", "current", "cuda"), "12.8", "does not belong to CUDA 12.8"),
        (("stacks", "current", "base", "digest"), "sha256:12", "64 hexadecimal digits"),
        (("stacks", "current", "base", "name"), "ubuntu", "write it like ubuntu:24.04"),
        (("stacks", "current", "gpus"), ["9"], "write it like 9.0"),
        (("stacks", "current", "gpus"), "9.0", "must be a list"),
        (("stacks", "current", "driver"), "580", "must be a table"),
        (("shared", "epoch"), "now", "must be a whole number"),
        (("stacks",), [], "must be a table"),
    ],
)
def test_a_mistake_is_named(tmp_path, keys, value, said):
    table = copy.deepcopy(GOOD)
    place = table
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    with pytest.raises(LabError, match=said):
        stack.load(written(tmp_path, table))


@pytest.mark.parametrize("key", ["base", "python", "torch", "build", "wheels", "purpose"])
def test_a_missing_key_is_named(tmp_path, key):
    table = copy.deepcopy(GOOD)
    del table["stacks"]["cpu"][key]
    with pytest.raises(LabError, match=f"`{key}` is missing"):
        stack.load(written(tmp_path, table))


def test_a_file_that_is_no_yaml_or_missing_is_one_sentence(tmp_path):
    with pytest.raises(LabError, match="restore it"):
        stack.load(tmp_path)
    (written(tmp_path, {}) / stack.FILE).write_text("a: [", encoding="utf-8")
    with pytest.raises(LabError, match="restore it") as caught:
        stack.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_an_unknown_stack_names_the_nearest():
    with pytest.raises(LabError, match="did you mean current"):
        stack.load(ROOT).find("curent")
    with pytest.raises(LabError, match="choose one of article, current, cpu"):
        stack.load(ROOT).find("x")


def test_a_machine_with_the_pins_is_the_stack():
    found = Hardware(Device.CUDA, "3.12.3", "2.11.0+cu130", "13.0", "H200", "580.159.04")
    assert stack.compare(ROOT, "current", found) == "current"
    assert stack.compare(ROOT, "cpu", Hardware(Device.CPU, "3.11.7", "2.13.0+cpu")) == "cpu"


def test_a_machine_that_differs_says_in_what():
    found = Hardware(Device.CUDA, "3.12.3", "2.14.1+cu130", "13.0", "H200", "580.95.05")
    assert stack.compare(ROOT, "current", found) == (
        "differs (driver 580.95.05, not 580.159.04; torch 2.14.1, not 2.11.0)"
    )


def test_comparing_is_never_an_error(tmp_path):
    assert "no stack" in stack.compare(tmp_path, "cpu", Hardware(Device.CPU, "3.11.7", "2.13.0"))
