"""Runs inside the attempt: everything that the loader delivers of two files."""

# Plain Python 3.9, like the code it runs beside.

import time

import torch
from gpulab_attempt import mark

REST = 1.5  # seconds in which the workers have nothing to do and are looked at from outside
BEFORE_REST = 0.9  # of the tickets; after the last one the workers may be gone


def deliver(script, files, workers):
    """What came of the last of the files, [path, count of tickets], read one after the other."""
    counts = []
    for number, (path, count) in enumerate(files):
        mark(f"file {number}")
        names, codes, teams = read(script.make_loader(path, workers=workers), number, count)
        mark(f"end {number}")
        counts.append(len(names))
    codes, teams = torch.cat(codes), torch.cat(teams)
    return {"counts": counts, "names": names, "codes": codes, "teams": teams}


def read(loader, number, count):
    """Names, codes and teams of all batches; the worker processes rest once towards the end."""
    names, codes, teams, rested = [], [], [], False
    for batch in loader:
        names.extend(batch[0])
        codes.append(batch[1])
        teams.append(batch[2])
        if not rested and len(names) >= BEFORE_REST * count:
            time.sleep(REST)
            mark(f"rested {number}")
            rested = True
    return names, codes, teams
