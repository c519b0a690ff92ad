"""The end of a process that computed gradients on the device."""

SCRIPT = """
import torch
weight = torch.ones(64, 64, device="cuda", requires_grad=True)
for _ in range(3):
    (weight @ weight).relu().sum().backward()
"""


def test_a_script_that_ends_right_after_backward_ends_well(run):
    for _ in range(12):  # one in twenty was ended by force before it waited for autograd's thread
        done = run(SCRIPT)
        assert (done.returncode, done.stderr) == (0, "")
