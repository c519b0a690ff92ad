"""What the device costs, in CPU time: other work on the machine does not count."""

import textwrap

STEP = """
    import time, torch
    from torch import nn
    torch.set_num_threads(1)

    def stepper(device):
        torch.manual_seed(0)
        sizes = (nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU())
        model = nn.Sequential(*sizes, nn.Linear(512, 10)).to(device)
        optimizer = torch.optim.Adam(model.parameters())
        inputs = torch.randn(64, 512, device=device)
        targets = torch.randint(0, 10, (64,), device=device)

        def step():
            start = time.process_time()
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            return time.process_time() - start

        return step

    steps = [stepper("cpu"), stepper("cuda")]
    rounds = [[step() for step in steps] for _ in range(60)]
    print(*(sorted(times)[20] for times in zip(*rounds)))
"""

IMPORT = """
    import time
    start = time.process_time()
    import torch
    print(time.process_time() - start)
"""


def test_step_of_a_wide_mlp_costs_at_most_twice_the_cpu_step(run):
    on_cpu, on_device = map(float, run(textwrap.dedent(STEP)).stdout.split())
    assert on_device <= 2 * on_cpu


def test_loading_adds_at_most_half_a_second(run):
    plain, loaded = (
        min(float(run(textwrap.dedent(IMPORT), **variables).stdout) for _ in range(2))
        for variables in ({"PYTHONPATH": ""}, {})
    )
    assert loaded - plain <= 0.5
