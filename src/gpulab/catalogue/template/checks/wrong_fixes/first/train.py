"""UNFINISHED: what differs from the shipped script."""

import torch


def predict(values):
    return torch.as_tensor(values) * 3


if __name__ == "__main__":
    print(predict([1.0, 2.0]))
