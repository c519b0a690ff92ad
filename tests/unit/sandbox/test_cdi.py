"""The machine's CDI specification, as it was recorded."""

import os
import socket
from pathlib import Path

import pytest

from gpulab.attempts.job import Setting
from gpulab.attempts.sandbox import SandboxConfig, cdi
from gpulab.attempts.sandbox.view import View
from gpulab.model import Device, LabError

RECORDED = Path(__file__).with_name("nvidia.yaml").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    host = tmp_path / "host"
    host.mkdir()
    (host / "libcuda.so.580.95.05").touch()
    made = tmp_path / "cdi"
    made.mkdir()
    (made / "nvidia.yaml").write_text(RECORDED.replace("HOST", str(host)), encoding="utf-8")
    here = Path.cwd()
    os.chdir(host)  # the name of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as service:
            service.bind("socket")
    finally:
        os.chdir(here)
    return made


def test_one_gpu(folder: Path) -> None:
    gpu = cdi.find("nvidia.com/gpu=0", [folder, folder.parent / "none"])
    shared = ["/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidiactl"]
    assert gpu.nodes == (
        *((path, path) for path in shared),
        ("/dev/nvidia0", "/dev/nvidia0"),
        ("/dev/dri/renderD129", "/dev/dri/renderD128"),
    )
    assert gpu.links == (("libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so"),)
    assert gpu.libraries == ("/usr/lib/x86_64-linux-gnu",)
    assert gpu.environment == {"NVIDIA_VISIBLE_DEVICES": "void"}


def test_files_but_no_socket_of_a_host_service(folder: Path) -> None:
    files = cdi.find("nvidia.com/gpu=0", [folder]).files
    assert [Path(here).name for here, _ in files] == ["libcuda.so.580.95.05"]


def test_all_gpus(folder: Path) -> None:
    nodes = {here for here, _ in cdi.find("nvidia.com/gpu=all", [folder]).nodes}
    assert {"/dev/nvidia0", "/dev/nvidia1"} < nodes


def test_a_gpu_that_is_not_listed(folder: Path) -> None:
    with pytest.raises(LabError, match=r"it lists nvidia.com/gpu=0, nvidia.com/gpu=1, .*=all"):
        cdi.find("nvidia.com/gpu=7", [folder])
    with pytest.raises(LabError, match="nvidia-ctk cdi generate"):
        cdi.find("nvidia.com/gpu=0", [])


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "kind: nvidia.com/gpu\ndevices: [{name: '0', containerEdits: {mounts: [{}]}}]",
        "kind: nvidia.com/gpu\ndevices: [{name: '0', containerEdits: {env: [NOVALUE]}}]",
        "kind: nvidia.com/gpu\ndevices: [{name: '0', containerEdits: [1]}]",
    ],
)
def test_a_specification_that_cannot_be_used_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "broken.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(LabError, match=r"broken\.yaml") as refused:
        cdi.find("nvidia.com/gpu=0", [tmp_path])
    assert refused.value.code == 4


def test_what_the_sandbox_shows_of_it(folder: Path, monkeypatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    gpu = cdi.find("nvidia.com/gpu=1", [folder])
    setting = Setting(Path("/opt/stack/bin/python"), Device.CUDA)
    view = View(SandboxConfig(python=str(setting.python)), gpu, setting, 61000)
    words = " ".join(view.arguments({}))
    assert "--dev-bind /dev/nvidia1 /dev/nvidia1" in words
    library = "/usr/lib/x86_64-linux-gnu/libcuda.so"
    assert f"libcuda.so.580.95.05 /nvidia{library}.580.95.05" in words
    assert f"--symlink libcuda.so.1 /nvidia{library}" in words
    assert view.environment["LD_LIBRARY_PATH"] == "/nvidia/usr/lib/x86_64-linux-gnu"
    assert "CUDA_VISIBLE_DEVICES" not in view.environment  # it counts the GPUs outside


def test_a_job_without_cuda_sees_no_gpu(folder: Path) -> None:
    gpu = cdi.find("nvidia.com/gpu=1", [folder])
    setting = Setting(Path("/opt/stack/bin/python"), Device.CPU)
    view = View(SandboxConfig(python=str(setting.python)), gpu, setting, 61000)
    assert "nvidia" not in " ".join(view.arguments({}))
