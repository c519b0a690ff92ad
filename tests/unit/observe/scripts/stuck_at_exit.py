"""No hang: a thread of the worker never ends, so the loader ends the worker after 5 s."""

import threading

import torch
from torch.utils.data import DataLoader, Dataset


class Prefetching(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        if index == 0:
            threading.Thread(target=threading.Event().wait).start()
        return torch.tensor(index)


print("START", flush=True)
for _ in DataLoader(Prefetching(), num_workers=1, multiprocessing_context="fork"):
    pass
print("DONE", flush=True)
