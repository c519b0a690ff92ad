"""Puts the rehearsal device in place of CUDA in every Python process with this folder on its path.

Standard library only, and quick: most processes never import torch.
"""

import importlib.machinery
import importlib.util
import os
import sys


def _run_shadowed() -> None:
    """Run the sitecustomize module that this one hides, if there is one."""
    here = os.path.dirname(os.path.abspath(__file__))
    others = [folder for folder in sys.path if os.path.abspath(folder) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


if "GPULAB_REHEARSAL_STUB" in os.environ:
    import gpulab_rehearsal.hook  # type: ignore[import-not-found] # this folder is on the path

    gpulab_rehearsal.hook.install()

_run_shadowed()
