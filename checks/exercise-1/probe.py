"""Train on a device and watch where the work is done; try the model by itself."""

# Plain Python 3.9, like the code it runs beside.

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

WORK = ("addmm", "mm", "relu", "_log_softmax", "nll_loss", "lerp", "threshold_backward")


class Watch(TorchDispatchMode):
    """Counts copies from the host to the device, and the device of every piece of real work."""

    def __init__(self) -> None:
        super().__init__()
        self.copies = 0
        self.worked_on = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        given = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
        name = func.overloadpacket.__name__
        if name.startswith(WORK):
            device = given[0].device.type
            self.worked_on[device] = self.worked_on.get(device, 0) + 1
        elif name == "lift_fresh":  # torch.tensor(): made on the host, wherever it is to be
            self.copies += result.device.type == "cuda"
        elif name in {"_to_copy", "copy_"}:  # the source comes last; `copy_` returns its target
            self.copies += given[-1].device.type == "cpu" and result.device.type == "cuda"
        return result


def train(script, device, path, steps, seed):
    """What training returns, the devices it ends on, and what was seen on the way."""
    with Watch() as watch:
        model, smoothed, losses = script.train(device, path, steps=steps, seed=seed)
    weights = dict(model.named_parameters())
    return {
        "losses": losses,
        "weights": weights,
        "smoothed": smoothed.weights,
        "devices": sorted({t.device.type for t in [*weights.values(), *smoothed.weights.values()]}),
        "worked_on": watch.worked_on,
        "copies": watch.copies,
    }


def try_model(script, device, path, windows):
    """The scores of a checkpoint's model in single and double precision, moved after its making.

    Args:
        script: the attendee's.
        device: where to move it.
        path: a checkpoint.
        windows: float64 (windows, samples, sensors).
    """
    model = script.Classifier()
    known = torch.load(path, map_location="cpu", weights_only=True)
    try:
        model.load_state_dict(known)
    except RuntimeError as error:
        return {"names": sorted(model.state_dict()), "refused": str(error)[:500]}
    windows = windows.to(device)
    with torch.no_grad():
        single = model.to(device)(windows.float())
        double = model.to(torch.float64)(windows)
        back = model.to("cpu").float()(windows.cpu().float())
    return {
        "names": sorted(model.state_dict()),
        "scores": {"single": single, "double": double, "back": back},
        "kinds": [single.device.type, str(double.dtype)],
    }


def train_and_try(script, device, path, steps, seed, windows):
    """Both, one after the other."""
    training = train(script, device, path, steps, seed)
    return {"training": training, "model": try_model(script, device, path, windows)}
