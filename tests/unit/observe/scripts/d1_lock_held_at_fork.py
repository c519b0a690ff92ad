"""Hangs: a thread of the main process holds a lock while the loader forks its worker."""

import threading
import time

import torch
from torch.utils.data import DataLoader, Dataset

vocabulary_lock = threading.Lock()


class Words(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        with vocabulary_lock:  # waits here
            return torch.tensor(index)


def rebuild(taken):
    with vocabulary_lock:
        taken.set()
        time.sleep(60)


taken = threading.Event()
threading.Thread(target=rebuild, args=(taken,), daemon=True).start()
taken.wait()
print("START", flush=True)
for _ in DataLoader(Words(), num_workers=1, multiprocessing_context="fork"):
    pass
print("DONE", flush=True)
