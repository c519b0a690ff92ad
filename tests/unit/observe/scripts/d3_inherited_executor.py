"""Hangs: the worker inherits an executor, but not the thread that serves it."""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self):
        self.readers = ThreadPoolExecutor(1)

    def __len__(self):
        return 3

    def __getitem__(self, index):
        return self.readers.submit(torch.tensor, index).result()  # waits here


images = Images()
print("first", images[0].item())
print("START", flush=True)
for _ in DataLoader(images, num_workers=1, multiprocessing_context="fork"):
    pass
print("DONE", flush=True)
