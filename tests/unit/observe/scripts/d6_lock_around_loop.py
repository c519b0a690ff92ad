"""Hangs: the main process holds a lock around the loop that its workers want in every sample."""

import torch
from torch import multiprocessing
from torch.utils.data import DataLoader, Dataset


class Guarded(Dataset):
    def __init__(self, lock):
        self.lock = lock

    def __len__(self):
        return 4

    def __getitem__(self, index):
        with self.lock:  # waits here
            return torch.tensor(index)


lock = multiprocessing.get_context("fork").Lock()
print("START", flush=True)
with lock:
    for _ in DataLoader(Guarded(lock), num_workers=2, multiprocessing_context="fork"):
        pass
print("DONE", flush=True)
