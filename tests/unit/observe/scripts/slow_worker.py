"""No hang: a worker takes 8 s for its sample. argv[1]: sleep | compute"""

import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, index):
        if sys.argv[1] == "sleep":
            time.sleep(8)
        end = time.monotonic() + 8
        while sys.argv[1] == "compute" and time.monotonic() < end:
            torch.ones(200, 200) @ torch.ones(200, 200)
        return torch.tensor(index)


print("START", flush=True)
for _ in DataLoader(Slow(), num_workers=1, multiprocessing_context="fork"):
    pass
print("DONE", flush=True)
