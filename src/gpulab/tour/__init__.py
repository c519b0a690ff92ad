"""The tour: the five primitives in four minutes, every statement run live.

Its one source is tour.md; the terminal and the notebook are made of it.
"""

from gpulab.tour.live import Live
from gpulab.tour.notebook import corrections, make_notebook
from gpulab.tour.source import Scene, Step, load

__all__ = ["Live", "Scene", "Step", "corrections", "load", "make_notebook"]
