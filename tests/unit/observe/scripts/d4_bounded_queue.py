"""Hangs: the worker reports into a bounded queue that is read only after the epoch."""

import torch
from torch import multiprocessing
from torch.utils.data import DataLoader, Dataset


class Reporting(Dataset):
    def __init__(self, reports):
        self.reports = reports

    def __len__(self):
        return 12

    def __getitem__(self, index):
        self.reports.put(index)  # waits here
        return torch.tensor(index)


reports = multiprocessing.get_context("fork").Queue(maxsize=3)
print("START", flush=True)
for _ in DataLoader(Reporting(reports), num_workers=1, multiprocessing_context="fork"):
    pass
print("DONE", [reports.get() for _ in range(12)], flush=True)
