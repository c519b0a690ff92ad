"""Hangs: the main process used OpenMP's threads, the forked worker wants more than one again."""

import torch
from torch.utils.data import DataLoader, Dataset


class Sums(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, _index):
        return torch.ones(2_000_000).sum()  # waits here


def use_two_threads(_worker):
    torch.set_num_threads(2)


torch.set_num_threads(2)
torch.ones(2_000_000).sum()
print("START", flush=True)
loader = DataLoader(
    Sums(), num_workers=1, multiprocessing_context="fork", worker_init_fn=use_two_threads
)
for _ in loader:
    pass
print("DONE", flush=True)
