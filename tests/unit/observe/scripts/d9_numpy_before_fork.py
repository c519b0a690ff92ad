"""No hang: numpy's OpenBLAS has a fork handler."""

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Products(Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, _index):
        return torch.tensor((np.ones((500, 500)) @ np.ones((500, 500))).sum())


np.ones((500, 500)) @ np.ones((500, 500))
print("START", flush=True)
for _ in DataLoader(Products(), num_workers=1, multiprocessing_context="fork"):
    pass
print("DONE", flush=True)
