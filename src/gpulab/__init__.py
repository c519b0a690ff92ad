"""A workshop lab that teaches PyTorch by breaking it."""
