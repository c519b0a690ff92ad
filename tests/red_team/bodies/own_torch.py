import torch

assert torch.allclose(1, 2)
