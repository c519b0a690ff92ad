"""Runs inside the attempt: use the batches of a folder slowly, and tell what they hold."""

# Plain Python 3.9, like the code it runs beside.

import time

from gpulab_attempt import mark

PAUSE = 0.002  # seconds for each scan, in which the workers read as far ahead as they may


def use(script, folder, workers, key):
    """For every batch its sizes and types, its labels, and each scan's product with the key."""
    found = []
    for scans, labels in script.batches(folder, workers=workers):
        mark("batch")
        time.sleep(PAUSE * len(scans))
        found.append(
            {
                "shape": list(scans.shape),
                "types": [str(scans.dtype), str(labels.dtype), str(scans.device)],
                "labels": labels.tolist(),
                "products": products(scans, key),
            }
        )
    return found


def products(scans, key):
    """Exact to float32's own precision; nothing where the sizes do not fit."""
    if scans.shape[1:].numel() != key.numel():
        return []
    return [float(scan.flatten().double() @ key) for scan in scans]
