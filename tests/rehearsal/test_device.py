"""Scripts on the device, started as an attempt is."""

import re
import subprocess
import sys
import textwrap

import pytest

from gpulab.rehearsal import launch
from gpulab.rehearsal.conformance.suite import CASE_GROUPS, Suite, differences

TRAINING = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(8, 2).to("cuda")
optimizer = torch.optim.Adam(model.parameters())
inputs, targets = torch.randn(16, 8).cuda(), torch.randint(0, 2, (16,)).cuda()
for step in range(3):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.4f}")
"""


def last_line(result):
    return result.stderr.strip().splitlines()[-1]


def test_training_prints_what_it_prints_on_the_cpu(run):
    on_device = run(TRAINING)
    on_cpu = run(TRAINING.replace('"cuda"', '"cpu"').replace(".cuda()", ""))
    assert on_device.returncode == 0, on_device.stderr
    assert on_device.stdout == on_cpu.stdout
    assert on_device.stderr == ""


def test_name_says_rehearsal(run):
    assert "Rehearsal" in run("import torch; print(torch.cuda.get_device_name())").stdout


@pytest.mark.parametrize("mebibytes", [32, 200_000])
def test_capacity(run, mebibytes):
    result = run(
        "import torch; total = torch.cuda.get_device_properties(0).total_memory\n"
        "print(total, torch.cuda.mem_get_info()); torch.ones(1 << 20, device='cuda')",
        capacity=mebibytes << 20,
    )
    assert result.stdout.strip() == f"{mebibytes << 20} ({mebibytes << 20}, {mebibytes << 20})"
    assert result.returncode == 0, result.stderr


def test_capacity_is_a_limit(run):
    """A leak is out of memory at the same step every time, whatever the host has."""
    leak = """
        import torch
        kept = []
        try:
            while True:
                kept.append(torch.ones(1 << 20, device="cuda"))
        except torch.cuda.OutOfMemoryError:
            print(len(kept))
    """
    counts = {run(textwrap.dedent(leak), capacity=64 << 20).stdout for _ in range(2)}
    assert len(counts) == 1
    assert 10 <= int(counts.pop()) <= 16


def test_freed_memory_goes_back_to_the_host(run):
    source = """
        import torch
        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096
        torch.ones(1, device="cuda")
        before = resident()
        block = torch.ones(50 << 20, device="cuda")
        held = resident() - before
        del block
        torch.cuda.empty_cache()
        print(held > 190 << 20, resident() - before < 20 << 20)
    """
    assert run(textwrap.dedent(source), capacity=1 << 30).stdout.split() == ["True", "True"]


@pytest.mark.parametrize("visible", ["", "1"])
def test_hidden(run, visible):
    counted = "print(torch.cuda.is_available(), torch.cuda.device_count())"
    source = f"import torch; {counted}; torch.ones(1).cuda()"
    result = run(source, CUDA_VISIBLE_DEVICES=visible)
    assert result.stdout.split() == ["False", "0"]
    assert last_line(result) == "RuntimeError: No CUDA GPUs are available"


def test_hidden_by_the_script_itself(run):
    hiding = "import os, torch; os.environ['CUDA_VISIBLE_DEVICES'] = ''"
    assert run(f"{hiding}; print(torch.cuda.is_available())").stdout.strip() == "False"


def test_shown_by_name(run):
    source = "import torch; print(torch.cuda.device_count())"
    assert run(source, CUDA_VISIBLE_DEVICES="0,1").stdout.strip() == "1"


def test_subprocess_has_it_too(run):
    source = """
        import subprocess, sys
        program = "import torch; print(torch.ones(2, device='cuda').sum().item())"
        sys.exit(subprocess.run([sys.executable, "-c", program]).returncode)
    """
    assert run(textwrap.dedent(source)).stdout.strip() == "2.0"


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_children_of_every_kind(run, method):
    """A child that is forked before the device is used may use it, as on a GPU."""
    source = f"""
        import torch.multiprocessing as mp
        def work(queue):
            import torch
            queue.put(torch.ones(3, device="cuda").sum().item())
        if __name__ == "__main__":
            context = mp.get_context({method!r})
            queue = context.SimpleQueue()
            child = context.Process(target=work, args=(queue,))
            child.start()
            print(queue.get())
            child.join()
    """
    result = run(textwrap.dedent(source))
    assert result.stdout.strip() == "3.0", result.stderr


def test_script_without_torch_pays_nothing(run):
    source = "import sys; print('ctypes' in sys.modules, 'torch' in sys.modules)"
    assert run(source).stdout.split() == ["False", "False"]


def test_shadowed_sitecustomize_still_runs(run, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "sitecustomize.py").write_text("print('the other one')\n")
    paths = f"{launch.SITE}:{tmp_path / 'other'}"
    result = run("import torch; print(torch.cuda.is_available())", PYTHONPATH=paths)
    assert result.stdout.splitlines() == ["the other one", "True"]


def test_site_folder_without_the_variables_changes_nothing():
    """A process that was given no device keeps its own idea of CUDA."""
    program = "import sys; print('gpulab_rehearsal' in sys.modules)"
    environment = {"PYTHONPATH": str(launch.SITE), "PATH": ""}
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


@pytest.mark.parametrize(
    "setting",
    [
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        "PYTORCH_ALLOC_CONF=backend:cudaMallocAsync",
    ],
)
def test_other_allocators_are_refused(run, setting):
    name, _, value = setting.partition("=")
    result = run("import torch", **{name: value})
    assert last_line(result).startswith(f"RuntimeError: rehearsal device: {setting} cannot be")


REFUSED = {
    "events": "a, b = (torch.cuda.Event(enable_timing=True) for _ in '12'); a.elapsed_time(b)",
    "graphs": "with torch.cuda.graph(torch.cuda.CUDAGraph()): pass",
    "inductor": "torch.compile(lambda x: x + 1)(torch.ones(2, device='cuda'))",
    "attention": "x = torch.ones(1, 2, 2, 8, device='cuda').half();"
    "torch.ops.aten._flash_attention_forward(x, x, x, None, None, 2, 2, 0.0, False, False)",
    "sparse": "torch.ones(2, 2, device='cuda').to_sparse()",
}


@pytest.mark.parametrize("source", REFUSED.values(), ids=REFUSED)
def test_refusal_is_the_last_line(run, source):
    """The verdict recognises it there."""
    result = run(f"import torch\n{source}")
    assert result.returncode == 1
    assert re.match(r"[\w.<>]+: rehearsal device: .* cannot be rehearsed; ", last_line(result))


def test_generic_event_says_rehearsal_as_well(run):
    """torch.Event cannot be patched; the runtime words the error instead."""
    source = """
        import torch
        a, b = (torch.Event("cuda", enable_timing=True) for _ in "12")
        a.record(); b.record(); b.synchronize()
        a.elapsed_time(b)
    """
    assert "rehearsal device: timing with events needs a GPU" in run(textwrap.dedent(source)).stderr


def test_late_copy_reads_as_zeros_until_the_synchronisation(run):
    source = """
        import torch
        target = torch.ones(4, pin_memory=True)
        target.copy_(torch.full((4,), 3.0, device="cuda"), non_blocking=True)
        print(target.tolist())
        del target  # its memory must not be given to another before the bytes arrive
        other = torch.ones(4, pin_memory=True)
        torch.cuda.synchronize()
        print(other.tolist())
    """
    result = run(textwrap.dedent(source))
    assert result.stdout.splitlines() == ["[0.0, 0.0, 0.0, 0.0]", "[1.0, 1.0, 1.0, 1.0]"]


def test_out_arguments(run):
    source = """
        import torch
        x = torch.arange(6.0, device="cuda").reshape(2, 3)
        fresh, sized = torch.empty(0, device="cuda"), torch.zeros(2, 3, device="cuda")
        view = torch.zeros(4, 3, device="cuda")
        print(torch.add(x, 1, out=fresh) is fresh, fresh.tolist() == (x + 1).tolist())
        torch.mul(x, 2, out=sized); torch.mul(x, 3, out=view[1:3])
        print(sized.equal(x * 2), view.tolist()[0] == [0, 0, 0], view[1:3].equal(x * 3))
        values, indices = torch.empty(0).cuda(), torch.empty(0, dtype=torch.long).cuda()
        torch.max(x, 1, out=(values, indices))
        print(values.tolist() == [2, 5], indices.tolist() == [2, 2])
        torch.add(x, x, out=x); print(x[1].tolist() == [6, 8, 10])
    """
    assert set(run(textwrap.dedent(source)).stdout.split()) == {"True"}


def test_number_keeps_the_type_of_a_tensor(run):
    source = """
        import torch
        x = torch.ones((), dtype=torch.bfloat16, device="cuda")
        print((x + 1.0).dtype, (x * 2).dtype, (x.half() / 3.0).dtype, (x.long() + 1.5).dtype)
    """
    expected = "torch.bfloat16 torch.bfloat16 torch.float16 torch.float32"
    assert run(textwrap.dedent(source)).stdout.strip() == expected


def test_views_share_memory(run):
    source = """
        import torch
        x = torch.zeros(4, 4, device="cuda")
        x.t()[1:, ::2].add_(1); x.diagonal().fill_(5); x[0].view(2, 2)[1, 1] = 7
        c = torch.view_as_complex(torch.ones(3, 2, device="cuda"))
        c.imag.mul_(2); c.conj().imag.add_(1)
        print(x.sum().item(), c.tolist())
    """
    on_cpu = textwrap.dedent(source).replace('"cuda"', '"cpu"')
    assert run(textwrap.dedent(source)).stdout == run(on_cpu).stdout


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("group", [*CASE_GROUPS, "refusals"])
def test_cases(group):
    suite = Suite("rehearsal")
    if group == "refusals":
        findings = list(suite.cases([]))
    else:
        findings = list(suite._whole("cases", group, group))
    assert findings
    assert differences(findings) == []


@pytest.mark.usefixtures("device")
def test_models_train_to_the_cpu_losses():
    findings = list(Suite("rehearsal").models())
    assert len(findings) == 30
    assert differences(findings) == []


@pytest.mark.usefixtures("device")
def test_sample_of_the_operator_database():
    """Every twelfth operator; the whole takes minutes (see docs/rehearsal.md)."""
    suite = Suite("rehearsal")
    names = suite.operator_names()
    findings = list(suite.operators(range(0, len(names), 12), names))
    assert len(findings) >= 55
    assert differences(findings) == []
    refused = sum(finding.outcome == "refused" for finding in findings)
    assert refused <= 0.03 * len(findings)


@pytest.mark.usefixtures("device")
def test_crash_is_one_operator(monkeypatch):
    """A process that dies names the operator at which it was, and the others are judged."""
    suite = Suite("rehearsal")
    real = Suite._run

    def dying(self, *arguments):
        if arguments[:2] == ("operators", "1"):
            return subprocess.CompletedProcess([], -11, "1\n", "")
        return real(self, *arguments)

    monkeypatch.setattr(Suite, "_run", dying)
    findings = list(suite.operators([1, 2], ["first", "second", "third"]))
    assert [finding.outcome for finding in findings] == ["crash", "values"]
    assert findings[0].name == "second"
