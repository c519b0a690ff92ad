"""No hang: the worker's log queue is never read, so the loader ends the worker after 5 s."""

import logging
import logging.handlers

import torch
from torch import multiprocessing
from torch.utils.data import DataLoader, Dataset

log = logging.getLogger("samples")
log.propagate = False


class Talkative(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        log.warning("sample %d %s", index, "." * 60_000)
        return torch.tensor(index)


queue = multiprocessing.get_context("fork").Queue()
log.addHandler(logging.handlers.QueueHandler(queue))
print("START", flush=True)
for _ in DataLoader(Talkative(), num_workers=1, multiprocessing_context="fork"):
    pass
print("DONE", flush=True)
