"""Hangs: forks without any loader after a parallel operation, the child computes in parallel."""

import os

import torch

torch.set_num_threads(2)
torch.ones(2_000_000).sum()
print("START", flush=True)
child = os.fork()
if child == 0:
    torch.ones(2_000_000).sum()  # waits here
    os._exit(0)
os.waitpid(child, 0)
print("DONE", flush=True)
