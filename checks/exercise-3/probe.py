# Plain Python 3.9, like the code it runs beside.
"""Checkpoints of fresh models, and what becomes of them when they are restored."""

import os
import traceback

import torch

ELSEWHERE = "cuda:31"  # no machine has so many


class Trap:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def write_checkpoints(script, folder, trap, tickets, dropped):
    """Write one file a kind; return the scores of `tickets` by the models that were saved."""
    scores = {}
    for kind in ("wrapped", "plain", "other_device", "incomplete", "other_shape", "trap"):
        model = fresh_model(script)
        weights = model.state_dict()
        with torch.no_grad():
            scores[kind] = model(tickets.to(script.DEVICE))
        content = {"model": weights, "words": script.WORDS, "queues": script.QUEUES}
        if kind == "incomplete":
            del weights[sorted(weights)[dropped % len(weights)]]
        if kind == "other_shape":
            weights["head.weight"] = torch.cat([weights["head.weight"]] * 2)
        if kind == "trap":
            content["author"] = Trap(trap)
        if kind != "plain":
            content["model"] = {"module." + name: value for name, value in weights.items()}
        write(content, folder / (kind + ".pt"), ELSEWHERE if kind == "other_device" else None)
    return scores


def fresh_model(script):
    """A model no weight of which is what its constructor makes it."""
    model = script.Sorter().to(script.DEVICE).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(std=0.5)
    return model


def write(content, path, device=None):
    """torch.save, and note for every tensor that it lived on `device` where one is given.

    A file that a GPU has written differs from one of the CPU's in nothing but that note.
    """
    if device is None:
        torch.save(content, path)
        return
    registry = list(torch.serialization._package_registry)  # noqa: SLF001 - to undo what follows
    torch.serialization.register_package(0, lambda _: device, lambda *_: None)
    try:
        torch.save(content, path)
    finally:
        torch.serialization._package_registry[:] = registry  # noqa: SLF001


def restore_all(script, paths, tickets):
    """For each file the restored model's scores and device, or why there is no model."""
    return {path.stem: restore(script, path, tickets) for path in paths}


def restore(script, path, tickets):
    """One file's outcome."""
    try:
        model = script.restore(path)
        device = next(model.parameters()).device
        with torch.no_grad():
            return {"scores": model(tickets.to(device)), "device": device.type}
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the attendee raises
        return {"error": describe(error)}


def describe(error):
    """The exception's first line, and the line of the script that it came from."""
    first = (str(error).strip().splitlines() or ["-"])[0][:300]
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == script_file()]
    where = f" (line {frames[-1].lineno}: `{frames[-1].line}`)" if frames else ""
    return f"{type(error).__name__}: {first}{where}"


def script_file():
    """The attendee's script."""
    return os.path.abspath("train.py")  # noqa: PTH100 - as a traceback spells it
