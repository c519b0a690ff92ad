"""doctor on recorded machines: public reports (family 14 of the cases), and their decoys."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpulab import stack
from gpulab.doctor import Live, State, examine, look

ROOT = Path(__file__).resolve().parents[3]
RECORDED = sorted(Path(__file__).with_name("recorded").glob("*.json"))


@dataclass
class Recorded:
    """A machine as it was recorded."""

    record: dict

    def run(self, name, _command):
        return self.record["commands"].get(name)

    def read(self, path):
        return self.record["files"].get(path)

    def variable(self, name):
        return self.record["variables"].get(name, "")


def diagnose(record):
    facts = look(Recorded(record), Path("/opt/gpulab/stack/bin/python"))
    return examine(stack.load(ROOT), record["stack"], facts, compatible=record["compatible"])


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recorded_machine_gets_its_diagnosis_and_no_other(path):
    record = json.loads(path.read_text(encoding="utf-8"))
    wrong = [finding for finding in diagnose(record) if finding.state is State.WRONG]
    assert sorted(finding.key for finding in wrong) == sorted(record["expect"])
    assert all(finding.remedy for finding in wrong)


def remedy(name, key):
    record = json.loads((RECORDED[0].parent / f"{name}.json").read_text(encoding="utf-8"))
    (found,) = (finding.remedy for finding in diagnose(record) if finding.key == key)
    return found


@pytest.mark.parametrize(
    ("name", "key", "said"),
    [
        ("driver_too_old_for_the_wheel", "driver-too-old-for-torch", "upgrade the driver"),
        ("architecture_too_new_for_the_wheel", "gpu-not-served", "use the stack current"),
        ("architecture_dropped_as_too_old", "gpu-not-served", "use the stack article"),
        ("cudnn_from_library_path", "library-from-elsewhere", "/usr/local/cuda/lib64 out of"),
        ("upgraded_under_a_loaded_module", "driver-half-upgraded", "reboot"),
        ("driver_libraries_in_the_image", "driver-in-image", "build the image without"),
        ("cpu_wheel_though_a_gpu_is_there", "torch-cpu-build", "--require-hashes"),
        ("newer_driver", "driver-new", "--compatible"),
    ],
)
def test_the_remedy_is_the_right_fix(name, key, said):
    assert said in remedy(name, key)


def test_this_machine_can_be_looked_at(tmp_path):
    facts = look(Live(), tmp_path / "no-python")
    assert facts.torch is None
    findings = examine(stack.load(ROOT), "cpu", facts, compatible=False)
    assert {finding.key for finding in findings} >= {"torch-missing"}
